// One call of a tool, from what the model wrote to its result: read, shown, allowed, carried out. It never throws: whatever
// goes wrong is a result that tells the model so.

import type { ToolCallPart, ToolResultPart } from "../generation/content.ts";
import { unlessAborted } from "../lib/abortable-delay.ts";
import { compact, type JsonObject } from "../lib/json.ts";
import type { Mode, TurnParts } from "./agent.ts";
import { readArguments } from "./check-arguments.ts";
import type { PermissionAnswer } from "./editor.ts";
import { EditorError } from "./editor.ts";
import { editorFor, type Outlet } from "./outlet.ts";
import { isLooking, rejectedFor, verdictOn } from "./permissions.ts";
import { outsideFolders } from "./places.ts";
import { boundedParts, boundedRaw, shownParts, shownText } from "./result-limits.ts";
import { ToldCall } from "./told-call.ts";
import { type AgentTool, type ToolContext, ToolError, type ToolOutcome, type ToolPreview } from "./tool.ts";
import type { ToolSet } from "./tool-set.ts";
import type { ToolCallView } from "./updates.ts";

/** Shared by the calls of one answer. */
export interface CallFrame extends Pick<TurnParts, "editor" | "cwd" | "directories" | "permission" | "remembered"> {
  /** Aborts when the turn is cancelled. */
  signal: AbortSignal;
  mode: Mode;
  tools: ToolSet;
  outlet: Outlet;
  /** Questions to the person, one after the other. */
  inTurn<Result>(ask: () => Promise<Result>): Promise<Result>;
  /** The person has cancelled the turn instead of answering. */
  cancel(): void;
}

type ReadCall = { call: ToolCallPart; tool: AgentTool | undefined } & ({ args: JsonObject } | { problem: string });

export function readCall(call: ToolCallPart, tools: ToolSet): ReadCall {
  const tool = tools.find(call.name);
  if (tool === undefined) return { call, tool, problem: tools.unknown(call.name) };
  const read = readArguments(call.arguments, tool.parameters);
  if (read.ok) return { call, tool, args: read.args };
  return {
    call,
    tool,
    problem: `The call was not carried out, because of its arguments: ${read.problem}.${excerpt(call)}`,
  };
}

const EXCERPT_LENGTH = 200;

function excerpt({ arguments: text }: ToolCallPart): string {
  return text === "" ? "" : ` You wrote: ${text.slice(0, EXCERPT_LENGTH)}${text.length > EXCERPT_LENGTH ? "..." : ""}`;
}

/** True if the call may run beside others: it changes nothing and needs no permission. */
export function mayRunBeside({ tool, ...read }: ReadCall, frame: CallFrame): boolean {
  if ("problem" in read || tool === undefined) return true;
  return isLooking(tool.kind) && verdictOn(tool, [], frame).verdict !== "ask";
}

export async function carryOut(read: ReadCall, frame: CallFrame): Promise<ToolResultPart> {
  const { call, tool } = read;
  const told = new ToldCall(frame.outlet, call.id);
  if ("problem" in read || tool === undefined) {
    told.begin({ title: call.name }, tool?.kind ?? "other", undefined);
    return failed(call, told, "problem" in read ? read.problem : "");
  }
  const { args } = read;
  const context = contextOf(frame, told);
  let view: ToolCallView | undefined;
  try {
    const preview = await unlessAborted(previewOf(tool, args, context), frame.signal);
    view = told.begin(preview, tool.kind, args);
    const reason = await refusal(tool, preview, view, frame);
    if (reason !== undefined) return failed(call, told, reason);
    frame.signal.throwIfAborted();
    told.change({ status: "in_progress" });
    return succeeded(call, told, await unlessAborted(tool.run(args, context), frame.signal));
  } catch (error) {
    if (frame.signal.aborted) {
      told.end("failed");
      return cancelledResult(call);
    }
    if (view === undefined) told.begin({ title: tool.name }, tool.kind, args);
    return failed(call, told, wordsOf(error));
  }
}

async function previewOf(tool: AgentTool, args: JsonObject, context: ToolContext): Promise<ToolPreview> {
  context.signal.throwIfAborted();
  return await tool.preview(args, context);
}

function contextOf({ editor, outlet, cwd, signal }: CallFrame, told: ToldCall): ToolContext {
  return {
    editor: editorFor(editor, outlet, () => !told.isOver && !signal.aborted),
    cwd,
    signal,
    show: (content) => told.change({ content }),
  };
}

// ---- Permission

/** Why the call may not run; undefined: it may. Throws when the turn is cancelled. */
async function refusal(
  tool: AgentTool,
  { locations = [] }: ToolPreview,
  view: ToolCallView,
  frame: CallFrame,
): Promise<string | undefined> {
  const folders = [frame.cwd, ...(frame.directories ?? [])];
  const outside = await unlessAborted(outsideFolders(locations, folders), frame.signal);
  const first = verdictOn(tool, outside, frame);
  if (first.verdict !== "ask") return first.verdict === "deny" ? denied(first.reason) : undefined;
  return await frame.inTurn(async () => {
    frame.signal.throwIfAborted();
    // An answer to an earlier question may have settled this one.
    const now = verdictOn(tool, outside, frame);
    if (now.verdict !== "ask") return now.verdict === "deny" ? denied(now.reason) : undefined;
    return applyAnswer(await ask(view, outside, frame), tool, outside, frame);
  });
}

async function ask(
  view: ToolCallView,
  outside: readonly string[],
  { editor, signal }: CallFrame,
): Promise<PermissionAnswer> {
  try {
    return await unlessAborted(editor.askPermission(view, signal, outside), signal);
  } catch (error) {
    if (error instanceof EditorError) return "reject_once";
    throw error;
  }
}

function applyAnswer(
  answer: PermissionAnswer,
  tool: AgentTool,
  outside: readonly string[],
  frame: CallFrame,
): string | undefined {
  const remember = (what: "allow" | "reject") => {
    if (frame.mode === "architect") return;
    for (const folder of outside.length === 0 ? [undefined] : outside) frame.remembered.set(tool.name, what, folder);
  };
  switch (answer) {
    case "allow_always":
      remember("allow");
      return undefined;
    case "allow_once":
      return undefined;
    case "reject_always":
      remember("reject");
      return denied(rejectedFor(outside));
    case "cancelled":
      frame.cancel();
      throw frame.signal.reason;
    default:
      return denied("the person has rejected this call");
  }
}

function denied(reason: string): string {
  return `The call was denied: ${reason}. Do not try it again, and do not try to reach the same by another tool. Go on without it, or say what you would need it for.`;
}

// ---- Results

function succeeded(
  call: ToolCallPart,
  told: ToldCall,
  { parts, isError = false, ...outcome }: ToolOutcome,
): ToolResultPart {
  const bounded = boundedParts(parts);
  const { content = shownParts(bounded), locations } = outcome;
  const rawOutput = boundedRaw(outcome.rawOutput);
  told.end(isError ? "failed" : "completed", { content, ...compact({ locations, rawOutput }) });
  return { type: "tool-result", callId: call.id, name: call.name, parts: bounded, ...(isError && { isError }) };
}

function failed(call: ToolCallPart, told: ToldCall, text: string): ToolResultPart {
  told.end("failed", { content: [shownText(text)] });
  return errorResult(call, text);
}

export function errorResult({ id, name }: ToolCallPart, text: string): ToolResultPart {
  return { type: "tool-result", callId: id, name, parts: boundedParts([{ type: "text", text }]), isError: true };
}

export function cancelledResult(call: ToolCallPart): ToolResultPart {
  return errorResult(call, "The call was cancelled by the user.");
}

function wordsOf(error: unknown): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof EditorError) return `The editor could not do it: ${error.message}`;
  return `The tool failed: ${error instanceof Error ? error.message : String(error)}`;
}
