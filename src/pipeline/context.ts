// What the pipeline knows of a request; free of HTTP, so that other front doors can make one too.

import type { Caller } from "../access/api-keys.ts";
import type { Backend } from "../backends/backend.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Usage } from "../generation/usage.ts";
import { NO_STORY, type Story } from "../stats/stories.ts";
import type { TraceContext } from "../tracing/trace-context.ts";
import type { Client } from "../upstream/exchange.ts";

export interface RequestContext {
  /** The client's own, where it sent one: two requests may have the same. */
  readonly id: string;
  /** The gateway's own: no two requests have the same. */
  readonly ownId: string;
  readonly trace: TraceContext;
  /** Clock milliseconds. */
  readonly startedAtMs: number;
  /** One request never sees two configurations. */
  readonly settings: Settings;
  readonly client: Client;
  caller: Caller | undefined;
  /** Request headers that may be handed on to a backend. */
  readonly clientHeaders: Headers;
  peerAddress(): string | undefined;
  /** What happened, for the access log; filled in on the way. */
  readonly record: RequestRecord;
}

export interface RequestRecord {
  method: string;
  path: string;
  model: string | undefined;
  /** The model of the last attempt, where it is not the one that was asked for. */
  answeredBy: string | undefined;
  stream: boolean;
  backend: string | undefined;
  attempts: number;
  /** Why the request failed, or why an earlier attempt did. */
  failure: string | undefined;
  /** What its body takes of the memory for bodies (server/body-budget.ts). */
  heldBytes?: number | undefined;
  /** What was asked for, e.g. "chat"; undefined for requests that ask no model. */
  operation?: string | undefined;
  /** What was to be asked for, where the request was refused before its story began. */
  refused?: string | undefined;
  /** The end user, as the request names them (`user`, `safety_identifier`, `metadata.user_id`). */
  user?: string | undefined;
  /** It was a backend or the gateway that could not, whatever the status says: 404 for a model whose backends are away. */
  isOutage?: boolean | undefined;
  /** The rules by which nobody else was asked after the last attempt failed. */
  endedBy?: string | undefined;
  /** Time of the attempts that are over. */
  backendMs?: number | undefined;
  /** Until there was an answer; undefined when there was a failure only. */
  firstByteMs?: number | undefined;
  /** What the response cache decided. */
  cache?: "HIT" | "MISS" | "BYPASS" | undefined;
  /** Why another model was asked, e.g. "error_code_429". */
  fallbackReason?: string | undefined;
  /** Got its answer from another request's call. */
  shared?: boolean | undefined;
  /** Why a stream broke off after its status had been sent. */
  streamFailure?: string | undefined;
  /** What the client was told. */
  error?: { type: string; code: string | number | null; message: string } | undefined;
  /** NO_STORY until it is known what is asked. */
  story: Story;
  /** Tokens of the answer, where they are known. */
  usage?: Usage | undefined;
  /** Why the model stopped, where the answer was read. */
  finish?: string | undefined;
  /** What the translation to the last backend could not carry. */
  dropped?: readonly string[] | undefined;
  /** Undefined where nobody records the request. */
  spans?: RequestSpans | undefined;
}

/** Of a request that nothing is known of yet. All that nearly every request fills in stands in it from the start. */
export function newRecord(method: string, path: string): RequestRecord {
  return {
    method,
    path,
    operation: undefined,
    model: undefined,
    answeredBy: undefined,
    stream: false,
    backend: undefined,
    attempts: 0,
    failure: undefined,
    story: NO_STORY,
    heldBytes: undefined,
    backendMs: undefined,
    firstByteMs: undefined,
    cache: undefined,
    usage: undefined,
    spans: undefined,
  };
}

/** A request as spans of a trace; its recorder is asked for in request-spans.ts. */
export interface RequestSpans {
  attempt(backend: Backend, model: string, startedAtMs: number): AttemptSpan;
  /** Called once, when the answer is over; `failure` is undefined for a success. */
  finished(context: RequestContext, status: number, durationMs: number, failure: string | undefined): void;
}

/** Ends by itself: an attempt may outlive the request that began it, because others share it. */
export interface AttemptSpan {
  /** What the backend is told: its own spans are children of this one. */
  readonly trace: TraceContext;
  /** `status` is that of the backend's answer, where one came; `firstTokenMs` is known of streams. */
  ended(
    durationMs: number,
    failure: string | undefined,
    status: number | undefined,
    firstTokenMs: number | undefined,
    record: RequestRecord,
  ): void;
}

/** Where the board comes from, and how the pipeline tells of what it met. */
export type BackendWatch = Pick<Fleet, "board" | "firstChecks" | "refreshModels" | "suspect" | "absenceOf">;
