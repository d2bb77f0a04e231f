// Short messages at the edge of the page, which go by themselves.

import { type ReadonlySignal, signal } from "@preact/signals";

const SHOWN_MS = 6_000;
const MOST = 4;

interface Toast {
  id: number;
  text: string;
  isBad: boolean;
}

export type Toasts = ReturnType<typeof createToasts>;

export function createToasts() {
  const shown = signal<readonly Toast[]>([]);
  let lastId = 0;
  return {
    shown: shown as ReadonlySignal<readonly Toast[]>,
    say(text: string, isBad = false): void {
      const toast = { id: ++lastId, text, isBad };
      shown.value = [...shown.peek(), toast].slice(-MOST);
      setTimeout(() => {
        shown.value = shown.peek().filter((each) => each !== toast);
      }, SHOWN_MS);
    },
  };
}
