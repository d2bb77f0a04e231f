// The dialog before something is changed: what will happen, the same as a command line, and what came of it.

import { type Api, messageOf, problemsOf } from "./api.ts";
import type { Action } from "./context.ts";
import type { CurlRequest } from "./curl.ts";
import { button, commandLine, notice } from "./parts.ts";
import { h, type View } from "./view.ts";

interface ActionDialogParts {
  api: Api;
  action: Action;
  curl(asked: CurlRequest): string;
  say(text: string, isBad?: boolean): void;
  redraw(): void;
  closed(isDone: boolean): void;
}

export interface ActionDialog {
  view(): View;
}

export function createActionDialog(parts: ActionDialogParts): ActionDialog {
  const { api, action, curl, say, redraw, closed } = parts;
  let element: HTMLDialogElement | undefined;
  let thrown: unknown;
  let isBusy = false;
  let isDone = false;

  async function act(): Promise<void> {
    const asked = action.asked();
    if (asked === undefined || isBusy) return;
    isBusy = true;
    thrown = undefined;
    redraw();
    try {
      const answer = await api.ask<{ message?: string }>(asked);
      isDone = true;
      const told = action.done === undefined ? answer?.message : action.done(answer);
      if (told !== undefined) say(told);
      element?.close();
    } catch (error) {
      thrown = error;
    }
    isBusy = false;
    redraw();
  }

  function view(): View {
    const asked = action.asked();
    const onsubmit = (event: Event) => {
      event.preventDefault();
      void act();
    };
    const verb = {
      type: "submit",
      class: action.isDangerous ? "danger" : "main",
      disabled: isBusy || asked === undefined,
    };
    return h(
      "dialog",
      {
        key: "dialog",
        "aria-labelledby": "dialog-title",
        made: (made) => {
          element = made as HTMLDialogElement;
          element.showModal();
        },
        onclose: () => closed(isDone),
      },
      h(
        "form",
        { onsubmit },
        h("h2", { id: "dialog-title" }, action.title),
        h("p", null, action.text),
        action.fields?.(),
        thrown !== undefined && h("div", { role: "alert" }, notice("bad", messageOf(thrown)), problems(thrown)),
        asked !== undefined && commandLine({ say }, curl(asked)),
        h(
          "div",
          { class: "row end" },
          button("Cancel", () => element?.close()),
          h("button", verb, action.verb),
        ),
      ),
    );
  }

  return { view };
}

export function problems(thrown: unknown): View | null {
  const told = problemsOf(thrown);
  if (told.length === 0) return null;
  return h(
    "ul",
    { class: "problems" },
    told.map(({ field, message }) => h("li", null, field !== "" && h("code", null, field), ` ${message}`)),
  );
}
