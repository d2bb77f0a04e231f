// Hooks that pages share.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useApp } from "./context.ts";
import type { LiveEvent } from "./live.ts";
import { atMost } from "./timing.ts";

/** Makes something once, and ends it when its component is gone. */
export function useEnding<Made extends { end(): void }>(make: () => Made): Made {
  const [made] = useState(make);
  useLayoutEffect(() => () => made.end(), [made]);
  return made;
}

/** Milliseconds by the gateway's clock; the component is drawn again every second. */
export function useNow(): number {
  return useApp().clock.now.value;
}

export function useLive(listener: (event: LiveEvent, data: unknown) => void): void {
  const { live } = useApp();
  const latest = useRef(listener);
  latest.current = listener;
  useLayoutEffect(() => live.listen((event, data) => latest.current(event, data)), [live]);
}

/** Returns a function that calls at once, and then at most once in so many milliseconds. */
export function useAtMost(everyMs: number, callback: () => void): () => void {
  const latest = useRef(callback);
  latest.current = callback;
  return useEnding(() => atMost(everyMs, () => latest.current())).call;
}

/** A function that puts what it is given into a signal. */
export function setting<Value>(signal: Signal<Value>): (value: Value) => void {
  return (value) => {
    signal.value = value;
  };
}

/** State of a page that is still there when a sign-in that was over is renewed; it ends when another page is opened. */
export function useKept<Value>(name: string, make: () => Value): Signal<Value> {
  return useApp().visits.kept(name, make);
}
