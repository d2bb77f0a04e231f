// What happens in the gateway as it happens (GET /admin/events): comes again by itself when it is lost, and rests while
// the page is hidden.

import { type ReadonlySignal, signal } from "@preact/signals";

export type LiveState = "connecting" | "live" | "lost" | "resting" | "closed";
export type LiveEvent = "request" | "health" | "circuit" | "config";

const EVENTS: readonly LiveEvent[] = ["request", "health", "circuit", "config"];
/** The gateway sends one of these every 15 seconds: a connection without any for so long is dead. */
const HEARTBEAT = "heartbeat";
const SILENT_MS = 35_000;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 15_000;
/** A browser has few connections to one host: hidden pages leave them to others. */
const HIDDEN_MS = 20_000;

interface LiveParts {
  url: string;
  /** It was lost; it may be that the sign-in is over. */
  lost(): void;
}

export type Live = ReturnType<typeof createLive>;

/** Long because these functions share one connection. */
export function createLive({ url, lost }: LiveParts) {
  const listeners = new Set<(event: LiveEvent, data: unknown) => void>();
  const state = signal<LiveState>("closed");
  let source: EventSource | undefined;
  let delayMs = FIRST_DELAY_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;

  function disconnect(): void {
    clearTimeout(timer);
    clearTimeout(silence);
    source?.close();
    source = undefined;
  }

  function connect(): void {
    disconnect();
    state.value = state.value === "lost" ? "lost" : "connecting";
    const opened = new EventSource(url);
    source = opened;
    opened.onopen = () => {
      delayMs = FIRST_DELAY_MS;
      watch();
      state.value = "live";
    };
    // The browser tries again after some errors, not after others; here it is always the same.
    opened.onerror = tryAgain;
    opened.addEventListener(HEARTBEAT, watch);
    for (const name of EVENTS) {
      opened.addEventListener(name, (event) => {
        const data: unknown = JSON.parse((event as MessageEvent<string>).data);
        for (const listener of listeners) listener(name, data);
      });
    }
  }

  function tryAgain(): void {
    disconnect();
    state.value = "lost";
    lost();
    timer = setTimeout(connect, delayMs * (0.75 + Math.random() / 2));
    delayMs = Math.min(MAX_DELAY_MS, delayMs * 2);
  }

  function watch(): void {
    clearTimeout(silence);
    silence = setTimeout(tryAgain, SILENT_MS);
  }

  function visibilityChanged(): void {
    clearTimeout(hiddenTimer);
    if (state.value === "closed") return;
    if (document.hidden) {
      hiddenTimer = setTimeout(() => {
        disconnect();
        state.value = "resting";
      }, HIDDEN_MS);
    } else if (state.value === "resting" || state.value === "lost") connect();
  }
  document.addEventListener("visibilitychange", visibilityChanged);

  return {
    state: state as ReadonlySignal<LiveState>,
    open(): void {
      if (state.value === "closed") connect();
    },
    close(): void {
      disconnect();
      state.value = "closed";
    },
    /** Returns what ends it. */
    listen(listener: (event: LiveEvent, data: unknown) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
