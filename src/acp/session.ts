// One session in memory: what is said in it, what it is set to, and what it holds open.

import type { ContextMeasure, Mode } from "../agent/agent.ts";
import { type Remembered, rememberedAnswers } from "../agent/remembered.ts";
import type { Message } from "../generation/content.ts";
import type { Effort } from "../generation/request.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Logger } from "../logging/logger.ts";
import type { McpServers } from "../mcp/servers.ts";
import type { OfferedModel, SessionRecord as SessionSummary } from "./parts.ts";
import type { CallNote, SessionLog, SessionRecord, StoredSession } from "./storage/store.ts";
import { encodeConfigOptions, encodeModes } from "./wire/config-options.ts";

/** Notices that wait for the next prompt. */
const MAX_NOTICES = 16;

/** Calls whose looks are remembered for a replay. */
const MAX_CALL_NOTES = 5_000;

interface RunningTurn {
  readonly controller: AbortController;
  /** Resolves when its prompt is answered. */
  readonly ended: Promise<void>;
}

interface SessionParts {
  stored: StoredSession;
  log: SessionLog;
  offered: readonly OfferedModel[];
  processLog: Logger;
  now(): string;
}

export class Session {
  readonly id: string;
  readonly createdAt: string;
  updatedAt: string;
  cwd: string;
  additionalDirectories: readonly string[];
  title: string | undefined;
  mode: Mode;
  model: string | undefined;
  effort: Effort | undefined;
  history: Message[];
  readonly calls: Map<string, CallNote>;
  readonly remembered: Remembered = rememberedAnswers();
  readonly measure: ContextMeasure = { ratio: 1 };
  /** The models as they were offered last. */
  offered: readonly OfferedModel[];
  /** Undefined: it has none. Never rejects. */
  servers: Promise<McpServers | undefined> | undefined;
  turn: RunningTurn | undefined;
  /** By the monotonic clock. */
  lastUsedMs = 0;
  #notices: string[] = [];
  #isKept = true;
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    const { stored, offered } = parts;
    this.#parts = parts;
    this.id = stored.sessionId;
    this.createdAt = stored.createdAt;
    this.updatedAt = stored.updatedAt;
    this.cwd = stored.cwd;
    this.additionalDirectories = stored.additionalDirectories;
    this.title = stored.title;
    this.mode = stored.mode;
    this.model = stored.model;
    this.effort = stored.effort;
    this.history = stored.history;
    this.calls = stored.calls;
    this.offered = offered;
  }

  get sizeBytes(): number {
    return this.#parts.log.sizeBytes;
  }

  /** Writes it down. A conversation with a gap cannot be used again, so that nothing more is written after a failure. */
  keep(record: SessionRecord): void {
    this.updatedAt = this.#parts.now();
    if (!this.#isKept) return;
    try {
      this.#parts.log.append(record);
    } catch (err) {
      this.#isKept = false;
      this.#parts.processLog.error({ err, sessionId: this.id }, "an ACP session cannot be written down any longer");
      this.notice("This conversation can no longer be saved: the storage of sessions has failed.");
    }
  }

  choose(choices: { mode?: Mode; model?: string; effort?: Effort | undefined }): void {
    Object.assign(this, choices);
    const { mode, model, effort } = this;
    this.keep({ type: "choices", at: this.#parts.now(), mode, model, effort });
  }

  nameCall(id: string, note: CallNote): void {
    if (this.calls.size >= MAX_CALL_NOTES) return;
    this.calls.set(id, note);
    this.keep({ type: "call", id, ...note });
  }

  /** To be sent with the next prompt: between prompts the editor does not listen. */
  notice(text: string): void {
    if (this.#notices.length < MAX_NOTICES) this.#notices.push(text);
  }

  takeNotices(): string[] {
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  summary(): SessionSummary {
    return {
      sessionId: this.id,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      mode: this.mode,
      model: this.model ?? "",
      historyLength: this.history.length,
      isBusy: this.turn !== undefined,
    };
  }

  configOptions(): JsonObject[] {
    return encodeConfigOptions(this, this.offered);
  }

  /** The session as Signalbox's own session methods report it. */
  fields(): JsonObject {
    const { id: sessionId, createdAt, updatedAt, mode, history } = this;
    return { sessionId, createdAt, updatedAt, mode, historyLength: history.length };
  }

  /** That object and what the public protocol answers for a session that was opened. */
  opened(): JsonObject {
    return { ...this.fields(), modes: encodeModes(this.mode), configOptions: this.configOptions() };
  }

  /** Closes the log, so that another process may open the session. */
  release(): void {
    this.#parts.log.close();
  }
}
