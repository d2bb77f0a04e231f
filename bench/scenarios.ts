// What is measured, as data: one row per scenario. A new scenario is a new row here and nothing else.

import type { ClientFormatName } from "./formats.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import type { SubjectName } from "./subjects.ts";
import { modelFor } from "./wire.ts";

export interface Target {
  /** What is compared with the limit: the gateway's own figure, its ratio, or what it adds to direct. */
  of: "value" | "ratio" | "added";
  limit: number;
  /** What is wished for beyond the limit. */
  aim?: number;
}

/** A figure of a load result, and how the table shows it. */
export interface Metric {
  title: string;
  unit: string;
  digits: number;
  /** added: shown as the difference to direct, where direct has a figure of its own. */
  show: "value" | "added";
  read: (result: LoadResult) => number;
  /** CPU is not read for direct, because no process stands between. */
  withoutDirect?: boolean;
  target?: Target;
}

export interface GatewayParts {
  /** Default openai, which takes chat as it comes. */
  backendType?: string;
  /** The source tree whose command is run; default this one. */
  tree?: string;
  /** More sections, and more of the section `server`. */
  settings?: Readonly<Record<string, object>>;
}

export interface LoadScenario {
  name: string;
  title: string;
  job: LoadJob;
  /** What the gateway's configuration has beyond the usual; such a scenario gets a gateway of its own. */
  gateway?: GatewayParts;
  /**
   * What it is compared with: chat on both sides, through the usual gateway, in the same rounds. Only Signalbox is
   * measured then, because nothing else here can do the same.
   */
  passedThrough?: LoadJob;
  /**
   * A gateway of this configuration is loaded in turns with the one of the scenario, and only these two are measured.
   * Both are started again for every round: the same program differs by a tenth from one process to the next.
   */
  comparedWith?: GatewayParts;
  /** Who is measured; default the columns of the table. These are also listed one by one, with their threads. */
  subjects?: readonly SubjectName[];
  metrics: readonly Metric[];
}

/** Who has a column in the table. */
export const COLUMNS: readonly SubjectName[] = ["direct", "nginx", "bare", "signalbox"];

/** From the runtime's sockets to the gateway, by fetch and by the gateway's own client: each layer does a little more. */
const PLAIN_LADDER: readonly SubjectName[] = [
  "direct",
  "nginx",
  "raw",
  "serve",
  "bare",
  "fetch-duties",
  "client",
  "client-duties",
  "signalbox-fetch",
  "signalbox",
];
/** Without an upstream nothing streams. */
const STREAM_LADDER = PLAIN_LADDER.filter((name) => name !== "serve");

export function subjectsOf({ subjects }: LoadScenario): readonly SubjectName[] {
  return subjects ?? COLUMNS;
}

const cpuPerRequest: Metric = {
  title: "CPU per request",
  unit: "µs",
  digits: 1,
  show: "value",
  read: (result) => result.cpuMicroseconds / result.requests,
  withoutDirect: true,
};

const cpuPerChunk: Metric = {
  title: "CPU per chunk",
  unit: "µs",
  digits: 1,
  show: "value",
  read: (result) => result.cpuMicroseconds / result.chunks,
  withoutDirect: true,
};

const requestsPerSecond: Metric = {
  title: "requests per second",
  unit: "/s",
  digits: 0,
  show: "value",
  read: (result) => result.requests / result.seconds,
};

const addedMedian: Metric = {
  title: "added latency p50",
  unit: "ms",
  digits: 3,
  show: "added",
  read: (result) => result.latencyMs.p50,
};

const addedTail: Metric = {
  title: "added latency p99",
  unit: "ms",
  digits: 3,
  show: "added",
  read: (result) => result.latencyMs.p99,
};

const addedFirstChunk: Metric = {
  title: "added time to first chunk p50",
  unit: "ms",
  digits: 3,
  show: "added",
  read: (result) => result.firstChunkMs.p50,
};

const addedFirstChunkTail: Metric = {
  ...addedFirstChunk,
  title: "added time to first chunk p99",
  read: (result) => result.firstChunkMs.p99,
};

const PLAIN_JOB: LoadJob = {
  pattern: { kind: "closed", connections: 32 },
  answer: { kind: "plain", bytes: 1024 },
  promptBytes: 1000,
  warmUpMs: 500,
  measureMs: 1600,
};

const STREAM_JOB: LoadJob = {
  pattern: { kind: "paced", perSecond: 100, connections: 250 },
  answer: { kind: "stream", chunks: 100, everyMs: 10 },
  promptBytes: 1000,
  warmUpMs: 1100,
  measureMs: 1600,
};

const NO_LIMIT = { requests_per_second: 1_000_000 };
const UNREACHED_LIMITS = {
  enabled: true,
  limits: { per_client: NO_LIMIT, per_backend: NO_LIMIT, per_api_key: NO_LIMIT, global: NO_LIMIT },
};

const PEERS: readonly SubjectName[] = ["direct", "nginx", "signalbox", "portkey", "litellm"];

export const LOAD_SCENARIOS: readonly LoadScenario[] = [
  {
    name: "plain",
    title: "plain 1 KB answers, 1 KB prompts, 32 connections as fast as they go",
    job: PLAIN_JOB,
    subjects: PLAIN_LADDER,
    metrics: [{ ...cpuPerRequest, target: { of: "ratio", limit: 2.4, aim: 2.0 } }, requestsPerSecond],
  },
  {
    name: "prompt",
    title: "100 KB prompts, 1 KB answers, 16 connections as fast as they go",
    job: {
      pattern: { kind: "closed", connections: 16 },
      answer: { kind: "plain", bytes: 1024 },
      promptBytes: 100_000,
      warmUpMs: 400,
      measureMs: 1200,
    },
    metrics: [cpuPerRequest, requestsPerSecond],
  },
  {
    name: "latency",
    title: "plain 1 KB answers, 1,000 requests/s paced",
    job: {
      pattern: { kind: "paced", perSecond: 1000, connections: 64 },
      answer: { kind: "plain", bytes: 1024 },
      promptBytes: 1000,
      warmUpMs: 300,
      measureMs: 1800,
    },
    metrics: [addedMedian, addedTail, cpuPerRequest],
  },
  {
    name: "stream",
    title: "streams of 100 chunks, one every 10 ms, 100 streams open",
    job: STREAM_JOB,
    subjects: STREAM_LADDER,
    metrics: [{ ...cpuPerChunk, target: { of: "ratio", limit: 1.2 } }, addedFirstChunk],
  },
  {
    name: "first-chunk",
    title: "short streams, 100 begun per second",
    job: {
      pattern: { kind: "paced", perSecond: 100, connections: 64 },
      answer: { kind: "stream", chunks: 10, everyMs: 10 },
      promptBytes: 1000,
      warmUpMs: 300,
      measureMs: 1800,
    },
    metrics: [{ ...addedFirstChunk, target: { of: "added", limit: 1 } }, addedFirstChunkTail],
  },
  {
    name: "guards",
    title:
      "plain, with circuit breaker, rate limits, and a cache that is looked into and never hit; against all three off",
    job: PLAIN_JOB,
    // No request is like another, and no answer is small enough to be kept.
    gateway: { settings: { rate_limiting: UNREACHED_LIMITS, response_cache: { enabled: true, max_response_size: 1 } } },
    comparedWith: { settings: { circuit_breaker: { enabled: false } } },
    metrics: [{ ...cpuPerRequest, target: { of: "ratio", limit: 1.1 } }],
  },
  {
    name: "cache-filled",
    title: "plain, with a cache that keeps every answer and gives none again; against no cache",
    job: PLAIN_JOB,
    gateway: { settings: { response_cache: { enabled: true } } },
    comparedWith: {},
    metrics: [cpuPerRequest],
  },
  {
    name: "counting",
    title: "plain, with statistics, metrics and their history; against none of them",
    job: PLAIN_JOB,
    gateway: {},
    comparedWith: { settings: { admin: { stats: { enabled: false } }, metrics: { enabled: false } } },
    metrics: [cpuPerRequest],
  },
  translatedStream("messages-to-chat", "Messages client, chat backend", "messages", "generic"),
  translatedStream("responses-to-chat", "Responses client, chat backend", "responses", "generic"),
  translatedStream("chat-to-messages", "chat client, Messages backend", "chat", "anthropic"),
  translatedStream("chat-to-gemini", "chat client, generateContent backend", "chat", "gemini"),
  {
    name: "plain-messages-to-chat",
    title: "plain, translated: Messages client, chat backend",
    job: { ...PLAIN_JOB, client: "messages" },
    gateway: { backendType: "generic" },
    passedThrough: PLAIN_JOB,
    metrics: [cpuPerRequest],
  },
  {
    name: "peers",
    title: "plain 1 KB answers, beside peers, each with one worker, as fast as it goes",
    job: { ...PLAIN_JOB, warmUpMs: 2000, measureMs: 4000 },
    subjects: PEERS,
    metrics: [cpuPerRequest, requestsPerSecond],
  },
  {
    name: "peers",
    title: "plain 1 KB answers, beside peers, 20 requests/s paced",
    job: { ...PLAIN_JOB, pattern: { kind: "paced", perSecond: 20, connections: 32 }, measureMs: 5000 },
    subjects: PEERS,
    metrics: [cpuPerRequest, addedMedian, addedTail],
  },
];

function translatedStream(name: string, pair: string, client: ClientFormatName, backendType: string): LoadScenario {
  return {
    name,
    title: `streams of 100 chunks, translated: ${pair}`,
    job: { ...STREAM_JOB, client },
    gateway: { backendType },
    passedThrough: STREAM_JOB,
    metrics: [{ ...cpuPerChunk, target: { of: "ratio", limit: 1.15 } }],
  };
}

/** Load before the first scenario: a runtime that compiles while it runs is slower in its first seconds. */
export const WARM_UP: LoadJob = {
  pattern: { kind: "closed", connections: 32 },
  answer: { kind: "plain", bytes: 1024 },
  promptBytes: 1000,
  warmUpMs: 0,
  measureMs: 3000,
};

/** Load before the open streams, so that what every process allocates once is not charged to the streams. */
export const MEMORY_WARM_UP: LoadJob = {
  pattern: { kind: "paced", perSecond: 200, connections: 64 },
  answer: { kind: "stream", chunks: 5, everyMs: 10 },
  promptBytes: 1000,
  warmUpMs: 100,
  measureMs: 700,
};

export const OPEN_STREAMS = 1000;

/** Slow streams: all are opened within a second, stay open over the measured time and end by themselves. */
export const OPEN_STREAMS_JOB: LoadJob = {
  pattern: { kind: "paced", perSecond: OPEN_STREAMS, connections: OPEN_STREAMS, total: OPEN_STREAMS },
  answer: { kind: "stream", chunks: 9, everyMs: 500 },
  promptBytes: 1000,
  warmUpMs: 1400,
  measureMs: 2000,
};

/** Every model that a load asks for. */
export const ALL_MODELS: readonly string[] = [
  ...new Set(
    [...LOAD_SCENARIOS.map(({ job }) => job), MEMORY_WARM_UP, OPEN_STREAMS_JOB].map(({ answer }) => modelFor(answer)),
  ),
];

export const IDLE_MEMORY_TARGET_MEGABYTES = 70;
export const OPEN_STREAM_TARGET_KILOBYTES = 20;
export const COLD_START_TARGET_SECONDS = 0.2;
