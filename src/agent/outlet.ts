// What a turn tells the editor, until it is over: a tool that goes on behind its end is not heard.

import type { Editor } from "./editor.ts";
import type { Update } from "./updates.ts";

export class Outlet {
  readonly #editor: Editor;
  #isClosed = false;

  constructor(editor: Editor) {
    this.#editor = editor;
  }

  tell(update: Update): void {
    if (!this.#isClosed) this.#editor.tell(update);
  }

  close(): void {
    this.#isClosed = true;
  }
}

/** The editor as a tool sees it: what it tells comes to an end when `isOpen` says so, and nothing is asked of it then. */
export function editorFor(editor: Editor, outlet: Outlet, isOpen: () => boolean): Editor {
  function checkOpen(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (!isOpen()) throw new Error("the call is over");
  }
  return {
    can: editor.can,
    tell(update) {
      if (isOpen()) outlet.tell(update);
    },
    async askPermission(call, signal, outside) {
      checkOpen(signal);
      return await editor.askPermission(call, signal, outside);
    },
    async readTextFile(file, signal) {
      checkOpen(signal);
      return await editor.readTextFile(file, signal);
    },
    async writeTextFile(file, signal) {
      checkOpen(signal);
      await editor.writeTextFile(file, signal);
    },
    async runCommand(command, signal) {
      checkOpen(signal);
      return await editor.runCommand(command, signal);
    },
  };
}
