// Whether a call may run. From the strongest rule to the weakest:
//
// 1. The mode: architect changes nothing and runs nothing, ask looks and thinks only.
// 2. The configuration's "deny" for the kind.
// 3. What the person has rejected for the session.
// 4. Outside of the session's folders every call is asked for, each time: neither the configuration's "allow" nor an earlier
//    "always" was said with such a place in mind.
// 5. What the person has allowed for the session, then the configuration's "allow".
//
// Of mode architect nothing is remembered, in neither direction. Links are not followed: where a path leads is known to the
// editor alone.

import type { Mode, Permission, Remembered } from "./agent.ts";
import type { AgentTool } from "./tool.ts";
import type { ToolKind } from "./updates.ts";

interface PermissionRules {
  mode: Mode;
  permission(kind: ToolKind): Permission;
  remembered: Remembered;
}

/** A denial has a reason for the model. */
type Verdict = { verdict: "allow" | "ask" } | { verdict: "deny"; reason: string };

const CHANGING_KINDS: ReadonlySet<ToolKind> = new Set(["edit", "delete", "move", "execute"]);
const LOOKING_KINDS: ReadonlySet<ToolKind> = new Set(["read", "search", "think", "fetch"]);

/** Whether calls of the kind change nothing, so that several may run at the same time. */
export function isLooking(kind: ToolKind): boolean {
  return LOOKING_KINDS.has(kind);
}

/** Why no call of the kind may run; such tools are not offered. Undefined: it depends. */
export function denial(kind: ToolKind, { mode, permission }: Pick<PermissionRules, "mode" | "permission">) {
  if (mode === "architect" && CHANGING_KINDS.has(kind))
    return "in mode architect nothing is changed and nothing is run";
  if (mode === "ask" && !isLooking(kind)) return "in mode ask only reading, searching and thinking is allowed";
  return permission(kind) === "deny" ? `the configuration does not allow tools of the kind ${kind}` : undefined;
}

export function verdictOn(
  { name, kind }: Pick<AgentTool, "name" | "kind">,
  isOutside: boolean,
  rules: PermissionRules,
): Verdict {
  const reason = denial(kind, rules);
  if (reason !== undefined) return { verdict: "deny", reason };
  const earlier = rules.mode === "architect" ? undefined : rules.remembered.get(name);
  if (earlier === "reject")
    return { verdict: "deny", reason: "the person has rejected this tool for the whole session" };
  if (isOutside) return { verdict: "ask" };
  return { verdict: earlier === "allow" || rules.permission(kind) === "allow" ? "allow" : "ask" };
}
