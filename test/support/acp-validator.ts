// What both sides of an ACP connection have said -> complaints about the agent's side: the order rules of the protocol, and
// the official schemas.

import { join } from "node:path";
import { isObject, type JsonObject } from "../../src/lib/json.ts";

/** Messages in the order in which they were written, as they were parsed. */
export interface Said {
  from: "client" | "agent";
  message: unknown;
}

interface Schema {
  safeParse(value: unknown): { success: boolean; error?: { message: string } };
}

const SDK = join(import.meta.dir, "../../node_modules/@agentclientprotocol/sdk/dist/v1");

/** The stable protocol's and the one with unstable additions: a client may be made with either. */
const SCHEMAS = (await Promise.all(
  ["schema/zod.gen.js", "unstable/schema/zod.gen.js"].map((file) => import(join(SDK, file))),
)) as Record<string, Schema>[];

const RESULTS: Readonly<Record<string, string>> = {
  initialize: "zInitializeResponse",
  authenticate: "zAuthenticateResponse",
  logout: "zLogoutResponse",
  "session/new": "zNewSessionResponse",
  "session/load": "zLoadSessionResponse",
  "session/resume": "zResumeSessionResponse",
  "session/list": "zListSessionsResponse",
  "session/close": "zCloseSessionResponse",
  "session/delete": "zDeleteSessionResponse",
  "session/set_mode": "zSetSessionModeResponse",
  "session/set_config_option": "zSetSessionConfigOptionResponse",
  "session/prompt": "zPromptResponse",
};

const PARAMS: Readonly<Record<string, string>> = {
  "session/update": "zSessionNotification",
  "session/request_permission": "zRequestPermissionRequest",
  "fs/read_text_file": "zReadTextFileRequest",
  "fs/write_text_file": "zWriteTextFileRequest",
  "terminal/create": "zCreateTerminalRequest",
  "terminal/output": "zTerminalOutputRequest",
  "terminal/wait_for_exit": "zWaitForTerminalExitRequest",
  "terminal/kill": "zKillTerminalRequest",
  "terminal/release": "zReleaseTerminalRequest",
  "mcp/message": "",
  "$/cancel_request": "",
};

/** Belong to a turn, or to the replay of one. */
const OF_A_TURN: ReadonlySet<unknown> = new Set([
  "agent_message_chunk",
  "agent_thought_chunk",
  "tool_call",
  "tool_call_update",
  "plan",
  "usage_update",
]);

const DONE: ReadonlySet<unknown> = new Set(["completed", "failed"]);

const OPENERS: ReadonlySet<unknown> = new Set(["session/load", "session/resume"]);

interface Request {
  id: unknown;
  method: string;
  params: JsonObject;
}

interface SeenSession {
  /** Prompts without an answer. */
  prompts: Set<Request>;
  loads: number;
  /** Status of the calls of the turn, or of the replay, by their ids. */
  calls: Map<unknown, unknown>;
}

export function complaintsOf(traffic: readonly Said[]): string[] {
  const validator = new Validator();
  for (const [index, { from, message }] of traffic.entries()) validator.take(from, message, index);
  return validator.finish();
}

class Validator {
  readonly #complaints: string[] = [];
  readonly #asked = new Map<string, Request>();
  readonly #askedByAgent = new Map<string, Request>();
  readonly #usedIds = new Set<string>();
  readonly #sessions = new Map<unknown, SeenSession>();
  readonly #terminals = new Set<unknown>();
  #can: JsonObject = {};
  #isInitialized = false;
  #where = "";

  take(from: Said["from"], message: unknown, index: number): void {
    const { method } = isObject(message) ? message : {};
    this.#where = `message ${index} (${from}${typeof method === "string" ? `, ${method}` : ""})`;
    if (from === "client") this.#fromClient(message);
    else this.#fromAgent(message);
  }

  finish(): string[] {
    this.#where = "the end";
    for (const id of this.#terminals) this.#complain(`terminal ${id} was never released`);
    return this.#complaints;
  }

  #complain(what: string): void {
    this.#complaints.push(`${this.#where}: ${what}`);
  }

  #fromClient(message: unknown): void {
    if (!isObject(message)) return; // also what is no message at all is answered
    const { params, result } = message;
    const isKnown = this.#askedByAgent.has(JSON.stringify(message.id));
    const isAnswer = message.method === undefined && ("result" in message || "error" in message || isKnown);
    const method = typeof message.method === "string" ? message.method : "";
    if (isAnswer) {
      const key = JSON.stringify(message.id);
      const asked = this.#askedByAgent.get(key);
      this.#askedByAgent.delete(key);
      if (asked?.method === "terminal/create" && isObject(result)) this.#terminals.add(result.terminalId);
      return;
    }
    if (!("id" in message)) return;
    const request = { id: message.id, method, params: isObject(params) ? params : {} };
    this.#asked.set(JSON.stringify(message.id), request);
    const session = this.#sessions.get(request.params.sessionId);
    if (method === "session/prompt") session?.prompts.add(request);
    if (OPENERS.has(method)) this.#session(request.params.sessionId).loads++;
  }

  #session(sessionId: unknown): SeenSession {
    const found = this.#sessions.get(sessionId) ?? { prompts: new Set(), loads: 0, calls: new Map() };
    this.#sessions.set(sessionId, found);
    return found;
  }

  #fromAgent(message: unknown): void {
    if (!isObject(message)) {
      this.#complain("is no JSON object");
      return;
    }
    if (message.jsonrpc !== "2.0") this.#complain('has no jsonrpc "2.0"');
    if (typeof message.method === "string") this.#said(message.method, message);
    else this.#answered(message);
  }

  #answered(message: JsonObject): void {
    const { id, result, error } = message;
    if (!("id" in message)) this.#complain("is no request, no notification and no answer");
    if ("result" in message === "error" in message) this.#complain("must have either result or error");
    if (isObject(error)) this.#checkError(error);
    const key = JSON.stringify(id);
    const request = this.#asked.get(key);
    if (request === undefined) {
      if (id !== null) this.#complain(`answers ${key}, which nobody has asked or which is answered`);
      return;
    }
    this.#asked.delete(key);
    const { method, params } = request;
    if (!this.#isInitialized && method !== "initialize" && "result" in message)
      this.#complain(`answers ${method} before initialize`);
    if (method === "session/prompt") this.#promptEnded(request);
    if (OPENERS.has(method)) this.#session(params.sessionId).loads--;
    if (!isObject(result)) {
      if ("result" in message) this.#complain(`the result of ${method} is no object`);
      return;
    }
    this.#checkSchema(RESULTS[method], result);
    if (method === "initialize") {
      this.#isInitialized = true;
      this.#can = isObject(params.clientCapabilities) ? params.clientCapabilities : {};
    }
    if (method === "session/new") this.#session(result.sessionId);
    if (method === "session/load") this.#session(params.sessionId).calls.clear();
  }

  #checkError({ code, message, data }: JsonObject): void {
    if (!Number.isInteger(code) || typeof message !== "string" || message === "")
      this.#complain("its error has no code and message");
    if (!isObject(data) || typeof data.reason !== "string") this.#complain("its error has no data.reason");
  }

  #promptEnded(request: Request): void {
    const session = this.#sessions.get(request.params.sessionId);
    if (session === undefined) return;
    session.prompts.delete(request);
    if (session.prompts.size > 0) return;
    for (const [id, status] of session.calls) {
      if (!DONE.has(status)) this.#complain(`the call ${id} is ${status} when its turn ends`);
    }
    session.calls.clear();
  }

  #said(method: string, message: JsonObject): void {
    const params = isObject(message.params) ? message.params : {};
    const isRequest = "id" in message;
    if (!this.#isInitialized) this.#complain("nothing may be said before initialize is answered");
    if (PARAMS[method] === undefined) this.#complain("is no method of clients");
    this.#checkSchema(PARAMS[method], params);
    const isNotification = ["session/update", "mcp/message", "$/cancel_request"].includes(method);
    if (isRequest === isNotification) this.#complain(isRequest ? "must have no id" : "must have an id");
    if (isRequest) this.#asks(message, method, params);
    if (method === "$/cancel_request") this.#checkCancelled(params);
    if (method === "session/update") this.#updates(params);
    if (method === "session/request_permission") this.#asksPermission(params);
    this.#checkAbilities(method, params);
  }

  #asks({ id }: JsonObject, method: string, params: JsonObject): void {
    const key = JSON.stringify(id);
    if (this.#usedIds.has(key)) this.#complain(`the id ${key} is used again`);
    this.#usedIds.add(key);
    this.#askedByAgent.set(key, { id, method, params });
    if (!this.#sessions.has(params.sessionId)) this.#complain("names a session that the client does not know");
  }

  #checkCancelled({ requestId }: JsonObject): void {
    const key = JSON.stringify(requestId);
    if (!this.#usedIds.has(key)) this.#complain(`cancels ${key}, which was never asked`);
  }

  #checkAbilities(method: string, { terminalId }: JsonObject): void {
    const fs = isObject(this.#can.fs) ? this.#can.fs : {};
    const can: Readonly<Record<string, boolean>> = {
      "fs/read_text_file": fs.readTextFile === true || this.#can.readTextFile === true,
      "fs/write_text_file": fs.writeTextFile === true || this.#can.writeTextFile === true,
    };
    if (can[method] === false) this.#complain("the client has not offered this");
    if (!method.startsWith("terminal/")) return;
    if (this.#can.terminal !== true) this.#complain("the client has not offered terminals");
    if (method !== "terminal/create" && !this.#terminals.has(terminalId))
      this.#complain(`there is no terminal ${terminalId}`);
    if (method === "terminal/release") this.#terminals.delete(terminalId);
  }

  #updates({ sessionId, update, content }: JsonObject): void {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) {
      this.#complain("names a session that the client does not know");
      return;
    }
    if (!Array.isArray(content)) this.#complain("has no content[] for clients that know the specification alone");
    if (!isObject(update)) return; // the schema has said so
    const kind = update.sessionUpdate;
    const isOpen = session.prompts.size > 0;
    if (kind === "user_message_chunk" && session.loads === 0) this.#complain("repeats the client's words");
    if (OF_A_TURN.has(kind) && !isOpen && session.loads === 0)
      this.#complain(`tells a ${kind} while no prompt is open`);
    if (kind === "notice" && !(isObject(this.#can.session) && this.#can.session.notices))
      this.#complain("the client knows no notices");
    if (kind === "tool_call") this.#announces(session, update);
    if (kind === "tool_call_update") this.#changes(session, update);
  }

  #announces(session: SeenSession, { toolCallId, status = "pending" }: JsonObject): void {
    if (session.calls.has(toolCallId)) this.#complain(`the call ${toolCallId} is announced twice`);
    session.calls.set(toolCallId, status);
  }

  #changes({ calls }: SeenSession, { toolCallId, status }: JsonObject): void {
    const before = calls.get(toolCallId);
    if (before === undefined) this.#complain(`the call ${toolCallId} was never announced`);
    if (DONE.has(before)) this.#complain(`the call ${toolCallId} has ended before`);
    if (before === "in_progress" && status === "pending") this.#complain(`the call ${toolCallId} goes back to pending`);
    if (status !== undefined) calls.set(toolCallId, status);
  }

  #asksPermission({ sessionId, toolCall, toolCallId, title, kind, locations, options }: JsonObject): void {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return;
    if (session.prompts.size === 0) this.#complain("asks while no prompt is open");
    const id = isObject(toolCall) ? toolCall.toolCallId : undefined;
    const status = session.calls.get(id);
    if (status !== "pending") this.#complain(`asks for the call ${id}, which is ${status ?? "not announced"}`);
    if (toolCallId !== id) this.#complain("toolCallId and toolCall.toolCallId differ");
    if (typeof title !== "string" || typeof kind !== "string" || !Array.isArray(locations)) {
      this.#complain("lacks title, kind or locations of the specification's form");
    }
    const wrong = (Array.isArray(options) ? options : []).filter((each) => each.optionId !== each.kind);
    if (wrong.length > 0) this.#complain("has options whose ids are not their kinds");
  }

  #checkSchema(name: string | undefined, value: unknown): void {
    if (!name) return;
    for (const schemas of SCHEMAS) {
      const checked = schemas[name]?.safeParse(value);
      if (checked?.success === false)
        this.#complain(`breaks the schema ${name}: ${checked.error?.message.slice(0, 500)}`);
    }
  }
}
