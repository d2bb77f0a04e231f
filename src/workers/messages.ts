// What the primary and its workers tell each other: plain data, and which of them does what for the other.

import type { FromOwner, ToOwner } from "../admission/remote-admission.ts";
import type { HealthState } from "../backends/board.ts";
import type { Amounts } from "../budgets/amounts.ts";
import type { BudgetStanding, OverBudget } from "../budgets/budgets.ts";
import type { Payer, Spender } from "../budgets/rules.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Intake } from "../generation/intake.ts";
import type { Quota } from "../generation/quota.ts";
import type { KvIndexImage } from "../kv-index/kv-index.ts";
import type { KvNews } from "../kv-index/kv-teller.ts";
import type { JsonObject } from "../lib/json.ts";
import type { RecordingResult, UploadResult } from "../metrics/gateway-events.ts";
import type { FoundModel, ModelListEntry } from "../models/list.ts";
import type { KeptResponse } from "../pipeline/response-store.ts";
import type { Decision } from "../rate-limit/decision.ts";
import type { LimitQuery } from "../rate-limit/limit-rules.ts";
import type { SealedRecording } from "../recording/recording.ts";
import type { AnswerForm, CachedAnswer, CacheStatistics } from "../response-cache/cache.ts";
import type { CircuitOutcome, CircuitState } from "../routing/circuit-breaker.ts";
import type { AttemptOutcome } from "../stats/collector.ts";
import type { ToldRecord } from "../stats/request-record.ts";

/** What a worker needs to know of a backend besides its settings. */
export interface BackendFacts {
  name: string;
  /** Of the counters behind this name: another server under the same name has another one. */
  slot: number;
  health: HealthState;
  held: boolean;
  models: readonly string[];
  intakes: readonly (readonly [model: string, intake: Intake])[];
  kind: string;
  why: string;
  nextLookMs: number | undefined;
}

/** A circuit as its owner sees it. */
export interface CircuitView {
  name: string;
  isEnabled: boolean;
  state: CircuitState;
  opensInMs: number;
  /** Failures are being counted: a success says something. */
  isCounting: boolean;
  /** Another trial may begin. */
  hasRoom: boolean;
}

export interface State {
  /** Undefined: as before. */
  snapshot?: ConfigSnapshot | undefined;
  facts: readonly BackendFacts[];
  circuits: readonly CircuitView[];
}

export interface Start extends State, Fixed {
  /** Where others join the calls that this worker makes. */
  ownSocket: string;
  snapshot: ConfigSnapshot;
  kvIndex: KvIndexImage | undefined;
}

/** What stays as it is while the primary lives. */
export interface Fixed {
  /** Of all workers. */
  count: number;
  /** The addresses to open, with the port that was taken. */
  addresses: readonly string[];
  keySalt: string;
  /** Undefined: nothing can be kept. */
  dataFolder: string | undefined;
  cacheSeed: number;
  /** Where admin requests go, and what lets them in there. */
  socket: string;
  secret: string;
}

/** `undefined`: it listens. */
export type Started = { problem: string | undefined };

/** What became of attempts at one backend whose circuit was closed. */
interface CircuitReport {
  name: string;
  outcome: CircuitOutcome;
  /** Clock milliseconds of the primary. */
  admittedMs: number;
  endedMs: number;
}

/** Numbers of a process as a whole. */
export interface ProcessNumbers {
  openStreams: number;
  /** Of any kind. */
  openRequests: number;
  lagSeconds: number;
  residentBytes: number;
  heapBytes: number;
  cpuSeconds: number;
  redis: readonly { use: string; isThere: boolean }[];
  /** Of a response cache on a server, which each process asks itself. */
  cache: CacheStatistics | undefined;
  /** Whether the receiver takes the traces that this process sends; undefined where there is none. */
  tracesUp: boolean | undefined;
}

/** How long a backend takes to its first byte, as BackendCounters has it. */
interface Latency {
  latencyMs: number | undefined;
  expectedMs: number | undefined;
  latencyAgeMs: number;
}

/** What a backend has to do for other processes. */
export interface Load extends Latency {
  slot: number;
  inFlight: number;
}

export interface BackendNumbers extends Latency {
  slot: number;
  inFlight: number;
  /** Since the report before. */
  attempts: number;
  failures: number;
  credentialError: string | undefined;
}

export type GatewayEvent =
  | { kind: "rateLimited"; scope: string }
  | { kind: "redisUnanswered"; use: string }
  | { kind: "queueWaited"; className: string; durationMs: number }
  | { kind: "queueShed"; className: string; reason: string }
  | { kind: "hookCalled"; hook: string; event: string; verdict: string; durationMs: number; times: number }
  | { kind: "hookRestarted"; hook: string; cause: string }
  | { kind: "otlpExported"; signal: string; isOk: boolean; times: number }
  | { kind: "otlpDropped"; spans: number }
  | { kind: "recorded"; result: RecordingResult; times: number }
  | { kind: "fileUploaded"; result: UploadResult };

/** What has happened in a worker since the report before. */
export interface Report {
  /** Gathered, as JSON: the runtime takes several times as long for so many objects. */
  gathered: string;
  events: GatewayEvent[];
  backends: BackendNumbers[];
  process: ProcessNumbers;
}

export interface Gathered {
  attempts: ToldAttempt[];
  /** Those that the primary does not know come in the order in which they began. */
  requests: ToldRecord[];
}

/** The arguments of Observer.attempted. */
interface ToldAttempt {
  backend: string;
  outcome: AttemptOutcome;
  failure?: string | undefined;
  durationMs: number;
  firstTokenMs?: number | undefined;
}

/** What is known of the ids that a request for a Responses answer names. */
export interface KnownId {
  id: string;
  response?: KeptResponse | undefined;
  item?: JsonObject | undefined;
  owner?: string | undefined;
}

interface AskedAnswer {
  question: string;
  form: AnswerForm;
  otherForm: AnswerForm | undefined;
  sketch: number;
  model: string;
}

/** What the primary does for a worker. */
export type PrimaryDesk = {
  report(report: Report): void;
  /** What has changed at backends, ahead of the next report. */
  loads(backends: BackendNumbers[]): void;
  kvNews(news: KvNews): void;
  suspect(name: string): void;
  firstChecks(): Promise<void>;
  refreshModels(): Promise<void>;
  listModels(): Promise<readonly ModelListEntry[]>;
  findModel(id: string): Promise<FoundModel | undefined>;
  /** Milliseconds of its clock. */
  clock(): number;
  outcome(report: CircuitReport): void;
  /** That happened within the last moment. */
  successes(name: string, count: number): void;
  /** A trial of a half-open circuit, under the worker's own number for it; false: not now. */
  lease(name: string, lease: number, inPanic: boolean): boolean;
  settle(lease: number, outcome: CircuitOutcome): void;
  take(query: LimitQuery): { decision: Decision | undefined };
  takeForGuess(query: LimitQuery): { decision: Decision | undefined };
  putBack(query: LimitQuery): void;
  /** The refusal; undefined when it is admitted. */
  takeBackend(name: string): { refusal: Decision | undefined };
  /** Under the worker's own number for it. */
  reserveSpending(
    id: number,
    spender: Spender,
    bound: Amounts,
  ): Promise<{ refusal?: OverBudget | undefined; quota?: Quota | undefined }>;
  budgetQuota(spender: Spender): Promise<Quota | undefined>;
  budgetStandings(caller: Payer): Promise<BudgetStanding[]>;
  /** Of an attempt that was let in, whether the primary had answered in time or not. */
  settleSpending(id: number, spent: Amounts): void;
  admission(message: ToOwner): void;
  /** Answered with how many of them are kept. */
  keepRecordings(recordings: readonly SealedRecording[]): Promise<number>;
  cached(asked: AskedAnswer): CachedAnswer | undefined;
  cache(asked: AskedAnswer, answer: CachedAnswer, ttlMs: number): void;
  known(owner: string, ids: readonly string[]): Promise<KnownId[]>;
  /** The socket of the worker that makes the call of this digest. */
  lead(digest: string, socket: string, ttlMs: number, isNotAt: string | undefined): string;
  landed(digest: string, socket: string): void;
  renewResponse(owner: string, id: string): Promise<boolean>;
  keepResponse(owner: string, id: string, items: readonly JsonObject[]): void;
  keepBackend(owner: string, id: string, name: string): void;
  noteItems(owner: string, ids: readonly string[]): void;
};

/** What a worker does for the primary. */
export type WorkerDesk = {
  start(start: Start): Promise<Started>;
  /** Answered when it is in force. */
  follow(state: State): true;
  ping(): true;
  /** Of backends whose load has changed. */
  loads(loads: Load[]): void;
  kvNews(news: KvNews): void;
  admission(message: FromOwner): void;
  /** Answered when it is forgotten. */
  forgetKvCaches(backendName: string | undefined): true;
  /** Everything that has happened until now has been reported. */
  flush(): true;
  /**
   * For the first time each answer ends its connection, so that clients come again elsewhere; then no new connections. Exits
   * when all is over, or the time.
   */
  drain(timeoutMs: number, leavingMs: number): void;
};
