// The events of one engine's cache: a stream that is read as long as it stands, and connected to again when it ends.

import type { Backend } from "../backends/backend.ts";
import { controlHeaders, failureText, statusText, timerMs } from "../backends/control-request.ts";
import type { BackendAnswer, BackendCall, Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { EventFramer, readEvents } from "../protocols/sse.ts";
import { type CacheEvent, readCacheEvent } from "./cache-event.ts";
import { EventQueue } from "./event-queue.ts";

type EventSourceSettings = Settings["kv_cache_index"]["event_sources"][number];

export interface EventSourceParts {
  settings: EventSourceSettings;
  transport: Transport;
  /** As it is known now; undefined while there is none of the name. */
  backendOf(name: string): Backend | undefined;
  told(event: CacheEvent): void;
  clock: Clock;
  random(): number;
  log: Pick<Logger, "info" | "warn">;
}

export interface EventSourceView {
  backend: string;
  connected: boolean;
  events: number;
  dropped: number;
  /** Milliseconds since 1970. */
  lastEventMs: number | undefined;
  lastError: string | undefined;
}

export interface EventSource {
  view(): EventSourceView;
  close(): void;
}

const MAX_QUEUED = 4_096;
/** Events that the index takes in one go. */
const BATCH = 512;
/** An event of a cache has a hash and a few words. */
const MAX_EVENT_BYTES = 64 * 1024;
const HEAD_TIMEOUT_MS = 10_000;
/** A connection that has died without a word is noticed by its silence. */
const SILENCE_MS = 5 * 60_000;
/** A connection that stood so long has shown that it works. */
const STEADY_MS = 30_000;
const MAX_DELAY_MS = 60_000;

/** Where the events are asked for, with which headers. */
interface SourceTarget {
  backend: Backend;
  path: string;
  headers: Record<string, string>;
}

export function openEventSource(parts: EventSourceParts): EventSource {
  const { settings, transport, clock, log } = parts;
  const { backend_name: name, endpoint, reconnect_interval_ms: baseDelayMs } = settings;
  const backoff = { baseDelayMs, maxDelayMs: Math.max(baseDelayMs, MAX_DELAY_MS), multiplier: 2, jitter: true };
  const queue = new EventQueue<CacheEvent>(MAX_QUEUED);
  const decoder = new TextDecoder();
  let call: BackendCall | undefined;
  let timer: Timer | undefined;
  let draining: Timer | undefined;
  let isClosed = false;
  let isConnected = false;
  let connectedAtMs = 0;
  let failures = 0;
  let events = 0;
  let lastEventMs: number | undefined;
  let lastError: string | undefined;

  async function connect(): Promise<void> {
    const backend = parts.backendOf(name);
    if (backend === undefined || !backend.enabled) {
      lost(undefined, backend === undefined ? "there is no backend of this name" : "the backend is disabled");
      return;
    }
    const target = targetOf(backend, endpoint);
    const own = transport(target.backend, target.path, { method: "GET", headers: target.headers });
    call = own;
    wait(HEAD_TIMEOUT_MS, () => lost(own, "no answer in time"));
    try {
      const answer = await own.answer;
      if (call === own) read(own, answer, backend);
    } catch (error) {
      lost(own, failureText(error));
    }
  }

  function read(own: BackendCall, answer: BackendAnswer, backend: Backend): void {
    const refusal = refusalOf(answer, backend);
    if (refusal !== undefined) {
      lost(own, refusal);
      return;
    }
    isConnected = true;
    connectedAtMs = clock.now();
    log.info({ backend: name }, `events of the cache of ${name} are read`);
    const framer = new EventFramer(MAX_EVENT_BYTES);
    const watchSilence = () => wait(SILENCE_MS, () => lost(own, "nothing was heard for five minutes"));
    watchSilence();
    answer.read({
      received(piece) {
        if (call !== own) return;
        watchSilence();
        try {
          const whole = framer.push(piece);
          if (whole !== undefined) for (const event of readEvents(decoder.decode(whole))) heard(readCacheEvent(event));
        } catch {
          lost(own, "an event is too large");
        }
      },
      ended: () => lost(own, "the stream has ended"),
      failed: (error) => lost(own, failureText(error)),
    });
  }

  function heard(event: CacheEvent | undefined): void {
    if (event === undefined) return;
    events++;
    failures = 0;
    lastEventMs = clock.wallTime();
    queue.add(event);
    draining ??= setTimeout(drain, 0);
  }

  function drain(): void {
    draining = undefined;
    for (let count = 0; count < BATCH; count++) {
      const event = queue.take();
      if (event === undefined) return;
      parts.told(event);
    }
    draining = setTimeout(drain, 0);
  }

  /** Does nothing for a connection that was given up. */
  function lost(own: BackendCall | undefined, reason: string): void {
    if (isClosed || (own !== undefined && call !== own)) return;
    call = undefined;
    own?.abort();
    if (isConnected && clock.now() - connectedAtMs >= STEADY_MS) failures = 0;
    if (isConnected || failures === 0)
      log.warn({ backend: name, reason }, `events of the cache of ${name} are missing`);
    isConnected = false;
    lastError = reason;
    failures++;
    wait(backoffDelayMs(backoff, failures, parts.random), () => void connect());
  }

  function wait(delayMs: number, then: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(then, timerMs(delayMs));
    timer.unref();
  }

  void connect();
  return {
    view: () => ({
      backend: name,
      connected: isConnected,
      events,
      dropped: queue.dropped,
      lastEventMs,
      lastError,
    }),
    close() {
      isClosed = true;
      clearTimeout(timer);
      clearTimeout(draining);
      const open = call;
      call = undefined;
      open?.abort();
    },
  };
}

function refusalOf(answer: BackendAnswer, backend: Backend): string | undefined {
  if (answer.status !== 200) return statusText(backend, answer.status);
  const isStream = /^text\/event-stream\b/i.test(answer.header("content-type") ?? "");
  return isStream ? undefined : "the answer is no stream of events";
}

/** The backend's own credential and headers go to its own address only. */
function targetOf(backend: Backend, endpoint: string): SourceTarget {
  const accept = { accept: "text/event-stream", "cache-control": "no-cache" };
  if (endpoint.startsWith("/")) {
    return { backend, path: endpoint, headers: { ...controlHeaders(backend, false), ...accept } };
  }
  const { origin, pathname, search } = new URL(endpoint);
  const path = pathname + search;
  const isOwn = backend.socketPath === undefined && new URL(backend.rootUrl).origin === origin;
  if (isOwn)
    return {
      backend: { ...backend, rootUrl: origin },
      path,
      headers: { ...controlHeaders(backend, false), ...accept },
    };
  const stranger = { ...backend, rootUrl: origin, socketPath: undefined };
  return { backend: stranger, path, headers: { "accept-encoding": "identity", ...accept } };
}
