// What the pipeline knows of a request; free of HTTP, so that other front doors can make one too.

import type { Caller } from "../access/caller.ts";
import type { Backend } from "../backends/backend.ts";
import type { VendorTurn } from "../batches/vendor/vendor-turn.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { RecordedExchange } from "../recording/recorder.ts";
import type { AttemptStep, RequestRecord } from "../stats/request-record.ts";
import type { TraceContext } from "../tracing/trace-context.ts";
import type { Client } from "../upstream/exchange.ts";
import type { HookRun } from "./hook-run.ts";

export interface RequestContext {
  /** The client's own, where it sent one: two requests may have the same. */
  readonly id: string;
  /** Of HTTP; empty for requests that came another way. */
  readonly method: string;
  readonly path: string;
  readonly trace: TraceContext;
  /** One request never sees two configurations. */
  readonly settings: Settings;
  readonly client: Client;
  caller: Caller | undefined;
  /** Request headers that may be handed on to a backend. */
  readonly clientHeaders: Headers;
  peerAddress(): string | undefined;
  /** What becomes of the request; written on the way. */
  readonly record: RequestRecord;
  /** What its body takes of the memory for bodies (server/body-budget.ts). */
  heldBytes: number;
  /** The class in the queue that the gateway itself gives it; undefined: that of its key, its route or its header. */
  queueClass?: string | undefined;
  /** Of a line of a batch that a vendor's own batch may answer. */
  vendorTurn?: VendorTurn | undefined;
  /** Hears when the request begins to wait in the queue, and when that is over. */
  queue?: { entered(): void; left(): void } | undefined;
  /** Undefined where no hook is called for the request. */
  hooks?: HookRun | undefined;
  /** Undefined where its bodies are not kept. */
  recording?: RecordedExchange | undefined;
  /** Undefined where the request is not recorded as spans. */
  spans: RequestSpans | undefined;
}

/** A request as spans of a trace; its recorder is asked for in request-spans.ts. */
export interface RequestSpans {
  attempt(backend: Backend, model: string, startedAtMs: number): AttemptSpan;
  /** Called once, when the answer is over. */
  finished(context: RequestContext): void;
}

/** Ends by itself: an attempt may outlive the request that began it, because others share it. */
export interface AttemptSpan {
  /** What the backend gets: its own spans are children of this one. */
  readonly trace: TraceContext;
  /** `step` has ended; `firstTokenMs` is known of streams. */
  ended(step: AttemptStep, firstTokenMs: number | undefined, record: RequestRecord): void;
}

/** Where the board comes from, and how the pipeline tells of what it met. */
export type BackendWatch = Pick<Fleet, "board" | "firstChecks" | "refreshModels" | "suspect" | "absenceOf">;
