// What the holder of a key is shown: asked for with the key, which stays in the memory of this page and goes nowhere else.

import { batch, signal } from "@preact/signals";
import type { OwnRequests, OwnUsage } from "../../../api/me-usage.ts";

export interface OwnKey {
  id: string;
  user: string | null;
  organization: string | null;
  scopes: readonly string[];
  models: readonly string[];
  expires_at: string | null;
  limits: { requests_per_minute?: number; requests_per_second?: number; burst?: number };
  budgets: readonly BudgetLeft[];
}

export interface BudgetLeft {
  id: string;
  window: string;
  models: readonly string[] | null;
  until: string;
  limits: readonly { amount: string; spent: number; limit: number; remaining: number; currency?: string }[];
}

export interface OwnData {
  key: OwnKey;
  /** Undefined where the gateway counts nothing. */
  models: OwnUsage | undefined;
  days: OwnUsage | undefined;
  requests: OwnRequests;
}

export const WINDOWS = [
  ["24h", "24 h"],
  ["7d", "7 d"],
  ["30d", "30 d"],
] as const;

export type OwnView = ReturnType<typeof createOwnView>;

/** @param base - address of the root of the gateway */
export function createOwnView(base: string) {
  let secret: string | undefined;
  /** Answers to an earlier question are not shown. */
  let turn = 0;
  const data = signal<OwnData | undefined>(undefined);
  const trouble = signal<string | undefined>(undefined);
  const isBusy = signal(false);
  const chosen = signal<string>("7d");

  async function get<Answer>(path: string): Promise<Answer> {
    const response = await fetch(new URL(`v1/me${path}`, base), {
      headers: { Authorization: `Bearer ${secret}` },
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    }).catch(() => {
      throw new RefusedAnswer(undefined, "The gateway is unreachable.");
    });
    const body = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined;
    if (response.ok && body !== undefined) return body as Answer;
    if (response.status === 401) throw new RefusedAnswer(401, "This key is not valid here, or has expired.");
    throw new RefusedAnswer(response.status, body?.error?.message ?? `The gateway answered ${response.status}.`);
  }

  /** Statistics may be switched off. */
  function usage(by: string): Promise<OwnUsage | undefined> {
    return get<OwnUsage>(`/usage?by=${by}&window=${chosen.peek()}`).catch((error: unknown) => {
      if (error instanceof RefusedAnswer && error.status === 404) return undefined;
      throw error;
    });
  }

  async function asking(ask: () => Promise<OwnData>): Promise<void> {
    const own = ++turn;
    isBusy.value = true;
    const outcome = await ask().then(
      (found) => ({ found, why: undefined }),
      (error: unknown) => ({ found: data.peek(), why: error instanceof Error ? error.message : String(error) }),
    );
    if (own !== turn) return;
    batch(() => {
      data.value = outcome.found;
      trouble.value = outcome.why;
      isBusy.value = false;
    });
  }

  async function all(): Promise<OwnData> {
    const [key, models, days, requests] = await Promise.all([
      get<OwnKey>(""),
      usage("model"),
      usage("day"),
      get<OwnRequests>("/requests?limit=20"),
    ]);
    return { key, models, days, requests };
  }

  function forget(): void {
    turn++;
    secret = undefined;
    batch(() => {
      data.value = undefined;
      trouble.value = undefined;
      isBusy.value = false;
    });
  }

  return {
    data,
    trouble,
    isBusy,
    window: chosen,
    show(key: string): Promise<void> {
      forget();
      secret = key;
      return asking(all);
    },
    again: () => asking(all),
    choose(window: string): Promise<void> {
      chosen.value = window;
      return asking(all);
    },
    older(): Promise<void> {
      const shown = data.peek();
      const cursor = shown?.requests.next_cursor;
      if (shown === undefined || !cursor) return Promise.resolve();
      return asking(async () => {
        const page = await get<OwnRequests>(`/requests?limit=20&cursor=${encodeURIComponent(cursor)}`);
        return { ...shown, requests: { ...page, requests: [...shown.requests.requests, ...page.requests] } };
      });
    },
    forget,
  };
}

class RefusedAnswer extends Error {
  readonly status: number | undefined;

  constructor(status: number | undefined, message: string) {
    super(message);
    this.status = status;
  }
}
