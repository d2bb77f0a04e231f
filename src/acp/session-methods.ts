// The methods of sessions: session/new, load, resume, list, close, delete, set_mode, set_config_option, prompt, cancel.

import { isAbsolute } from "node:path";
import type { Mode } from "../agent/agent.ts";
import { isEffort } from "../generation/reasoning-effort.ts";
import type { JsonObject } from "../lib/json.ts";
import type { RpcCall } from "./connection.ts";
import type { RpcMethod } from "./methods.ts";
import { firstGiven, optionalList, optionalText, requiredText, withMeta } from "./params.ts";
import { type PromptParts, runPrompt } from "./prompt.ts";
import { replayOf } from "./replay.ts";
import { invalidParams, shortened } from "./rpc-error.ts";
import type { Session } from "./session.ts";
import type { SessionFolder } from "./sessions.ts";
import type { SessionHead } from "./storage/store.ts";
import { effortsOf, isMode, OWN_EFFORT } from "./wire/config-options.ts";
import { decodeMcpServers } from "./wire/mcp-servers.ts";

const PAGE_SIZE = 50;

/** They stand in the head of a session's file, which has to be found at a look. */
const MAX_DIRECTORIES_BYTES = 8_192;

const MODES_TEXT = "code, architect or ask";

export function sessionMethods(around: PromptParts): Record<string, RpcMethod> {
  const { parts, sessions, connection } = around;

  function tell(session: Session, update: JsonObject): void {
    connection.notify("session/update", { sessionId: session.id, update, content: [] });
  }

  function tellOptions(session: Session): void {
    tell(session, { sessionUpdate: "config_option_update", configOptions: session.configOptions() });
  }

  /** At once where it can be, so that what comes right behind finds what this has done. */
  function withSession(params: JsonObject, use: (session: Session) => unknown): unknown {
    const found = sessions.find(requiredText(params, "sessionId"));
    return found instanceof Promise ? found.then(use) : use(found);
  }

  function placeOf(params: JsonObject): SessionFolder {
    const cwd = optionalText(params, "cwd") || undefined;
    if (cwd !== undefined && !isAbsolute(cwd)) throw invalidParams("cwd must be an absolute path.");
    const additionalDirectories = directoriesIn(params);
    const { servers, left } = decodeMcpServers(params);
    if (left.length > 0) parts.log.warn({ servers: left }, "MCP servers of the type acp are not opened");
    return { cwd, additionalDirectories, servers };
  }

  async function open(
    params: JsonObject,
    call: RpcCall,
    ready: (session: Session) => Promise<void>,
  ): Promise<JsonObject> {
    const session = await sessions.open(requiredText(params, "sessionId"), placeOf(params), call.signal, ready);
    return session.opened();
  }

  async function replay(session: Session, { signal }: RpcCall): Promise<void> {
    const { outbox } = connection;
    for (const update of replayOf(session.history, session.calls)) {
      signal.throwIfAborted();
      if (outbox.isFull) await outbox.room(signal);
      connection.notify("session/update", { sessionId: session.id, ...update });
    }
  }

  function setMode(session: Session, mode: Mode): void {
    if (mode === session.mode) return;
    session.choose({ mode });
    sessions.changed();
  }

  return {
    "session/new": async (params, { signal }) => {
      const mode = modeIn(params) ?? "code";
      const { model } = withMeta(params, ["model"]);
      const wished = optionalText({ model }, "model") || undefined;
      const session = await sessions.create(placeOf(params), { mode, model: wished }, signal);
      return session.opened();
    },
    "session/load": (params, call) => open(params, call, (session) => replay(session, call)),
    "session/resume": (params, call) => open(params, call, async () => {}),
    "session/list": (params) => list(sessions.list(), params),
    "session/close": (params) => withSession(params, async (session) => await sessions.close(session)),
    "session/delete": (params) => sessions.delete(requiredText(params, "sessionId")),
    "session/set_mode": (params) =>
      withSession(params, (session) => {
        const mode = modeIn(params);
        if (mode === undefined) throw invalidParams(`modeId is missing: it must be ${MODES_TEXT}.`, session.id);
        setMode(session, mode);
        tellOptions(session);
        return session.fields();
      }),
    "session/set_config_option": (params, { signal }) =>
      withSession(params, async (session) => {
        session.offered = await parts.models.offered(signal);
        const before = session.mode;
        setOption(session, params, (mode) => setMode(session, mode));
        if (session.mode !== before)
          tell(session, { sessionUpdate: "current_mode_update", currentModeId: session.mode });
        sessions.changed();
        return { configOptions: session.configOptions() };
      }),
    "session/prompt": (params, call) => withSession(params, (session) => runPrompt(around, session, params, call)),
    "session/cancel": (params) => withSession(params, (session) => sessions.cancel(session)),
  };
}

function directoriesIn(params: JsonObject): string[] {
  const directories = (optionalList(params, "additionalDirectories") ?? []).map((each, index) => {
    if (typeof each === "string" && isAbsolute(each)) return each;
    throw invalidParams(`additionalDirectories[${index}] must be an absolute path.`);
  });
  if (Buffer.byteLength(directories.join("")) <= MAX_DIRECTORIES_BYTES) return directories;
  throw invalidParams(`additionalDirectories may have ${MAX_DIRECTORIES_BYTES} bytes together.`);
}

/** Undefined if the parameters name no mode. */
function modeIn(params: JsonObject): Mode | undefined {
  const name = firstGiven(params, ["modeId", "mode"]);
  const mode = name && optionalText(params, name);
  if (mode === undefined || mode === "") return undefined;
  if (!isMode(mode)) throw invalidParams(`${name} must be ${MODES_TEXT}, not "${shortened(mode)}".`);
  return mode;
}

function setOption(session: Session, params: JsonObject, setMode: (mode: Mode) => void): void {
  const id = requiredText(params, "configId");
  const value = requiredText(params, "value");
  const refused = (choices: readonly string[]) =>
    invalidParams(
      `value of ${id} must be one of ${shortened(choices.join(", "), 1_000)}, not "${shortened(value)}".`,
      session.id,
    );
  if (id === "mode") {
    if (!isMode(value)) throw refused(["code", "architect", "ask"]);
    setMode(value);
  } else if (id === "model") {
    const models = session.offered.map((each) => each.id);
    if (!models.includes(value) && value !== session.model) throw refused(models);
    const { effort } = session;
    const keepsEffort = effort !== undefined && effortsOf(value, session.offered).includes(effort);
    session.choose({ model: value, effort: keepsEffort ? effort : undefined });
  } else if (id === "thought_level") {
    const efforts = effortsOf(session.model ?? "", session.offered);
    if (value !== OWN_EFFORT && !(isEffort(value) && efforts.includes(value))) throw refused([OWN_EFFORT, ...efforts]);
    session.choose({ effort: isEffort(value) ? value : undefined });
  } else {
    throw invalidParams(`configId must be mode, model or thought_level, not "${shortened(id)}".`, session.id);
  }
}

/** The cursor is the place of the last one of the page before, so that sessions that come or go meanwhile move no other to another page. */
async function list(heads: AsyncIterable<SessionHead>, params: JsonObject): Promise<JsonObject> {
  const cwd = optionalText(params, "cwd");
  const cursor = optionalText(params, "cursor");
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const page: SessionHead[] = [];
  for await (const head of heads) {
    if (cwd !== undefined && head.cwd !== cwd) continue;
    if (after !== undefined && !isBehind(head, after)) continue;
    if (page.length === PAGE_SIZE) return { sessions: page, nextCursor: encodeCursor(page.at(-1) as SessionHead) };
    page.push(head);
  }
  return { sessions: page };
}

interface Cursor {
  updatedAt: string;
  sessionId: string;
}

function isBehind(head: SessionHead, { updatedAt, sessionId }: Cursor): boolean {
  return head.updatedAt < updatedAt || (head.updatedAt === updatedAt && head.sessionId > sessionId);
}

function encodeCursor({ updatedAt, sessionId }: SessionHead): string {
  return btoa(`${updatedAt} ${sessionId}`);
}

function decodeCursor(cursor: string): Cursor {
  let text = "";
  try {
    text = atob(cursor);
  } catch {
    // what it is not is said below
  }
  const [updatedAt, sessionId] = text.split(" ");
  if (!updatedAt || !sessionId) throw invalidParams("cursor must be the nextCursor of an answer of session/list.");
  return { updatedAt, sessionId };
}
