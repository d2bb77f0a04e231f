// A button for an action, which only those see whose role may do it.

import type { ComponentChildren } from "preact";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import type { CurlRequest } from "../curl.ts";
import { Button } from "./button.tsx";

interface ActionButtonProps {
  action: Action;
  /** What it will send, where that is not known before its fields are filled in. */
  needs?: Pick<CurlRequest, "method" | "path">;
  /** For screen readers, where the text alone does not say what it is about. */
  label?: string;
  children: ComponentChildren;
}

export function ActionButton({ action, needs, label, children }: ActionButtonProps) {
  const { actions, session } = useApp();
  const asked = needs ?? action.asked();
  if (asked !== undefined && !session.may(asked)) return null;
  return (
    <Button kind="small" label={label} onClick={() => actions.act(action)}>
      {children}
    </Button>
  );
}
