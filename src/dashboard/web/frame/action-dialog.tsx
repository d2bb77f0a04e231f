// The dialog before something is changed: what will happen, the same as a command line, and what came of it.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Action } from "../app/actions.ts";
import { messageOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import { Button } from "../parts/button.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { Notice, Problems } from "../parts/notice.tsx";

export function ActionDialog({ action }: { action: Action }) {
  const { api, actions, asks, toasts, curl } = useApp();
  const element = useRef<HTMLDialogElement>(null);
  const thrown = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const result = useSignal<ComponentChildren>(undefined);
  useLayoutEffect(() => element.current?.showModal(), []);

  async function act(): Promise<void> {
    const asked = action.asked();
    if (asked === undefined || isBusy.peek()) return;
    isBusy.value = true;
    thrown.value = undefined;
    try {
      const answer = await api.ask<{ message?: string }>(asked);
      const message = action.done === undefined ? answer?.message : action.done(answer);
      if (message !== undefined) toasts.say(message);
      asks.refresh();
      result.value = action.result?.(answer);
      if (!result.peek()) element.current?.close();
    } catch (error) {
      thrown.value = error;
    }
    isBusy.value = false;
  }

  if (result.value) {
    return (
      <dialog ref={element} aria-labelledby="dialog-title" onClose={actions.close}>
        <div class="stack">
          <h2 id="dialog-title">{action.title}</h2>
          {result.value}
          <div class="row end">
            <Button kind="main" onClick={() => element.current?.close()}>
              Done
            </Button>
          </div>
        </div>
      </dialog>
    );
  }
  const asked = action.asked();
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={actions.close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void act();
        }}
      >
        <h2 id="dialog-title">{action.title}</h2>
        <p>{action.text}</p>
        {action.fields?.()}
        {thrown.value !== undefined && (
          <div role="alert">
            <Notice tone="bad">{messageOf(thrown.value)}</Notice>
            <Problems of={thrown.value} />
          </div>
        )}
        {asked !== undefined && <CommandLine text={curl(asked)} />}
        <div class="row end">
          <Button onClick={() => element.current?.close()}>Cancel</Button>
          <button
            type="submit"
            class={action.isDangerous ? "danger" : "main"}
            disabled={isBusy.value || asked === undefined}
          >
            {action.verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}
