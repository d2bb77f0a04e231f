// What changes the gateway: an action is shown in a dialog, with its curl, before it is done.

import { type ReadonlySignal, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { CurlRequest } from "../curl.ts";

export interface Action {
  title: string;
  /** What will happen, in a sentence. */
  text: string;
  /** On the button. */
  verb: string;
  isDangerous?: boolean;
  /** Further fields. The dialog follows the signals that this and `asked` read. */
  fields?: () => ComponentChildren;
  /** Read when it is shown and when it is done; undefined while the fields are not in order. */
  asked(): CurlRequest | undefined;
  /** What to say when it is done; default: the message of the answer. */
  done?(answer: unknown): string | undefined;
  /** What of the answer is shown in the dialog after it is done; it goes when the dialog is closed. */
  result?(answer: unknown): ComponentChildren;
}

export type Actions = ReturnType<typeof createActions>;

export function createActions() {
  const open = signal<Action>();
  return {
    /** The action whose dialog is open. */
    open: open as ReadonlySignal<Action | undefined>,
    act(action: Action): void {
      open.value = action;
    },
    close(): void {
      open.value = undefined;
    },
  };
}
