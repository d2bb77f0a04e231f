// The owner of all sessions of this process: makes, opens, lists and closes them, and lets go of idle ones.

import type { Mode } from "../agent/agent.ts";
import type { McpServerSpec, McpServers } from "../mcp/servers.ts";
import type { AcpParts } from "./parts.ts";
import { RPC, RpcError, sessionBusy, sessionNotFound } from "./rpc-error.ts";
import { Session } from "./session.ts";
import { fileStore } from "./storage/file-store.ts";
import { memoryStore } from "./storage/memory-store.ts";
import type { SessionHead, SessionStore, StoredSession } from "./storage/store.ts";
import { type AcpWorkings, serverOpener } from "./workings.ts";

/** How often the watchers of sessions are notified at most. */
const TELL_MS = 250;

/** When idle sessions are looked for at the latest: the limit may have changed meanwhile. */
const LOOK_MS = 60_000;

/** Where a session works, and with what. */
export interface SessionFolder {
  /** Absolute; undefined: where it was, or where this process began. */
  cwd: string | undefined;
  /** More folders of the project, absolute: all that it has from now on. */
  additionalDirectories: readonly string[];
  servers: readonly McpServerSpec[];
}

export class Sessions {
  readonly #parts: AcpParts;
  readonly #workings: AcpWorkings;
  readonly #live = new Map<string, Session>();
  /** Those that are being loaded; other requests for them wait. */
  readonly #opening = new Map<string, Promise<Session>>();
  #creating = 0;
  /** Processes of closed sessions that are ending. */
  readonly #ending = new Set<Promise<void>>();
  #idleTimer: Timer | undefined;
  #tellTimer: Timer | undefined;

  constructor(parts: AcpParts, workings: AcpWorkings) {
    this.#parts = parts;
    this.#workings = workings;
  }

  async create(
    place: SessionFolder,
    choices: { mode: Mode; model: string | undefined },
    signal: AbortSignal,
  ): Promise<Session> {
    this.#checkRoom();
    this.#creating++;
    try {
      const offered = await this.#parts.models.offered(signal);
      signal.throwIfAborted();
      const at = this.now();
      const stored: StoredSession = {
        sessionId: crypto.randomUUID(),
        createdAt: at,
        updatedAt: at,
        cwd: place.cwd ?? this.#parts.cwd,
        additionalDirectories: place.additionalDirectories,
        title: undefined,
        mode: choices.mode,
        model: choices.model ?? offered[0]?.id,
        effort: undefined,
        history: [],
        calls: new Map(),
      };
      const log = await this.#written(this.#store().create(stored));
      const session = this.#session({ stored, log, offered });
      this.#add(session, place.servers);
      return session;
    } finally {
      this.#creating--;
    }
  }

  /** `ready` runs before anything else reaches the session, e.g. to replay it. */
  async open(
    sessionId: string,
    place: SessionFolder,
    signal: AbortSignal,
    ready: (session: Session) => Promise<void>,
  ): Promise<Session> {
    const before = this.#opening.get(sessionId);
    if (before !== undefined) await before.catch(() => {}); // else what comes right behind must find this one
    if (this.#live.get(sessionId)?.turn !== undefined) throw sessionBusy(sessionId);
    const opening = this.#open(sessionId, place, signal).then(async (session) => {
      await ready(session);
      this.touch(session);
      return session;
    });
    this.#opening.set(sessionId, opening);
    try {
      return await opening;
    } finally {
      if (this.#opening.get(sessionId) === opening) this.#opening.delete(sessionId);
    }
  }

  async #open(sessionId: string, place: SessionFolder, signal: AbortSignal): Promise<Session> {
    const offered = await this.#parts.models.offered(signal);
    const live = this.#live.get(sessionId);
    if (live !== undefined) {
      live.offered = offered;
      this.#move(live, place);
      this.#close(live.servers);
      live.servers = this.#openServers(live, place.servers);
      return live;
    }
    this.#checkRoom();
    this.#creating++;
    try {
      const found = await this.#store().open(sessionId);
      if (found === undefined) throw sessionNotFound(sessionId);
      const { session: stored, log } = found;
      if (signal.aborted) {
        log.close();
        throw signal.reason;
      }
      stored.model ??= offered[0]?.id;
      const session = this.#session({ stored, log, offered });
      this.#move(session, place);
      this.#add(session, place.servers);
      return session;
    } finally {
      this.#creating--;
    }
  }

  /** In memory; a promise where it is being loaded. Throws RpcError. */
  find(sessionId: string): Session | Promise<Session> {
    const opening = this.#opening.get(sessionId);
    if (opening !== undefined) {
      return opening.catch(() => {
        throw sessionNotFound(sessionId);
      });
    }
    const session = this.#live.get(sessionId);
    if (session === undefined) throw sessionNotFound(sessionId);
    this.touch(session);
    return session;
  }

  /** Also those that are not open, the latest first and of the same moment by their ids. */
  async *list(): AsyncGenerator<SessionHead> {
    const live = [...this.#live.values()].map(headOf).sort(latestFirst);
    for await (const head of this.#store().list()) {
      if (this.#live.has(head.sessionId)) continue;
      while (live[0] !== undefined && latestFirst(live[0], head) < 0) yield live.shift() as SessionHead;
      yield head;
    }
    yield* live;
  }

  /** Cancels its turn and lets it go; what is stored stays. */
  async close(session: Session): Promise<void> {
    this.cancel(session);
    await session.turn?.ended;
    if (this.#live.get(session.id) !== session) return; // closed meanwhile
    this.#live.delete(session.id);
    session.release();
    this.#close(session.servers);
    this.changed();
  }

  async delete(sessionId: string): Promise<void> {
    await this.#opening.get(sessionId)?.catch(() => {});
    const session = this.#live.get(sessionId);
    if (session !== undefined) await this.close(session);
    const wasStored = this.#store().delete(sessionId);
    if (!wasStored && session === undefined) throw sessionNotFound(sessionId);
  }

  /** A turn that runs is asked to end; the next one is not affected. */
  cancel(session: Session): void {
    session.turn?.controller.abort(new DOMException("The turn was cancelled.", "AbortError"));
  }

  cancelAll(): void {
    for (const session of this.#live.values()) this.cancel(session);
  }

  /** Every session is let go and every process of theirs is gone when it resolves. */
  async stop(): Promise<void> {
    await Promise.all([...this.#live.values()].map((session) => this.close(session)));
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#tellTimer);
    await Promise.all(this.#ending);
    this.#parts.sessionsChanged([]);
  }

  /** Notes that the session is in use. */
  touch(session: Session): void {
    session.lastUsedMs = this.#parts.clock.now();
  }

  /** Notifies at once after a pause, else in a moment. */
  changed(): void {
    if (this.#tellTimer !== undefined) return;
    this.#tell();
    this.#tellTimer = setTimeout(() => {
      this.#tellTimer = undefined;
      this.#tell();
    }, TELL_MS);
    this.#tellTimer.unref();
  }

  now(): string {
    return new Date(this.#parts.clock.wallTime()).toISOString();
  }

  #tell(): void {
    this.#parts.sessionsChanged([...this.#live.values()].map((session) => session.summary()));
  }

  #session(made: Pick<ConstructorParameters<typeof Session>[0], "stored" | "log" | "offered">): Session {
    return new Session({ ...made, processLog: this.#parts.log, now: () => this.now() });
  }

  #add(session: Session, servers: readonly McpServerSpec[]): void {
    this.#live.set(session.id, session);
    session.servers = this.#openServers(session, servers);
    this.touch(session);
    this.#lookForIdle();
    this.changed();
  }

  #move(session: Session, { cwd = session.cwd, additionalDirectories }: SessionFolder): void {
    const isThere = cwd === session.cwd && Bun.deepEquals(additionalDirectories, session.additionalDirectories);
    if (isThere) return;
    Object.assign(session, { cwd, additionalDirectories });
    session.keep({ type: "place", at: this.now(), cwd, additionalDirectories });
  }

  #checkRoom(): void {
    const { maxConcurrent } = this.#parts.options();
    if (this.#live.size + this.#creating < maxConcurrent) return;
    const message = `There are ${maxConcurrent} sessions, which is the limit (acp.max_concurrent): close one with session/close.`;
    throw new RpcError(RPC.application, message, { reason: "too_many_sessions", limit: maxConcurrent });
  }

  #store(): SessionStore {
    const { storagePath } = this.#parts.options();
    return storagePath === undefined ? memoryStore : fileStore(storagePath, this.#parts.log);
  }

  async #written<Result>(writing: Promise<Result>): Promise<Result> {
    try {
      return await writing;
    } catch (error) {
      if (error instanceof RpcError) throw error;
      this.#parts.log.error({ err: error }, "the storage of ACP sessions cannot be written");
      const message = "The storage of sessions cannot be written (acp.storage_path); the log says why.";
      throw new RpcError(RPC.internal, message, { reason: "storage_unavailable" }, error);
    }
  }

  /** Those of the configuration and those of the client. */
  #openServers(session: Session, given: readonly McpServerSpec[]): Promise<McpServers | undefined> | undefined {
    const { mcp } = this.#parts.options();
    const specs = [...Object.values(mcp.servers), ...given];
    if (specs.length === 0) return undefined;
    const { log } = this.#parts;
    const trouble = (server: string, message: string) => {
      log.warn({ sessionId: session.id, server, problem: message }, "an MCP server does not work");
      session.notice(message);
    };
    const say = (level: "info" | "warn", message: string) =>
      log[level]({ sessionId: session.id, part: "mcp" }, message);
    const opened = async () => {
      const open = await serverOpener(this.#workings);
      const { cwd, additionalDirectories: directories } = session;
      return open(specs, { cwd, directories, spawnTimeoutMs: mcp.spawnTimeoutMs, trouble, log: say });
    };
    return opened().catch((err) => {
      log.error({ err, sessionId: session.id }, "the MCP servers of a session could not be opened");
      session.notice("The MCP servers of this session could not be opened; the agent's log says why.");
      return undefined;
    });
  }

  #close(servers: Session["servers"]): void {
    if (servers === undefined) return;
    const ending = servers
      .then((open) => open?.close())
      .catch((err: unknown) => this.#parts.log.error({ err }, "the MCP servers of a session could not be closed"))
      .then(() => void this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #lookForIdle(): void {
    clearTimeout(this.#idleTimer);
    const { idleTimeoutMs } = this.#parts.options();
    const nowMs = this.#parts.clock.now();
    let nextMs = LOOK_MS;
    for (const session of this.#live.values()) {
      const leftMs = session.lastUsedMs + idleTimeoutMs - nowMs;
      if (session.turn !== undefined || this.#opening.has(session.id)) continue;
      if (leftMs > 0) nextMs = Math.min(nextMs, leftMs);
      else this.close(session).catch((err: unknown) => this.#parts.log.error({ err }, "an idle ACP session stays"));
    }
    this.#idleTimer = setTimeout(() => this.#lookForIdle(), Math.max(10, Math.min(nextMs, idleTimeoutMs)));
    this.#idleTimer.unref();
  }
}

function headOf({ id, createdAt, updatedAt, cwd, additionalDirectories, title }: Session): SessionHead {
  return { sessionId: id, createdAt, updatedAt, cwd, additionalDirectories, title };
}

function latestFirst(one: SessionHead, other: SessionHead): number {
  if (one.updatedAt !== other.updatedAt) return one.updatedAt > other.updatedAt ? -1 : 1;
  return one.sessionId < other.sessionId ? -1 : 1;
}
