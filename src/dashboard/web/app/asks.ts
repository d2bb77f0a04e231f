// What the visited page asks the gateway for: shown as commands for a shell, and asked for again after a change.

import { type ReadonlySignal, signal } from "@preact/signals";
import type { CurlRequest } from "../curl.ts";

interface Ask {
  request(): CurlRequest | undefined;
  refresh(): void;
}

export type Asks = ReturnType<typeof createAsks>;

export function createAsks() {
  const all = signal<readonly Ask[]>([]);
  return {
    all: all as ReadonlySignal<readonly Ask[]>,
    /** Returns what removes it. */
    add(ask: Ask): () => void {
      all.value = [...all.peek(), ask];
      return () => {
        all.value = all.peek().filter((each) => each !== ask);
      };
    },
    refresh(): void {
      for (const ask of all.peek()) ask.refresh();
    },
  };
}
