// The hooks of one request: called in order, their verdicts told in the story and counted, refusals and failures thrown.

import type { HookEvent } from "../config/sections/hooks.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GenerationResult } from "../generation/result.ts";
import { checkGrowth } from "../hooks/changes.ts";
import type { HookAnswer, HookInfo } from "../hooks/define.ts";
import type { HookRunner } from "../hooks/hook-runner.ts";
import type { CheckedVerdict, EventData, LoadedHook } from "../hooks/hook-wire.ts";
import type { HookInUse } from "../hooks/hooks-part.ts";
import { isConversation } from "../hooks/neutral-forms.ts";
import { compact, isObject, type JsonObject, parseJson } from "../lib/json.ts";
import type { RequestRecord } from "../stats/request-record.ts";

/** A hook that is called for the request, with what it has. */
export interface CalledHook {
  hook: HookInUse;
  loaded: LoadedHook;
  /** The one that was there when the request began. */
  runner: HookRunner;
  /** Lets go of the runner, which the request holds. */
  release(): void;
}

type HookChange = CheckedVerdict & { kind: "change" };
/** Throws for a body that cannot be used. */
type BodyCheck = (value: JsonObject) => void;

/** Which backend is asked for what; `format` where the body is not in that of the request. */
interface AskedBackend {
  backend: string;
  model: string;
  format?: string;
}

type Passing = CheckedVerdict & { kind: "pass" };

export interface HookRunParts {
  info: HookInfo;
  record: RequestRecord;
  /** Asks a model for a hook, without hooks. */
  ask(operation: string, body: string): Promise<HookAnswer>;
  called(hook: string, event: string, verdict: string, durationMs: number, times: number): void;
  now(): number;
}

/** Calls of `end` that wait at one hook; beyond it they are dropped. */
const MAX_ENDS = 500;

const MAX_DETAIL_CHARACTERS = 300;

const encoder = new TextEncoder();

export class HookRun {
  readonly info: HookInfo;
  readonly #hooks: readonly CalledHook[];
  readonly #parts: HookRunParts;
  /** JSON that hooks have returned for later events, by their names. */
  readonly #states = new Map<string, string>();
  #attempts = 0;

  constructor(hooks: readonly CalledHook[], parts: HookRunParts) {
    this.#hooks = hooks;
    this.#parts = parts;
    this.info = parts.info;
  }

  /** In the order of the configuration. */
  #having(event: HookEvent): CalledHook[] {
    return this.#hooks.filter(({ hook, loaded }) => hasEvent(hook, loaded, event));
  }

  /** Those that see answers: the first to see the request is the last to see the answer. */
  readers(): CalledHook[] {
    if (this.info.format !== "neutral" && !isConversation(this.info.operation)) return [];
    return this.#hooks
      .filter(({ hook, loaded }) => hasEvent(hook, loaded, "answer") || hasEvent(hook, loaded, "chunk"))
      .toReversed();
  }

  /** Of the hooks that change attempts: answers of others are not theirs. */
  get attemptKey(): string {
    return this.#having("attempt")
      .map(({ hook }) => hook.settings.name)
      .join();
  }

  /**
   * The body as the hooks leave it, or the answer that one of them gives; undefined: the body stays. Throws refusals.
   * @param check - throws for a changed body that cannot stand in place of the other: its hook has failed
   */
  async request(
    body: Uint8Array,
    check: BodyCheck,
  ): Promise<{ body: Uint8Array } | { answer: GenerationResult } | undefined> {
    return await this.#bodyThrough("request", body, {}, check);
  }

  /** The same before a backend is asked. */
  async attempt(
    body: Uint8Array,
    { backend, model, format }: AskedBackend,
    check: BodyCheck,
  ): Promise<Uint8Array | undefined> {
    const attempt = ++this.#attempts;
    const left = await this.#bodyThrough("attempt", body, { backend, model, attempt, ...compact({ format }) }, check);
    return left !== undefined && "body" in left ? left.body : undefined;
  }

  async #bodyThrough(
    event: "request" | "attempt",
    body: Uint8Array,
    data: EventData & { format?: string },
    check: BodyCheck,
  ) {
    let left: Uint8Array | undefined;
    for (const called of this.#having(event)) {
      const given = left ?? body;
      const verdict = await this.call(called, event, { ...data, body: given }, (changed) => {
        checkGrowth(changed.body ?? "", body.length);
        check(objectIn(changed.body ?? ""));
        return changed.changes;
      });
      if (verdict.kind === "answer") return { answer: verdict.result };
      if (verdict.kind === "change" && verdict.body !== undefined) left = encoder.encode(verdict.body);
    }
    return left && { body: left };
  }

  now(): number {
    return this.#parts.now();
  }

  /** Nothing waits for it. */
  end(status: number): void {
    const { record } = this.#parts;
    const { outcome = "", durationMs = 0, backend, failure, usage, promptTokens, completionTokens } = record;
    const tokens = {
      inputTokens: promptTokens ?? usage?.input.total,
      outputTokens: completionTokens ?? usage?.output.total,
    };
    const end = { status, outcome, durationMs, backend, failure, ...tokens };
    const calls = this.#having("end").map(async ({ hook: { settings }, runner }) => {
      const { name, timeout } = settings;
      if (runner.waiting >= MAX_ENDS) {
        this.#parts.called(name, "end", "dropped", 0, 1);
        return;
      }
      const startedAtMs = this.#parts.now();
      const call = { event: "end" as const, hook: name, info: this.info, state: this.#states.get(name), data: { end } };
      const told = await runner.call(call, timeout, this.#parts.ask);
      this.#parts.called(name, "end", "verdict" in told ? "pass" : told.error, this.#parts.now() - startedAtMs, 1);
    });
    void Promise.all(calls).then(() => this.release());
  }

  /** The processes that it uses may end. */
  release(): void {
    for (const { release } of this.#hooks) release();
  }

  /**
   * One call, told and counted. A hook that fails passes where it may, and refuses else.
   * @param format - of the body in the data, where it is not the format of the request
   * @param told - what the story says of a change; undefined: the caller tells it
   */
  async call(
    { hook, runner }: CalledHook,
    event: HookEvent,
    { format, ...data }: EventData & { format?: string },
    told: ((changed: HookChange) => string | undefined) | undefined,
  ): Promise<CheckedVerdict> {
    const { record, now, called, ask } = this.#parts;
    const { name, timeout } = hook.settings;
    const atMs = record.sinceStartMs;
    const startedAtMs = now();
    const info = format === undefined ? this.info : { ...this.info, format };
    const call = { event, hook: name, info, state: this.#states.get(name), data };
    const outcome = await runner.call(call, timeout, ask);
    const durationMs = now() - startedAtMs;
    const step = { kind: "hook" as const, hook: name, event, atMs, durationMs };
    if ("error" in outcome) {
      const { error, message } = outcome;
      record.add({ ...step, verdict: error, detail: message });
      called(name, event, error, durationMs, 1);
      return this.failed(hook, event);
    }
    const { verdict } = outcome;
    if (verdict.state !== undefined) this.#states.set(name, verdict.state);
    const { kind, note } = verdict;
    if (told === undefined && (kind === "pass" || kind === "change")) return verdict;
    called(name, event, kind, durationMs, 1);
    let detail: string | undefined;
    try {
      if (kind === "change") detail = told?.(verdict);
    } catch (error) {
      record.add({ ...step, verdict: "error", detail: (error as Error).message.slice(0, MAX_DETAIL_CHARACTERS) });
      return this.failed(hook, event);
    }
    if (kind === "refuse") detail = verdict.code;
    if (kind !== "pass" || note !== undefined) record.add({ ...step, verdict: kind, detail, note });
    if (kind === "refuse") throw refusal(record, name, verdict);
    return verdict;
  }

  /** Tells of the calls for the pieces of a stream together. */
  tellChunks({ hook }: CalledHook, { changes, passes, durationMs }: ChunkCounts): void {
    const { called, record } = this.#parts;
    const { name } = hook.settings;
    const times = changes + passes;
    if (times === 0) return;
    if (changes > 0) called(name, "chunk", "change", durationMs / times, changes);
    if (passes > 0) called(name, "chunk", "pass", durationMs / times, passes);
    if (changes === 0) return;
    record.add({
      kind: "hook",
      hook: name,
      event: "chunk",
      verdict: "change",
      durationMs,
      detail: `${changes} of ${times} pieces`,
    });
  }

  /** A hook could not be used: the request goes on where that is allowed. */
  failed({ settings: { name, on_error } }: HookInUse, event: HookEvent): Passing {
    if (on_error === "pass") return { kind: "pass" };
    this.#parts.record.lastFailure = `hook_${name}`;
    throw new GatewayError(
      ERRORS.hookFailed,
      `The hook ${name} failed at ${event}, and requests are refused without it.`,
    );
  }

  /** For a copy of the request, whose answer no client gets: attempts alone. */
  forCopy(record: RequestRecord): HookRun {
    const attempts = this.#having("attempt").map((called) => ({
      ...called,
      loaded: { ...called.loaded, events: ["attempt"] as const },
      release: called.runner.hold(),
    }));
    return new HookRun(attempts, { ...this.#parts, record });
  }
}

export interface ChunkCounts {
  changes: number;
  passes: number;
  durationMs: number;
}

export function hasEvent({ settings }: HookInUse, { events }: LoadedHook, event: HookEvent): boolean {
  return events.includes(event) && (settings.events === undefined || settings.events.includes(event));
}

function refusal(
  record: RequestRecord,
  hook: string,
  { status, code, message }: CheckedVerdict & { kind: "refuse" },
): GatewayError {
  record.lastFailure = `hook_${hook}`;
  return new GatewayError({ ...ERRORS.hookRefused, status, code }, message, { details: { hook } });
}

function objectIn(text: string): JsonObject {
  const value = parseJson(text);
  return isObject(value) ? value : {};
}
