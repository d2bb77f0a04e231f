// What a page of the dashboard gets to work with, and what it is.

import type { SignedIn } from "../../admin/session.ts";
import { type Api, ApiError } from "./api.ts";
import type { CurlRequest } from "./curl.ts";
import type { Live } from "./live.ts";
import type { Route } from "./route.ts";
import type { Children } from "./view.ts";

/** Something that changes the gateway: it is shown, with its curl, before it is done. */
export interface Action {
  title: string;
  /** What will happen, in a sentence. */
  text: string;
  /** On the button. */
  verb: string;
  isDangerous?: boolean;
  /** Further fields; what they change is redrawn. */
  fields?: () => Children;
  /** Read when it is shown and when it is done; undefined while the fields are not in order. */
  asked(): CurlRequest | undefined;
  /** What to say when it is done; default: the message of the answer. */
  done?(answer: unknown): string | undefined;
}

interface EditorDraft {
  text: string;
  /** Of the configuration that it was written from. */
  version: number | undefined;
}

export interface PageContext {
  api: Api;
  route: Route;
  live: Live;
  session: SignedIn;
  /** Draws again soon. */
  redraw(): void;
  /** Opens the dialog of an action. */
  act(action: Action): void;
  /** Says something at the edge of the page. */
  say(text: string, isBad?: boolean): void;
  /** A command line for a request. */
  curl(asked: CurlRequest): string;
  /** To be called when the page is left. */
  onLeave(end: () => void): void;
  /** Milliseconds by the gateway's clock. */
  now(): number;
  /** What was written in editors and is not applied yet; by section and format. */
  drafts: Map<string, EditorDraft>;
  /** What this page asks the gateway for, as a command for a shell. */
  asks: Map<object, () => CurlRequest | undefined>;
}

export interface Page {
  title: string;
  view(): Children;
}

export type MakePage = (context: PageContext) => Page;

/** Something that is asked for now and then. */
export interface Resource<Answer> {
  readonly data: Answer | undefined;
  readonly error: ApiError | undefined;
  readonly isLoading: boolean;
  refresh(): Promise<void>;
}

/**
 * @param path - read each time; undefined: nothing to ask for
 * @param everyMs - asked for again so often while the page is seen
 */
export function resource<Answer>(
  context: PageContext,
  path: () => string | undefined,
  options: { everyMs?: number; loaded?: (answer: Answer) => void } = {},
): Resource<Answer> {
  let leaving = new AbortController();
  let data: Answer | undefined;
  let error: ApiError | undefined;
  let isLoading = false;

  async function refresh(): Promise<void> {
    const asked = path();
    leaving.abort();
    if (asked === undefined) return;
    leaving = new AbortController();
    const { signal } = leaving;
    isLoading = true;
    try {
      const answer = await context.api.get<Answer>(asked, signal);
      if (signal.aborted) return;
      data = answer;
      error = undefined;
      options.loaded?.(answer);
    } catch (thrown) {
      if (signal.aborted) return;
      error = thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown));
      if (error.status !== 0 && error.status !== 401) data = undefined;
    }
    isLoading = false;
    context.redraw();
  }

  const self = {
    get data() {
      return data;
    },
    get error() {
      return error;
    },
    get isLoading() {
      return isLoading;
    },
    refresh,
  };
  context.asks.set(self, () => {
    const asked = path();
    return asked === undefined ? undefined : { method: "GET", path: asked };
  });
  context.onLeave(() => leaving.abort());
  if (options.everyMs !== undefined) {
    const timer = setInterval(() => {
      if (!document.hidden && !isLoading) void refresh();
    }, options.everyMs);
    context.onLeave(() => clearInterval(timer));
  }
  void refresh();
  return self;
}

/** Calls at once, and then not more often than every so many milliseconds, however often it is called. */
export function atMost(everyMs: number, call: () => void, context: Pick<PageContext, "onLeave">): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastMs = Number.NEGATIVE_INFINITY;
  context.onLeave(() => clearTimeout(timer));
  return () => {
    if (timer !== undefined) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        lastMs = performance.now();
        call();
      },
      Math.max(0, lastMs + everyMs - performance.now()),
    );
  };
}
