// Sessions for tests of turns, and the rules that every turn has to keep.

import type { ContextMeasure, Permission, SessionChoices, TurnEnd, TurnParts } from "../../src/agent/agent.ts";
import { rememberedAnswers } from "../../src/agent/remembered.ts";
import type { AgentTool } from "../../src/agent/tool.ts";
import { runTurn } from "../../src/agent/turn.ts";
import type { ToolKind, Update } from "../../src/agent/updates.ts";
import type { ContentPart, Message } from "../../src/generation/content.ts";
import type { ScriptedEditor } from "./scripted-editor.ts";
import type { ScriptedModel } from "./scripted-model.ts";

export const CWD = "/project";

interface SessionOptions {
  choices?: Partial<SessionChoices>;
  serverTools?: readonly AgentTool[];
  permissions?: Partial<Record<ToolKind, Permission>>;
  maxTurns?: number;
  directories?: string[];
}

/** The policy of the configuration's defaults. */
const POLICY: Partial<Record<ToolKind, Permission>> = { read: "allow", search: "allow", think: "allow" };

/** One conversation over several turns. */
export class TestSession {
  readonly history: Message[] = [];
  readonly kept: Message[] = [];
  readonly memory = rememberedAnswers();
  readonly measure: ContextMeasure = { ratio: 1 };
  readonly choices: SessionChoices;
  readonly editor: ScriptedEditor;
  readonly #options: SessionOptions;
  #ids = 0;

  constructor(editor: ScriptedEditor, options: SessionOptions = {}) {
    this.editor = editor;
    this.#options = options;
    this.choices = { mode: "code", model: "m", ...options.choices };
  }

  run(model: ScriptedModel, prompt: string | ContentPart[], signal = new AbortController().signal): Promise<TurnEnd> {
    return runTurn(this.parts(model, prompt, signal));
  }

  parts(model: ScriptedModel, prompt: string | ContentPart[], signal: AbortSignal): TurnParts {
    const { serverTools = [], permissions = {}, maxTurns = 20, directories = [] } = this.#options;
    return {
      history: this.history,
      prompt: typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt,
      choices: () => ({ ...this.choices }),
      serverTools: () => serverTools,
      editor: this.editor,
      model,
      permission: (kind) => permissions[kind] ?? POLICY[kind] ?? "ask",
      remembered: this.memory,
      measure: this.measure,
      promptCacheKey: "session",
      cwd: CWD,
      directories,
      maxTurns,
      signal,
      appended: (message) => this.kept.push(message),
      newId: () => `id-${this.#ids++}`,
    };
  }

  /** The last result of a call, as text. */
  get lastResult(): string {
    const result = this.history.flatMap(({ parts }) => parts.filter((part) => part.type === "tool-result")).at(-1);
    return result?.parts.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n") ?? "";
  }
}

/** Fails unless every call has exactly one result, in the message right behind it and in order, and no result stands alone. */
export function checkHistory(history: readonly Message[]): void {
  const ids = new Set<string>();
  for (const [index, { role, parts }] of history.entries()) {
    if (parts.length === 0) throw new Error(`message ${index} is empty`);
    const calls = callsOf(history[index]);
    for (const id of calls) {
      if (ids.has(id)) throw new Error(`two calls have the id ${id}`);
      ids.add(id);
    }
    if (calls.length > 0 && role !== "assistant") throw new Error(`message ${index} calls tools as ${role}`);
    const results = parts.flatMap((part) => (part.type === "tool-result" ? [part] : []));
    for (const result of results) if (result.parts.length === 0) throw new Error(`an empty result in message ${index}`);
    const expected = index === 0 ? [] : callsOf(history[index - 1]);
    const given = results.map(({ callId }) => callId);
    if (!Bun.deepEquals(given, expected)) {
      throw new Error(`message ${index} has results of ${given.join()}, the calls before it are ${expected.join()}`);
    }
  }
  const open = callsOf(history.at(-1));
  if (open.length > 0) throw new Error(`the last calls have no results: ${open.join()}`);
}

function callsOf(message: Message | undefined): string[] {
  return (message?.parts ?? []).flatMap((part) =>
    part.type === "tool-call" && part.serverSide !== true ? [part.id] : [],
  );
}

/** Fails unless the updates of whole turns keep the order of updates.ts. */
export function checkUpdates(updates: readonly Update[]): void {
  const status = new Map<string, string>();
  for (const update of updates) {
    if (update.type === "tool-call") {
      const { toolCallId, status: first } = update.call;
      if (status.has(toolCallId)) throw new Error(`${toolCallId} was told twice`);
      if (first !== "pending") throw new Error(`${toolCallId} begins as ${first}`);
      status.set(toolCallId, first);
    } else if (update.type === "tool-call-change") {
      const { toolCallId, change } = update;
      const before = status.get(toolCallId);
      if (before === undefined) throw new Error(`${toolCallId} changes before it is told`);
      if (before === "completed" || before === "failed") throw new Error(`${toolCallId} changes behind its end`);
      if (change.status === "completed" && before !== "in_progress")
        throw new Error(`${toolCallId} was never in progress`);
      status.set(toolCallId, change.status ?? before);
    }
  }
  for (const [id, last] of status) {
    if (last !== "completed" && last !== "failed") throw new Error(`${id} is left ${last}`);
  }
}

export function textTold(updates: readonly Update[], type: "text" | "thought" = "text"): string {
  return updates.map((update) => (update.type === type ? update.text : "")).join("");
}

export function noticesTold(updates: readonly Update[]): string[] {
  return updates.flatMap((update) => (update.type === "notice" ? [update.text] : []));
}
