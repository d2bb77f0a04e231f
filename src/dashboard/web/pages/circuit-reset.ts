// The action that closes a circuit, from wherever one is shown.

import type { Action } from "../app/actions.ts";

export function resettingCircuit(name: string): Action {
  return {
    title: `Reset the circuit of ${name}`,
    text: "It is closed at once, and what was counted against the backend is forgotten. It opens again where the backend goes on failing.",
    verb: "Reset",
    asked: () => ({ method: "POST", path: `admin/backends/${encodeURIComponent(name)}/circuit/reset` }),
  };
}
