// One prompt: from its params to its answer. All that the turn tells goes out before the answer, and nothing after it.

import type { ModelAccess, TurnEnd } from "../agent/agent.ts";
import type { ContentPart } from "../generation/content.ts";
import { inTime, orAborted, unlessAborted } from "../lib/abortable-delay.ts";
import { compact, isPresent, type JsonObject } from "../lib/json.ts";
import type { RpcCall, RpcConnection } from "./connection.ts";
import { createTurnEditor, type TurnEditor } from "./editor.ts";
import { optionalBoolean, optionalNumber, optionalText, withMeta } from "./params.ts";
import type { AcpParts } from "./parts.ts";
import { invalidParams, RPC, RpcError, sessionBusy } from "./rpc-error.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { turnRefusal } from "./turn-refusal.ts";
import { decodePrompt } from "./wire/blocks.ts";
import type { ClientAbilities } from "./wire/capabilities.ts";
import { type AcpWorkings, turnRunner } from "./workings.ts";

/** How long a cancelled turn may take to end by itself. The client is answered in any case. */
const GRACE_MS = 50;

/** A conversation beyond that takes no more prompts. */
const MAX_SESSION_BYTES = 64 * 1024 * 1024;

const MAX_TITLE_LENGTH = 80;

export interface PromptParts {
  parts: AcpParts;
  workings: AcpWorkings;
  sessions: Sessions;
  connection: RpcConnection;
  abilities(): ClientAbilities;
}

/** A prompt, and the settings that it gives for itself alone. */
interface Wish {
  prompt: ContentPart[];
  model: string | undefined;
  streams: boolean;
  temperature: number | undefined;
  maxOutputTokens: number | undefined;
}

function readWish(params: JsonObject): Wish {
  const field = isPresent(params.prompt) ? "prompt" : "content";
  const blocks = params[field];
  if (!isPresent(blocks)) throw invalidParams("prompt is missing: give it as a list of content blocks.");
  const given = withMeta(params, ["model", "stream", "temperature", "maxTokens"]);
  const temperature = optionalNumber(given, "temperature");
  const maxOutputTokens = optionalNumber(given, "maxTokens");
  if (temperature !== undefined && temperature < 0) throw invalidParams("temperature must be 0 or more.");
  if (maxOutputTokens !== undefined && !(Number.isSafeInteger(maxOutputTokens) && maxOutputTokens > 0)) {
    throw invalidParams("maxTokens must be a whole number above 0.");
  }
  return {
    prompt: decodePrompt(blocks, field),
    model: optionalText(given, "model") || undefined,
    streams: optionalBoolean(given, "stream") ?? true,
    temperature,
    maxOutputTokens,
  };
}

/** The session is busy when this returns: what comes right behind finds it so, and a cancel reaches it. */
export function runPrompt(
  around: PromptParts,
  session: Session,
  params: JsonObject,
  call: RpcCall,
): Promise<JsonObject> {
  if (session.turn !== undefined) throw sessionBusy(session.id);
  const wish = readWish(params);
  if (session.sizeBytes > MAX_SESSION_BYTES) throw sessionFull(session.id);
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<void>();
  session.turn = { controller, ended: promise };
  // Taking the request back is a cancel, too.
  call.signal.addEventListener("abort", () => controller.abort(call.signal.reason), { once: true });
  return answerPrompt(around, session, wish, controller.signal).finally(resolve);
}

async function answerPrompt(
  around: PromptParts,
  session: Session,
  wish: Wish,
  signal: AbortSignal,
): Promise<JsonObject> {
  const { parts, sessions, connection } = around;
  const editor = createTurnEditor({
    sessionId: session.id,
    connection,
    can: around.abilities(),
    streams: wish.streams,
    callEnded: ({ toolCallId, title, kind, locations }) => session.nameCall(toolCallId, { title, kind, locations }),
    leftOut: (type) =>
      parts.log.warn({ sessionId: session.id, type }, "a part of an update was left out: too large, or no JSON"),
  });
  sessions.changed();
  try {
    await unlessAborted(prepare(around, session, wish, editor, signal), signal);
    const end = await turn(around, session, wish, editor, signal);
    return encodeEnd(signal.aborted ? { ...end, stopReason: "cancelled" } : end);
  } catch (error) {
    if (signal.aborted) return encodeEnd({ stopReason: "cancelled" });
    throw turnRefusal(error, session.id, parts.log);
  } finally {
    editor.close();
    session.turn = undefined;
    sessions.touch(session);
    sessions.changed();
  }
}

/** Titles the session, and waits for its model and its servers before a model is asked. */
async function prepare(
  { parts, sessions, connection }: PromptParts,
  session: Session,
  wish: Wish,
  editor: TurnEditor,
  signal: AbortSignal,
): Promise<void> {
  if (session.title === undefined) {
    const title = titleOf(wish.prompt);
    session.title = title;
    session.keep({ type: "title", at: sessions.now(), title });
    const update = { sessionUpdate: "session_info_update", title, updatedAt: session.updatedAt };
    connection.notify("session/update", { sessionId: session.id, update, content: [] });
  }
  if (session.model === undefined && wish.model === undefined) {
    session.offered = await parts.models.offered(signal);
    const [first] = session.offered;
    if (first === undefined) throw noModels(session.id);
    session.choose({ model: first.id });
  }
  const servers = await session.servers;
  await servers?.opened;
  for (const text of session.takeNotices()) editor.tell({ type: "notice", text, severity: "warning" });
}

async function turn(
  around: PromptParts,
  session: Session,
  wish: Wish,
  editor: TurnEditor,
  signal: AbortSignal,
): Promise<TurnEnd> {
  const { parts, sessions, connection, workings } = around;
  const options = parts.options();
  const servers = await session.servers;
  const run = await turnRunner(workings);
  signal.throwIfAborted();
  const history = [...session.history];
  session.history = history;
  let isCut = false;
  const running = run({
    history,
    prompt: wish.prompt,
    choices: () =>
      compact({
        mode: session.mode,
        model: wish.model ?? session.model ?? "",
        effort: session.effort,
        temperature: wish.temperature,
        maxOutputTokens: wish.maxOutputTokens,
      }),
    serverTools: () => servers?.tools() ?? [],
    editor,
    model: paced(parts.models, connection),
    permission: (kind) => parts.options().permission(kind),
    remembered: session.remembered,
    measure: session.measure,
    promptCacheKey: session.id,
    cwd: session.cwd,
    directories: session.additionalDirectories,
    maxTurns: options.maxTurns,
    signal,
    appended(message) {
      if (!isCut) session.keep({ type: "message", at: sessions.now(), message });
    },
    newId: () => crypto.randomUUID(),
  });
  try {
    const end = (await orAborted(running, signal)) ?? (await inTime(running, GRACE_MS));
    if (end === undefined) throw signal.reason;
    return end;
  } finally {
    // A turn that outlives its cancellation must not write into the session's history.
    isCut = true;
    session.history = history.slice();
  }
}

/** A client that does not read stops the model, and not the memory. */
function paced(models: ModelAccess, { outbox }: RpcConnection): ModelAccess {
  return {
    contextWindow: (model) => models.contextWindow(model),
    readsImages: (model) => models.readsImages?.(model),
    async *generate(request, call) {
      for await (const event of models.generate(request, call)) {
        if (outbox.isFull) await outbox.room(call.signal);
        yield event;
      }
    },
  };
}

/** `usage` stands there whole or not at all: typed clients refuse half of it. */
function encodeEnd({ stopReason, usage }: TurnEnd): JsonObject {
  if (usage === undefined) return { stopReason };
  const { input, output, reasoning, cacheRead, cacheWrite } = usage;
  const counts = compact({
    totalTokens: input + output,
    inputTokens: input,
    outputTokens: output,
    thoughtTokens: reasoning,
    cachedReadTokens: cacheRead,
    cachedWriteTokens: cacheWrite,
  });
  return { stopReason, usage: counts };
}

function titleOf(prompt: readonly ContentPart[]): string {
  const text = prompt.find((part) => part.type === "text" && part.text.trim() !== "");
  const [line = ""] = text?.type === "text" ? text.text.trim().split(/\r?\n/, 1) : [];
  const characters = [...line.trim()];
  if (characters.length === 0) return "Conversation";
  return characters.length <= MAX_TITLE_LENGTH ? line.trim() : `${characters.slice(0, MAX_TITLE_LENGTH - 1).join("")}…`;
}

function noModels(sessionId: string): RpcError {
  const message = "No backend offers a chat model at the moment: look at the gateway's backends, then try again.";
  return new RpcError(RPC.internal, message, {
    reason: "no_models",
    status: 503,
    type: "service_unavailable",
    sessionId,
  });
}

function sessionFull(sessionId: string): RpcError {
  const limit = MAX_SESSION_BYTES / 1024 ** 2;
  const message = `This conversation has reached its limit of ${limit} MiB: go on in a new session.`;
  return new RpcError(RPC.application, message, { reason: "session_full", sessionId });
}
