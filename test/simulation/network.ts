// The simulated network: backends with a condition each, and a sender that meets them in place of sockets.

import type { BackendEntry } from "../../src/backends/board.ts";
import type { BodyReceiver } from "../../src/backends/transport.ts";
import type { ProbeVerdict } from "../../src/health/state-machine.ts";
import type { Deadlines } from "../../src/lib/deadlines.ts";
import { PassReader } from "../../src/protocols/pass-reader.ts";
import { EventFramer } from "../../src/protocols/sse.ts";
import { Exchange } from "../../src/upstream/exchange.ts";
import type { UpstreamFailure } from "../../src/upstream/failure.ts";
import { countFailure, type OutgoingRequest, type Sender, type SendOutcome } from "../../src/upstream/send.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { type VirtualTime, virtualDeadlines } from "./virtual-time.ts";

interface ConditionFacts {
  /** What a health check finds; undefined: it gets no answer and times out. */
  probe: ProbeVerdict | undefined;
  /** Requests under way break when the condition begins. */
  kills: boolean;
}

/** What may be the matter with a backend. Some conditions show in health checks, others only in requests. */
export const CONDITIONS = {
  fine: { probe: "healthy", kills: false },
  refusing: { probe: "failed", kills: true },
  resetting: { probe: "failed", kills: true },
  /** Packets vanish: no connection, no refusal. */
  swallowing: { probe: undefined, kills: false },
  /** Takes requests and checks, and answers nothing. */
  hanging: { probe: undefined, kills: false },
  /** Answers checks, but no request. */
  stuck: { probe: "healthy", kills: false },
  /** 503 with Retry-After, as an engine that loads its model. */
  loading: { probe: "warming", kills: false },
  /** 429 with Retry-After. */
  overloaded: { probe: "healthy", kills: false },
  /** 503 without Retry-After. */
  unavailable: { probe: "healthy", kills: false },
  /** 500, which is never retried on the same model. */
  erring: { probe: "healthy", kills: false },
  /** Answers late, often too late. */
  slow: { probe: "healthy", kills: false },
  /** 200, and then the connection ends before the first event. */
  cutting: { probe: "healthy", kills: false },
  /** Streams break in the middle, each in its own way. */
  breaking: { probe: "healthy", kills: false },
} as const satisfies Record<string, ConditionFacts>;

export type Condition = keyof typeof CONDITIONS;

export interface SimulatedBackend {
  name: string;
  condition: Condition;
  calls: Set<Call>;
  /** When it was last anything but fine; Infinity while it is. */
  troubledUntilMs: number;
}

/** One request at one backend. */
interface Call {
  id: string;
  fail(error: Error): void;
}

/** What a simulated client asks for, inside the body. */
export interface SimulatedBody {
  model: string;
  messages: { role: string; content: string }[];
  /** Words of the whole answer. */
  max_tokens: number;
  /** The client's own mistake: every backend that is fine answers 400. */
  mistaken: boolean;
}

export interface NetworkOptions {
  time: VirtualTime;
  random: SeededRandom;
  firstByteMs: number;
  onChange(backend: SimulatedBackend): void;
}

export interface Network extends Sender {
  readonly deadlines: Deadlines;
  readonly backends: ReadonlyMap<string, SimulatedBackend>;
  readonly openDeadlines: number;
  setCondition(name: string, condition: Condition): void;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const LATENCY_SMOOTHING = 0.2;
const FAILURE_LATENCY_MS = 10_000;

export function wholeText(words: number): string {
  return Array.from({ length: words }, (_, index) => `word${index} `).join("");
}

export function createNetwork(names: readonly string[], options: NetworkOptions): Network {
  const { time, random, firstByteMs } = options;
  const backends = new Map<string, SimulatedBackend>();
  for (const name of names) {
    backends.set(name, { name, condition: "fine", calls: new Set(), troubledUntilMs: Number.NEGATIVE_INFINITY });
  }
  const deadlines = virtualDeadlines(time);
  const environment = {
    deadlines,
    now: time.now,
  };

  function refusal(status: number, retryAfterMs: number | undefined): UpstreamFailure {
    return { kind: "status", status, body: new Uint8Array(), retryAfterMs, headers: {} };
  }

  function broken(code: string): Error {
    return Object.assign(new Error(code), { code });
  }

  function answerMs(condition: Condition): number {
    if (condition === "slow") return random.between(firstByteMs / 4, firstByteMs * 2);
    return random.between(5, firstByteMs / 8);
  }

  /** Resolves when the head of an answer, and its first event, are there. */
  function meet(backend: SimulatedBackend, exchange: Exchange, request: OutgoingRequest): Promise<SendOutcome> {
    const { promise, resolve } = Promise.withResolvers<SendOutcome>();
    const { condition } = backend;
    let onBreak: ((error: Error) => void) | undefined;
    const call: Call = {
      id: request.trace.id,
      fail(error) {
        if (!backend.calls.delete(call)) return;
        if (onBreak === undefined) resolve({ ok: false, failure: exchange.failureOf(error) });
        else onBreak(error);
      },
    };
    backend.calls.add(call);
    exchange.begin({
      answer: new Promise(() => {}), // outcomes are told by themselves
      abort: () => call.fail(broken("AbortError")),
      connects: (withinMs) =>
        new Promise((stands) => {
          const connects = backend.condition !== "swallowing";
          time.schedule(connects ? 1 : withinMs, () => stands(connects));
        }),
    });

    function after(delayMs: number, action: () => void): void {
      time.schedule(delayMs, () => {
        if (backend.calls.has(call)) action();
      });
    }
    function refuse(failure: UpstreamFailure): void {
      backend.calls.delete(call);
      resolve({ ok: false, failure });
    }
    const body = JSON.parse(decoder.decode(request.body)) as SimulatedBody;

    switch (condition) {
      case "refusing":
        after(1, () => call.fail(broken("ECONNREFUSED")));
        break;
      case "resetting":
        after(random.between(1, 50), () => call.fail(broken("ECONNRESET")));
        break;
      case "cutting":
        after(random.between(1, 50), () => {
          exchange.headReceived();
          after(random.between(1, 50), () => call.fail(broken("ECONNRESET")));
        });
        break;
      case "swallowing":
      case "hanging":
      case "stuck":
        break; // its deadline ends it
      case "loading":
        after(2, () => refuse(refusal(503, random.between(0, 5) * 1000)));
        break;
      case "overloaded":
        after(2, () => refuse(refusal(429, random.chance(0.8) ? random.between(0, 30) * 1000 : undefined)));
        break;
      case "unavailable":
        after(2, () => refuse(refusal(503, undefined)));
        break;
      case "erring":
        after(2, () => refuse(refusal(500, undefined)));
        break;
      case "fine":
      case "slow":
      case "breaking":
        after(answerMs(condition), () => {
          exchange.headReceived();
          if (body.mistaken) return refuse(refusal(400, undefined));
          if (!request.stream) {
            backend.calls.delete(call);
            return resolve({
              ok: true,
              kind: "plain",
              body: request.body,
              contentType: "application/json",
              headers: {},
            });
          }
          const words = pieces(body, `${request.trace.id}-${backend.name}`);
          const breaksAt = condition === "breaking" ? random.between(1, words.length - 1) : undefined;
          const end = () => void backend.calls.delete(call);
          const answer = streamedAnswer(words.slice(1), breaksAt, after, end);
          onBreak = answer.fail;
          const stream = { answer, framer: new EventFramer(), firstEvents: words[0] as Uint8Array };
          const reader = request.translation?.stream() ?? new PassReader("chat", request);
          resolve({ ok: true, kind: "stream", stream, reader, exchange, headers: {} });
        });
        break;
    }
    return promise;
  }

  /** An answer whose events come one by one; from `breaksAt` on there are none, and it ends in one of four ways. */
  function streamedAnswer(
    events: readonly Uint8Array[],
    breaksAt: number | undefined,
    after: (delayMs: number, action: () => void) => void,
    ended: () => void,
  ) {
    let position = 0;
    let error: Error | undefined;
    let receiver: BodyReceiver | undefined;
    let isPaused = true; // as the gate leaves it
    let isComing = false;
    const gapMs = random.between(1, 120);
    const manner = breaksAt === undefined ? undefined : random.pick(["reset", "end", "error", "silence"] as const);

    function next(): void {
      const isSilent = manner === "silence" && position + 1 >= (breaksAt as number);
      if (isPaused || isComing || isSilent || error !== undefined) return;
      isComing = true;
      after(gapMs, step);
    }
    function step(): void {
      isComing = false;
      if (manner === undefined || position + 1 < (breaksAt as number)) {
        const event = events[position++];
        if (event === undefined) end();
        else receiver?.received(event);
      } else if (manner === "end") end();
      else if (manner === "error") receiver?.received(encoder.encode('data: {"error":{"code":503}}\n\n'));
      else {
        ended();
        fail(broken("ECONNRESET"));
      }
      next();
    }
    function end(): void {
      isPaused = true;
      ended();
      receiver?.ended();
    }
    function fail(reason: Error): void {
      error = reason;
      receiver?.failed(reason);
    }
    return {
      status: 200,
      header: () => null,
      read(next: BodyReceiver) {
        receiver = next;
        if (error !== undefined) receiver.failed(error);
      },
      pause() {
        isPaused = true;
      },
      resume() {
        isPaused = false;
        next();
      },
      fail,
    };
  }

  function observeLatency(entry: BackendEntry, latencyMs: number): void {
    const { counters } = entry;
    const { latencyMs: average = latencyMs } = counters;
    counters.latencyMs = average + (latencyMs - average) * LATENCY_SMOOTHING;
    counters.latencyAtMs = time.nowMs;
  }

  return {
    backends,
    deadlines,
    get openDeadlines() {
      return deadlines.size;
    },
    async send(entry, request) {
      const backend = backends.get(entry.backend.name) as SimulatedBackend;
      const exchange = new Exchange(entry, request.client, request.timeouts, environment);
      entry.counters.totalRequests++;
      const outcome = await meet(backend, exchange, request);
      if (outcome.ok) observeLatency(entry, time.nowMs - exchange.startedAtMs);
      else {
        const { failure } = outcome;
        const failedBefore = entry.counters.failedRequests;
        countFailure(entry, failure);
        if (entry.counters.failedRequests > failedBefore) observeLatency(entry, FAILURE_LATENCY_MS);
      }
      if (!outcome.ok || outcome.kind === "plain") exchange.release();
      return outcome;
    },
    setCondition(name, condition) {
      const backend = backends.get(name) as SimulatedBackend;
      if (backend.condition === condition) return;
      backend.condition = condition;
      backend.troubledUntilMs = condition === "fine" ? time.nowMs : Number.POSITIVE_INFINITY;
      options.onChange(backend);
      // One by one, so that each client's next step is an event of its own.
      if (CONDITIONS[condition].kills) {
        for (const call of backend.calls) time.schedule(0, () => call.fail(broken("ECONNRESET")));
      }
    },
  };
}

/** The events of an answer; it goes on behind what the conversation's last assistant turn says already. */
function pieces({ messages, max_tokens, model }: SimulatedBody, id: string): Uint8Array[] {
  const turn = messages.length > 1 ? messages.at(-2) : undefined;
  const rest = wholeText(max_tokens).slice(turn?.role === "assistant" ? turn.content.length : 0);
  const chunk = (delta: object, finish_reason: string | null = null) =>
    encoder.encode(`data: ${JSON.stringify({ id, model, choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
  const words = rest.split(/(?<= )/).filter((word) => word !== "");
  return [
    chunk({ role: "assistant", content: "" }),
    ...words.map((content) => chunk({ content })),
    chunk({}, "stop"),
    encoder.encode("data: [DONE]\n\n"),
  ];
}
