// The editor of one turn: requests to the client, and updates for it. When the turn is over, it is closed: nothing
// that a straggler says goes out any more, and only what gives a terminal back is still asked.

import {
  type CommandExit,
  type CommandLine,
  type Editor,
  EditorError,
  type PermissionAnswer,
  type Terminal,
} from "../agent/editor.ts";
import type { ToolCallView, Update } from "../agent/updates.ts";
import { compact, isObject, type JsonObject } from "../lib/json.ts";
import type { RpcConnection } from "./connection.ts";
import { shortened } from "./rpc-error.ts";
import type { ClientAbilities } from "./wire/capabilities.ts";
import { decodePermission, encodePermissionRequest } from "./wire/permissions.ts";
import { encodeUpdate } from "./wire/updates.ts";

/** A client that does not answer is not waited for when a terminal is given back. */
const CLEAN_UP_MS = 10_000;

/** Longer texts are sent in several pieces, so that no line is longer than clients take. */
const MAX_PIECE_LENGTH = 1024 * 1024;

export interface TurnEditor extends Editor {
  /** Open calls are sent as failed, text that was held back is sent, and nothing after it. */
  close(): void;
}

interface EditorParts {
  sessionId: string;
  connection: RpcConnection;
  can: ClientAbilities;
  /** false: the pieces of an answer are sent as one. */
  streams: boolean;
  callEnded(call: ToolCallView): void;
  /** An update, or what it carries, could not be sent: it is larger than clients take, or no JSON. */
  leftOut(type: string): void;
}

export function createTurnEditor(parts: EditorParts): TurnEditor {
  const { sessionId, connection, can } = parts;
  const openCalls = new Map<string, ToolCallView>();
  const text = createTextFlow(parts.streams, send);
  let isClosed = false;

  function isSent(update: Update): boolean {
    try {
      return connection.notify("session/update", { sessionId, ...encodeUpdate(update, can.notices) });
    } catch {
      return false; // a tool's own output may be what JSON cannot say, e.g. a circle
    }
  }

  function send(update: Update): void {
    if (isSent(update)) return;
    parts.leftOut(update.type);
    const less = withoutContent(update);
    if (less !== undefined) isSent(less);
  }

  function follow(update: Update): void {
    if (update.type === "tool-call") openCalls.set(update.call.toolCallId, update.call);
    if (update.type !== "tool-call-change") return;
    const before = openCalls.get(update.toolCallId);
    if (before === undefined) return;
    const call = { ...before, ...update.change };
    const isDone = call.status === "completed" || call.status === "failed";
    if (!isDone) openCalls.set(call.toolCallId, call);
    else if (openCalls.delete(call.toolCallId)) parts.callEnded(call);
  }

  function tell(update: Update): void {
    if (isClosed) return;
    if (update.type === "text" || update.type === "thought") {
      text.add(update);
      return;
    }
    text.flush();
    follow(update);
    send(update);
  }

  async function ask(method: string, params: JsonObject, signal: AbortSignal, late?: (result: unknown) => void) {
    if (isClosed) throw new EditorError("The turn is over.");
    text.flush();
    return answered(connection, { method, params: { sessionId, ...params }, signal, ...(late && { late }) });
  }

  return {
    can,
    tell,
    async askPermission(call, signal, outside): Promise<PermissionAnswer> {
      text.flush();
      try {
        return decodePermission(
          await connection.ask("session/request_permission", encodePermissionRequest(sessionId, call, outside), {
            signal,
          }),
        );
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof Error) return "reject_once"; // a client that cannot ask has not allowed it
        throw error;
      }
    },
    async readTextFile(file, signal) {
      if (!can.readTextFile) throw new EditorError("The editor does not offer its files.");
      const content = member(await ask("fs/read_text_file", compact({ ...file }), signal), "content");
      if (typeof content !== "string") throw new EditorError("The editor answered without the file's content.");
      return content;
    },
    async writeTextFile(file, signal) {
      if (!can.writeTextFile) throw new EditorError("The editor does not take files.");
      await ask("fs/write_text_file", { ...file }, signal);
    },
    async runCommand(command, signal) {
      if (!can.terminal) throw new EditorError("The editor has no terminal.");
      const idOf = (result: unknown) => member(result, "terminalId");
      // A terminal that is no longer waited for is given back as soon as it is there.
      const late = (result: unknown) => {
        const id = idOf(result);
        if (typeof id === "string")
          terminal(connection, sessionId, id)
            .release()
            .catch(() => {});
      };
      const id = idOf(await ask("terminal/create", encodeCommand(command), signal, late));
      if (typeof id !== "string") throw new EditorError("The editor answered without a terminalId.");
      return terminal(connection, sessionId, id);
    },
    close() {
      if (isClosed) return;
      text.flush(true);
      for (const { toolCallId } of openCalls.values())
        tell({ type: "tool-call-change", toolCallId, change: { status: "failed" } });
      isClosed = true;
    },
  };
}

/** A call as it can be shown in any case: its beginning and its end must be known. */
function withoutContent(update: Update): Update | undefined {
  if (update.type === "tool-call") {
    const { toolCallId, title, kind, status, locations } = update.call;
    return { type: "tool-call", call: { toolCallId, title, kind, status, locations, content: [] } };
  }
  if (update.type !== "tool-call-change") return undefined;
  const { content: _, rawInput: _input, rawOutput: _output, ...change } = update.change;
  return { ...update, change };
}

/** Pieces of text and thought. Half of a character waits for its other half: many clients refuse it alone. */
function createTextFlow(streams: boolean, send: (update: Update) => void) {
  let held: { type: "text" | "thought"; text: string } | undefined;

  function flush(isLast = true): void {
    if (held === undefined) return;
    const { type, text } = held;
    const cut = !isLast && isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length;
    held = cut === text.length ? undefined : { type, text: text.slice(cut) };
    for (let start = 0; start < cut; ) {
      const end = endOfPiece(text, start, cut);
      send({ type, text: text.slice(start, end) });
      start = end;
    }
  }

  return {
    flush,
    add({ type, text }: { type: "text" | "thought"; text: string }) {
      if (held !== undefined && held.type !== type) flush();
      held = { type, text: (held?.text ?? "") + text };
      if (streams) flush(false);
    },
  };
}

/** Never in the middle of a character. */
function endOfPiece(text: string, start: number, end: number): number {
  const limit = start + MAX_PIECE_LENGTH;
  if (limit >= end) return end;
  return isHighSurrogate(text.charCodeAt(limit - 1)) ? limit - 1 : limit;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}

function terminal(connection: RpcConnection, sessionId: string, id: string): Terminal {
  const params = { sessionId, terminalId: id };
  const ask = (what: string, signal: AbortSignal) =>
    answered(connection, { method: `terminal/${what}`, params, signal });
  return {
    id,
    async output(signal) {
      const result = await ask("output", signal);
      const { output, truncated, exitStatus } = isObject(result) ? result : {};
      if (typeof output !== "string") throw new EditorError("The editor answered without the terminal's output.");
      const exit = isObject(exitStatus) ? { exit: decodeExit(exitStatus) } : {};
      return { output, truncated: truncated === true, ...exit };
    },
    async exited(signal) {
      const result = await ask("wait_for_exit", signal);
      // Newer clients and older ones: beside each other, or within exitStatus.
      return decodeExit(isObject(result) && isObject(result.exitStatus) ? result.exitStatus : result);
    },
    async kill() {
      await ask("kill", AbortSignal.timeout(CLEAN_UP_MS));
    },
    async release() {
      // A terminal that the editor does not know any longer is released.
      await ask("release", AbortSignal.timeout(CLEAN_UP_MS)).catch(() => {});
    },
  };
}

interface Question {
  method: string;
  params: JsonObject;
  signal: AbortSignal;
  late?(result: unknown): void;
}

/** Throws EditorError, or the signal's reason. */
async function answered(connection: RpcConnection, { method, params, signal, late }: Question): Promise<unknown> {
  try {
    return await connection.ask(method, params, { signal, ...(late && { late }) });
  } catch (error) {
    signal.throwIfAborted();
    throw new EditorError(shortened(error instanceof Error ? error.message : String(error), 1_000), { cause: error });
  }
}

function encodeCommand({ command, args, env, cwd, outputByteLimit }: CommandLine): JsonObject {
  const pairs = env && Object.entries(env).map(([name, value]) => ({ name, value }));
  return compact({ command, args, env: pairs, cwd, outputByteLimit });
}

function decodeExit(status: unknown): CommandExit {
  const { exitCode, signal } = isObject(status) ? status : {};
  return {
    exitCode: typeof exitCode === "number" ? exitCode : null,
    signal: typeof signal === "string" ? signal : null,
  };
}

function member(result: unknown, name: string): unknown {
  return isObject(result) ? result[name] : undefined;
}
