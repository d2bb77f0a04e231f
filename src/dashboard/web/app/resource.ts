// An answer of the admin API that a page shows: asked for when its path changes, again every so often, and again after failures.

import { batch, effect, type ReadonlySignal, signal, untracked } from "@preact/signals";
import { type Api, ApiError, mayPass } from "./api.ts";
import { useApp } from "./context.ts";
import { useEnding } from "./hooks.ts";
import { atMost } from "./timing.ts";

export interface Resource<Answer> {
  readonly data: ReadonlySignal<Answer | undefined>;
  readonly error: ReadonlySignal<ApiError | undefined>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** When `data` was answered, in milliseconds by the gateway's clock. */
  readonly loadedAtMs: ReadonlySignal<number | undefined>;
  refresh(): Promise<void>;
}

interface ResourceOptions<Answer> {
  /** How often the answer is asked for again while the page is seen; a function decides by the latest answer. */
  everyMs?: number | ((answer: Answer | undefined) => number | undefined);
  /** Whether the page is not seen. */
  isHidden?: () => boolean;
}

/** A path that changes with every key that is pressed is asked for this often. */
const CHANGED_MS = 250;
const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 30_000;

/** @param path - read for each request; the signals that it reads make another request when they change */
export function createResource<Answer>(
  api: Pick<Api, "get" | "now">,
  path: () => string | undefined,
  { everyMs, isHidden = () => document.hidden }: ResourceOptions<Answer> = {},
): Resource<Answer> & { end(): void } {
  const data = signal<Answer>();
  const error = signal<ApiError>();
  const isLoading = signal(false);
  const loadedAtMs = signal<number>();
  let leaving = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retryMs = FIRST_RETRY_MS;

  async function refresh(): Promise<void> {
    const asked = untracked(path);
    leaving.abort();
    clearTimeout(timer);
    if (asked === undefined) {
      data.value = undefined;
      return;
    }
    leaving = new AbortController();
    const { signal: left } = leaving;
    isLoading.value = true;
    try {
      const answer = await api.get<Answer>(asked, left);
      if (left.aborted) return;
      loaded(answer);
    } catch (thrown) {
      if (left.aborted) return;
      failed(thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown)));
    }
  }

  function loaded(answer: Answer): void {
    batch(() => {
      data.value = answer;
      error.value = undefined;
      isLoading.value = false;
      loadedAtMs.value = api.now();
    });
    retryMs = FIRST_RETRY_MS;
    askAgain(pauseMs());
  }

  function failed(thrown: ApiError): void {
    batch(() => {
      error.value = thrown;
      isLoading.value = false;
      // What was known is shown on while the gateway is away or the sign-in is over.
      if (thrown.status !== 0 && thrown.status !== 401) data.value = undefined;
    });
    askAgain(pauseMs() ?? (mayPass(thrown) ? retryMs : undefined));
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }

  function pauseMs(): number | undefined {
    return typeof everyMs === "function" ? everyMs(data.peek()) : everyMs;
  }

  function askAgain(delayMs: number | undefined): void {
    if (delayMs === undefined) return;
    timer = setTimeout(() => {
      if (isHidden()) askAgain(delayMs);
      else void refresh();
    }, delayMs);
  }

  const changed = atMost(CHANGED_MS, () => void refresh());
  const unfollow = effect(() => {
    path();
    changed.call();
  });

  return {
    ...{ data, error, isLoading, loadedAtMs, refresh },
    end() {
      unfollow();
      changed.end();
      clearTimeout(timer);
      leaving.abort();
    },
  };
}

export function useResource<Answer>(
  path: string | (() => string | undefined),
  options: ResourceOptions<Answer> = {},
): Resource<Answer> {
  const { api, asks } = useApp();
  return useEnding(() => {
    const pathNow = typeof path === "string" ? () => path : path;
    const resource = createResource<Answer>(api, pathNow, options);
    const forget = asks.add({
      request() {
        const asked = pathNow();
        return asked === undefined ? undefined : { method: "GET", path: asked };
      },
      refresh: () => void resource.refresh(),
    });
    return {
      ...resource,
      end() {
        resource.end();
        forget();
      },
    };
  });
}
