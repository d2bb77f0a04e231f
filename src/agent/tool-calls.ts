// All calls of one answer, and their results in the same order: what only looks runs side by side, what changes something or
// has to be asked for runs alone, behind all before it and before all behind it.

import type { ToolCallPart, ToolResultPart } from "../generation/content.ts";
import { type CallFrame, cancelledResult, carryOut, errorResult, mayRunBeside, readCall } from "./tool-call.ts";

const MAX_CALLS = 64;

/** Never throws: when the signal aborts, what is not done yet has a result that says so. */
export async function carryOutAll(calls: readonly ToolCallPart[], frame: CallFrame): Promise<ToolResultPart[]> {
  const results: ToolResultPart[] = [];
  const reads = calls.slice(0, MAX_CALLS).map((call) => readCall(call, frame.tools));
  for (let start = 0; start < reads.length; ) {
    if (frame.signal.aborted) break;
    let end = start;
    while (end < reads.length && mayRunBeside(reads[end] as (typeof reads)[number], frame)) end++;
    const group = reads.slice(start, Math.max(end, start + 1));
    results.push(...(await Promise.all(group.map((read) => carryOut(read, frame)))));
    start += group.length;
  }
  for (const call of calls.slice(results.length)) {
    results.push(frame.signal.aborted ? cancelledResult(call) : errorResult(call, TOO_MANY));
  }
  return results;
}

const TOO_MANY = `The call was not carried out: an answer may have at most ${MAX_CALLS} calls. Call it again if it is still needed.`;

const CUT_OFF =
  "The call was not carried out: the answer reached its limit of tokens before it was complete. Make smaller calls, e.g. write a long file in several edits.";

/** Results of calls that have no end. */
export function cutOffResults(calls: readonly ToolCallPart[]): ToolResultPart[] {
  return calls.map((call) => errorResult(call, CUT_OFF));
}
