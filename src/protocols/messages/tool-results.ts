// Turns of a request, as the API wants them: neighbours of one role together, the results of all calls of a turn at the
// beginning of the next user turn, none missing and none too many.

import type { DropList } from "../../generation/dropped.ts";
import { LOST_RESULT } from "../../generation/lost-results.ts";
import { arrayOf, textOf } from "../reading.ts";
import { type Block, isBlock } from "./wire.ts";

export interface Turn {
  role: "user" | "assistant" | "system";
  content: Block[];
}

/** Joins neighbours of one role and leaves out empty turns. The turns given are not changed. */
export function mergeTurns(turns: readonly Turn[]): Turn[] {
  const merged: Turn[] = [];
  for (const { role, content } of turns) {
    if (content.length === 0) continue;
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...content);
    else merged.push({ role, content: [...content] });
  }
  return merged;
}

/** Moves instructions behind the user turn that answers calls, so that nothing stands between calls and results. */
export function moveInstructions(turns: readonly Turn[]): Turn[] {
  const moved: Turn[] = [];
  let held: Turn[] = [];
  for (const turn of turns) {
    const isAwaited = moved.at(-1)?.content.some(isCall) === true;
    if (turn.role === "system" && isAwaited) held.push(turn);
    else {
      moved.push(turn);
      if (turn.content.some(isCall)) continue;
      moved.push(...held);
      held = [];
    }
  }
  return [...moved, ...held];
}

/** Gives every call its result, in the next turn and before all else. */
export function pairResults(turns: readonly Turn[], dropped: DropList): Turn[] {
  const paired: Turn[] = [];
  let awaited: string[] = [];
  for (const turn of turns) {
    if (turn.role === "user") {
      paired.push({ role: "user", content: orderResults(turn.content, awaited, dropped) });
      awaited = [];
      continue;
    }
    if (awaited.length > 0) paired.push({ role: "user", content: lostResults(awaited, dropped) });
    paired.push(turn);
    awaited = turn.content.filter(isCall).map((call) => textOf(call.id));
  }
  if (awaited.length > 0) paired.push({ role: "user", content: lostResults(awaited, dropped) });
  return paired;
}

/**
 * Several calls may have one id, where an engine counts from the beginning in every answer; the API refuses that. Later
 * ones get a number behind it, and so do their results in the next turn, in the order of the calls.
 */
export function withDistinctIds(turns: readonly Turn[]): Turn[] {
  const seen = new Set<string>();
  let awaited = new Map<string, string[]>();
  return turns.map((turn) => {
    if (turn.role === "user") return { ...turn, content: turn.content.map((block) => renameResult(block, awaited)) };
    if (turn.role !== "assistant") return turn;
    awaited = new Map();
    return {
      ...turn,
      content: turn.content.map((block) => (isCall(block) ? renameCall(block, seen, awaited) : block)),
    };
  });
}

function renameCall(block: Block, seen: Set<string>, awaited: Map<string, string[]>): Block {
  const id = textOf(block.id);
  let unique = id;
  for (let count = 2; seen.has(unique); count++) unique = `${id}_${count}`;
  seen.add(unique);
  awaited.set(id, [...(awaited.get(id) ?? []), unique]);
  return unique === id ? block : { ...block, id: unique };
}

function renameResult(block: Block, awaited: ReadonlyMap<string, string[]>): Block {
  const id = textOf(block.tool_use_id);
  const unique = block.type === "tool_result" ? awaited.get(id)?.shift() : undefined;
  return unique === undefined || unique === id ? block : { ...block, tool_use_id: unique };
}

function orderResults(content: readonly Block[], awaited: readonly string[], dropped: DropList): Block[] {
  const results = new Map<string, Block>();
  const rest: Block[] = [];
  for (const block of content) {
    const id = textOf(block.tool_use_id);
    if (block.type !== "tool_result") rest.push(block);
    else if (awaited.includes(id) && !results.has(id)) results.set(id, block);
    else rest.push(...asText(block, dropped));
  }
  const lost = awaited.filter((id) => !results.has(id));
  return [...results.values(), ...lostResults(lost, dropped), ...rest];
}

function lostResults(ids: readonly string[], dropped: DropList): Block[] {
  if (ids.length > 0) dropped.add("tool_calls", "calls without a result were given an error as their result");
  return [...new Set(ids)].map((id) => ({
    type: "tool_result",
    tool_use_id: id,
    content: [{ type: "text", text: LOST_RESULT }],
    is_error: true,
  }));
}

/** A result whose call is not in the turn before would be refused; what it says is kept. */
function asText(result: Block, dropped: DropList): Block[] {
  dropped.add("tool result", "its call is not in the turn before; it is told as text");
  const title: Block = { type: "text", text: `Result of the tool call ${textOf(result.tool_use_id)}:` };
  return [title, ...arrayOf(result.content).filter(isBlock)];
}

function isCall(block: Block): boolean {
  return block.type === "tool_use";
}

/**
 * Whether the turn that called tools, whose results come last, does not begin with its thinking. Models with a thinking
 * budget refuse such a conversation.
 */
export function lacksThinking(turns: readonly Turn[]): boolean {
  const calls = turns.at(-2);
  if (turns.at(-1)?.role !== "user" || calls?.role !== "assistant" || !calls.content.some(isCall)) return false;
  const first = calls.content[0]?.type;
  return first !== "thinking" && first !== "redacted_thinking";
}
