// Whether a call may run. From the strongest rule to the weakest:
//
// 1. The mode: architect changes nothing and runs nothing, ask looks and thinks only. A tool that a server marks as changing
//    something is denied with them; one that is marked as harmless, or not at all, is asked for.
// 2. The configuration's "deny" for the kind.
// 3. What the person has rejected for the session.
// 4. Outside of the session's folders: what the person has said of the tool in that very folder or one above it, else a
//    question. The configuration's "allow" and an "always" from inside were not said with such a place in mind.
// 5. What the person has allowed for the session, then the configuration's "allow".
//
// Of mode architect nothing is remembered, in neither direction.

import type { Mode, Permission } from "./agent.ts";
import type { Remembered } from "./remembered.ts";
import type { AgentTool } from "./tool.ts";
import type { ToolKind } from "./updates.ts";

interface PermissionRules {
  mode: Mode;
  permission(kind: ToolKind): Permission;
  remembered: Remembered;
}

/** A denial has a reason for the model. */
type PermissionVerdict = { verdict: "allow" | "ask" } | { verdict: "deny"; reason: string };

const CHANGING_KINDS: ReadonlySet<ToolKind> = new Set(["edit", "delete", "move", "execute"]);
const LOOKING_KINDS: ReadonlySet<ToolKind> = new Set(["read", "search", "think", "fetch"]);

/** True if calls of this kind change nothing, so that several may run at the same time. */
export function isLooking(kind: ToolKind): boolean {
  return LOOKING_KINDS.has(kind);
}

type RuledTool = Pick<AgentTool, "name" | "kind" | "isChanging">;

/** Why no call of the tool may run; such tools are not offered. Undefined: it depends. */
export function denial(
  { kind, isChanging }: Omit<RuledTool, "name">,
  { mode, permission }: Pick<PermissionRules, "mode" | "permission">,
) {
  if (mode === "architect" && (isChanging === true || CHANGING_KINDS.has(kind)))
    return "in mode architect nothing is changed and nothing is run";
  if (mode === "ask" && !isLooking(kind)) return "in mode ask only reading, searching and thinking is allowed";
  return permission(kind) === "deny" ? `the configuration does not allow tools of the kind ${kind}` : undefined;
}

/** @param outside - the folders outside of the session's that the call concerns */
export function verdictOn(tool: RuledTool, outside: readonly string[], rules: PermissionRules): PermissionVerdict {
  const { name, kind } = tool;
  const reason = denial(tool, rules);
  if (reason !== undefined) return { verdict: "deny", reason };
  const said = (folder?: string) => (rules.mode === "architect" ? undefined : rules.remembered.get(name, folder));
  const inside = said();
  if (inside === "reject") return { verdict: "deny", reason: rejectedFor([]) };
  if (outside.length === 0)
    return { verdict: inside === "allow" || rules.permission(kind) === "allow" ? "allow" : "ask" };
  const answers = outside.map((folder) => said(folder));
  if (answers.includes("reject")) return { verdict: "deny", reason: rejectedFor(outside) };
  return { verdict: answers.every((answer) => answer === "allow") ? "allow" : "ask" };
}

export function rejectedFor(outside: readonly string[]): string {
  const where = outside.length === 0 ? "" : ` in ${outside.join(", ")}`;
  return `the person has rejected this tool${where} for the whole session`;
}
