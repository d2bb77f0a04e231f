// The way of a request over backends: who is asked in which order, how often, with which waits, and until when.

import { describe, expect, test } from "bun:test";
import { passThrough } from "../../test/support/pass-through.ts";
import { contextOf, recordOf } from "../../test/support/request-records.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { type ConfigDocument, documentSchema, type Settings } from "../config/sections/registry.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { JsonBody } from "../lib/request-body.ts";
import { silentLogger } from "../logging/logger.ts";
import { createLimiter } from "../rate-limit/limiter.ts";
import { createCircuits } from "../routing/circuits.ts";
import { consistentHash } from "../routing/strategies/consistent-hash.ts";
import { roundRobin } from "../routing/strategies/round-robin.ts";
import type { SelectionStrategy } from "../routing/strategy.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { OutgoingRequest, SendOutcome } from "../upstream/send.ts";
import type { ForwardResult } from "./attempt.ts";
import { MAX_TRIAL_WAITERS } from "./candidates.ts";
import type { BackendWatch } from "./context.ts";
import { createForwarder } from "./forward.ts";
import { ASKING_BODY, type ModelRequest } from "./model-request.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const fine: SendOutcome = { ok: true, kind: "plain", body: new Uint8Array(), contentType: "x/y", headers: {} };

function failed(failure: UpstreamFailure): SendOutcome {
  return { ok: false, failure };
}

function status(code: number, retryAfterMs?: number): SendOutcome {
  return failed({ kind: "status", status: code, body: new Uint8Array(), retryAfterMs, headers: {} });
}

const connect = failed({ kind: "connect", message: "no connection" });
const reset = failed({ kind: "reset", message: "broken" });

interface BenchOptions {
  backends?: Partial<BackendInput>[];
  retry?: ConfigDocument["retry"];
  timeouts?: ConfigDocument["timeouts"];
  strategy?: SelectionStrategy;
  /** What the backend answers at its nth attempt of all (from 0). */
  answer(name: string, attempt: number): SendOutcome | Promise<SendOutcome>;
  watch?: Partial<BackendWatch>;
  now?: () => number;
  affinity?: string;
  keyId?: string;
  circuitBreaker?: ConfigDocument["circuit_breaker"];
  delay?: (durationMs: number, signal: AbortSignal) => Promise<void>;
}

/** A forwarder over backends a, b, c … of which only the answers are made up. */
function bench(options: BenchOptions) {
  const settings: Settings = documentSchema.parse({
    backends: (options.backends ?? [{}, {}]).map((backend, index) => ({
      name: "abcdefgh"[index] as string,
      url: "http://h",
      models: ["m"],
      ...backend,
    })),
    retry: { base_delay: "20ms", jitter: false, ...options.retry },
    timeouts: options.timeouts ?? {},
    circuit_breaker: options.circuitBreaker ?? {},
  });
  let entries: BackendEntry[] = settings.backends.map((backend) => ({
    backend: toBackend(backend),
    health: "ready",
    available: true,
    counters: newCounters(),
  }));
  let board = boardOf(entries);
  const asked: string[] = [];
  const askedAtMs: number[] = [];
  const requests: OutgoingRequest[] = [];
  const suspects: string[] = [];
  const controller = new AbortController();
  const watch: BackendWatch = {
    get board() {
      return board;
    },
    firstChecks: Promise.resolve(),
    refreshModels: async () => {},
    suspect: (name) => void suspects.push(name),
    absenceOf: () => ({ why: "away", nextLookMs: 1_000 }),
    ...options.watch,
  };
  const now = options.now ?? (() => performance.now());
  const circuits = createCircuits({ settings: settings.circuit_breaker, now });
  const limits = createLimiter({ settings: settings.rate_limiting, now, wallTime: now });
  const forwarder = createForwarder({
    watch,
    circuits,
    limits,
    strategy: options.strategy ?? roundRobin(),
    sender: {
      async send(entry, request) {
        asked.push(entry.backend.name);
        askedAtMs.push(performance.now());
        requests.push(request);
        return options.answer(entry.backend.name, asked.length - 1);
      },
    },
    bridge: passThrough,
    attempted() {},
    log: silentLogger(),
    now,
    random: () => 0,
    ...(options.delay && { delay: options.delay }),
  });
  const context = contextOf(recordOf({ id: "own-1", requestId: "request-1", model: "m", startedAtMs: now() }), {
    trace: { id: "request-1", traceparent: undefined, tracestate: undefined },
    settings,
    client: controller,
    caller:
      options.keyId === undefined
        ? undefined
        : {
            keyId: options.keyId,
            userId: undefined,
            organizationId: undefined,
            scopes: new Set(),
            requestsPerMinute: undefined,
            expiresAtMs: Number.POSITIVE_INFINITY,
          },
    clientHeaders: new Headers({ "user-agent": "client" }),
    peerAddress: () => "10.0.0.1",
  });
  const request: ModelRequest = {
    operation: "chat",
    model: "m",
    stream: false,
    choices: 1,
    affinity: () => options.affinity,
    asking: ASKING_BODY,
    patience: 1,
    avoid: new Set(),
    body: JsonBody.written({ model: "m" }),
    askedModel: "m",
  };
  return {
    asked,
    requests,
    suspects,
    context,
    controller,
    settings,
    /** Milliseconds between attempts. */
    waits: () => askedAtMs.slice(1).map((atMs, index) => atMs - (askedAtMs[index] as number)),
    setBoard(change: (entries: BackendEntry[]) => BackendEntry[]) {
      entries = change(entries);
      board = boardOf(entries);
    },
    forward: (more: Partial<ModelRequest> = {}, inHurry?: boolean): Promise<ForwardResult> =>
      within("the request is answered", forwarder.forward(context, { ...request, ...more }, inHurry), 8_000),
  };
}

function boardOf(entries: readonly BackendEntry[]): BackendBoard {
  const lists = new Map<string, BackendEntry[]>();
  const serving = (model: string) => entries.filter((entry) => entry.backend.configuredModels?.includes(model));
  return {
    models: () => [],
    listedAs: (_name, model) => model,
    version: 1,
    entries,
    serving,
    candidates(model) {
      const list = lists.get(model) ?? serving(model).filter((entry) => entry.available);
      lists.set(model, list);
      return list;
    },
  };
}

function failureOf(result: ForwardResult): UpstreamFailure {
  if (result.kind !== "failed") throw new Error("the request succeeded");
  return result.failure;
}

describe("a request that succeeds", () => {
  test("is sent once, as it came, and the record says where", async () => {
    const b = bench({ answer: () => fine });
    const result = await b.forward();
    expect(result).toMatchObject({ kind: "plain" });
    expect(result.entry.backend.name).toBe("a");
    expect(b.asked).toEqual(["a"]);
    expect(b.context.record).toMatchObject({ backend: "a", attempts: 1, lastFailure: undefined });
    expect(new TextDecoder().decode(b.requests[0]?.body)).toBe('{"model":"m"}');
    expect(b.requests[0]).toMatchObject({ operation: "chat", model: "m", stream: false });
    expect(b.requests[0]?.client).toBe(b.controller);
  });

  test("has the timeouts of the settings, and those of its model where it has some", async () => {
    const timeouts = {
      connect: "1s",
      first_byte: "2s",
      between_chunks: "3s",
      request: "4s",
      models: { m: { first_byte: "20s", request: "40s" } },
    };
    const b = bench({
      timeouts,
      answer: () => fine,
      backends: [{ models: ["m", "other", "constructor"] }],
      now: () => 500,
    });
    await b.forward();
    await b.forward({ model: "other" });
    await b.forward({ model: "constructor" });
    const common = { connectMs: 1_000, betweenChunksMs: 3_000 };
    expect(b.requests.map((request) => request.timeouts)).toEqual([
      { ...common, firstByteMs: 20_000, requestDeadlineMs: 40_500 },
      { ...common, firstByteMs: 2_000, requestDeadlineMs: 4_500 },
      { ...common, firstByteMs: 2_000, requestDeadlineMs: 4_500 },
    ]);
  });

  test("that draws has the timeouts of its model under any name of it", async () => {
    const timeouts = { image_generation: "9s", models: { "img-v1": { first_byte: "20s", request: "40s" } } };
    const backends = [{ models: ["gpt-image-1", "dall-e-3"] }];
    const b = bench({ timeouts, answer: () => fine, backends, now: () => 500 });
    await b.forward({ model: "gpt-image-1", operation: "images" });
    await b.forward({ model: "dall-e-3", operation: "images" });
    expect(b.requests.map((request) => request.timeouts)).toMatchObject([
      { firstByteMs: 20_000, betweenChunksMs: 9_000, requestDeadlineMs: 40_500 },
      { firstByteMs: 9_000, betweenChunksMs: 9_000, requestDeadlineMs: 9_500 },
    ]);
  });
});

describe("retries", () => {
  test("another backend is asked first, at once", async () => {
    const b = bench({
      retry: { base_delay: "1h", max_delay: "1h" },
      answer: (name) => (name === "a" ? status(503, 3_600_000) : fine),
    });
    expect((await b.forward()).entry.backend.name).toBe("b");
    expect(b.asked).toEqual(["a", "b"]);
    expect(b.context.record).toMatchObject({ backend: "b", attempts: 2, lastFailure: "status_503" });
  });

  test("the same backend again only after the wait", async () => {
    const b = bench({ backends: [{}], answer: (_name, attempt) => (attempt < 2 ? reset : fine) });
    expect((await b.forward()).kind).toBe("plain");
    expect(b.asked).toEqual(["a", "a", "a"]);
    const [first, second] = b.waits();
    expect(first).toBeGreaterThanOrEqual(19);
    expect(second).toBeGreaterThanOrEqual(39);
  });

  test("not the same backend again when it was taken out of service during the wait", async () => {
    const b = bench({
      backends: [{}],
      answer() {
        const remove = ([entry]: BackendEntry[]): BackendEntry[] => {
          (entry as BackendEntry).counters.onIdle = () => {};
          return [];
        };
        setTimeout(() => b.setBoard(remove), 5);
        return reset;
      },
    });
    expect(failureOf(await b.forward())).toMatchObject({ kind: "reset" });
    expect(b.asked).toEqual(["a"]);
  });

  test("Retry-After is waited for, but not longer than max_delay", async () => {
    const answer: BenchOptions["answer"] = (_name, attempt) => (attempt < 1 ? status(429, 3_600_000) : fine);
    const b = bench({ backends: [{}], retry: { base_delay: "0s", max_delay: "60ms" }, answer });
    expect((await b.forward()).kind).toBe("plain");
    expect(b.waits()[0]).toBeGreaterThanOrEqual(59);
  });

  test("end with the last failure when the attempts are used up", async () => {
    const b = bench({ backends: [{}, {}, {}, {}, {}], answer: (_name, attempt) => status(attempt < 2 ? 503 : 429) });
    const result = await b.forward();
    expect(failureOf(result)).toMatchObject({ kind: "status", status: 429 });
    expect(result.entry.backend.name).toBe("c");
    expect(b.asked).toEqual(["a", "b", "c"]);
    expect(b.context.record).toMatchObject({ backend: "c", attempts: 3, lastFailure: "status_429" });
  });

  test("a failure of the client's own making is not tried again", async () => {
    const b = bench({ answer: () => status(400) });
    expect(failureOf(await b.forward())).toMatchObject({ status: 400 });
    expect(b.asked).toEqual(["a"]);
  });

  test("attempts that found no connection do not count while another backend is left", async () => {
    const names = "abcdef";
    const b = bench({
      backends: Array.from(names, () => ({})),
      retry: { max_attempts: 1 },
      answer: (name) => (name === "f" ? fine : connect),
    });
    expect((await b.forward()).entry.backend.name).toBe("f");
    expect(b.asked.join("")).toBe(names);
    expect(b.suspects.join("")).toBe("abcde");
  });

  test("nor is a backend left that cannot go on with a text, so that attempts to go on are limited", async () => {
    const backends = [{ type: "vllm" as const }, { type: "vllm" as const }, { type: "generic" as const }];
    const b = bench({
      backends,
      retry: { max_attempts: 3 },
      answer: (_name, attempt) => (attempt < 20 ? connect : fine),
    });
    await expect(b.forward({ goesOn: true, avoid: new Set(["a"]) })).resolves.toMatchObject({ kind: "failed" });
    expect(b.asked).not.toContain("c");
    expect(b.asked.length).toBeLessThanOrEqual(4);
  });

  test("who has refused the gateway's credential is not asked again, also not after others have failed", async () => {
    const b = bench({ retry: { max_attempts: 3 }, answer: (name) => (name === "a" ? status(401) : status(503)) });
    await expect(b.forward()).resolves.toMatchObject({ kind: "failed", failure: { status: 503 } });
    expect(b.asked).toEqual(["a", "b", "b", "b"]);
  });

  test("when no connection is found anywhere, the attempts are limited all the same", async () => {
    const b = bench({ retry: { max_attempts: 3, base_delay: "0s" }, answer: () => connect });
    expect(failureOf(await b.forward())).toMatchObject({ kind: "connect" });
    // One free attempt, then three that count.
    expect(b.asked.length).toBe(4);
  });

  test("a backend's own settings decide about the attempts after its failure", async () => {
    const generous = { max_attempts: 5, base_delay: "0s" };
    const b = bench({ backends: [{ retry_override: generous }], retry: { max_attempts: 1 }, answer: () => reset });
    await b.forward();
    expect(b.asked.length).toBe(5);
  });

  test("weight 0 is asked when the others have failed", async () => {
    const b = bench({ backends: [{ weight: 0 }, {}], answer: (name) => (name === "b" ? reset : fine) });
    expect((await b.forward()).entry.backend.name).toBe("a");
    expect(b.asked).toEqual(["b", "a"]);
  });

  test("broken connections are told to the watch, refusals and bad answers are not", async () => {
    const outcomes = [connect, reset, status(503), failed({ kind: "invalid-response", message: "" }), fine];
    const b = bench({
      backends: [{}, {}, {}, {}, {}],
      retry: { max_attempts: 9 },
      answer: (_name, attempt) => outcomes[attempt] as SendOutcome,
    });
    expect((await b.forward()).kind).toBe("plain");
    expect(b.suspects).toEqual(["a", "b"]);
  });
});

describe("the board changes on the way", () => {
  test("a backend that went down during an attempt is not asked again", async () => {
    const b = bench({
      retry: { base_delay: "0s" },
      answer: (name) => {
        if (name !== "a") return fine;
        b.setBoard(([a, other]) => [a!, { ...other!, available: false }]);
        return reset;
      },
    });
    expect(failureOf(await b.forward())).toMatchObject({ kind: "reset" });
    expect(b.asked).toEqual(["a", "a", "a"]);
  });

  test("a backend that came up during a wait is asked instead of the one that failed", async () => {
    const b = bench({
      backends: [{}, {}],
      retry: { base_delay: "50ms" },
      answer: (name) => {
        if (name === "b") return fine;
        setTimeout(() => b.setBoard((entries) => entries.map((entry) => ({ ...entry, available: true }))), 5);
        return reset;
      },
    });
    b.setBoard(([a, other]) => [a!, { ...other!, available: false }]);
    expect((await b.forward()).entry.backend.name).toBe("b");
    expect(b.asked).toEqual(["a", "b"]);
  });

  test("when every backend is gone there is no further attempt", async () => {
    const b = bench({
      answer: () => {
        b.setBoard(() => []);
        return reset;
      },
    });
    expect(failureOf(await b.forward())).toMatchObject({ kind: "reset" });
    expect(b.asked).toEqual(["a"]);
  });
});

describe("the deadline of the request", () => {
  test("a wait that would reach beyond it is not begun", async () => {
    const b = bench({
      backends: [{}],
      retry: { base_delay: "1h", max_delay: "1h" },
      timeouts: { request: "1m" },
      answer: () => status(503),
    });
    expect(failureOf(await b.forward())).toMatchObject({ status: 503 });
    expect(b.asked).toEqual(["a"]);
  });

  test("after it not even another backend is asked", async () => {
    let nowMs = 0;
    const b = bench({
      timeouts: { request: "1s" },
      now: () => nowMs,
      answer: () => {
        nowMs = 1_000;
        return reset;
      },
    });
    expect(failureOf(await b.forward())).toMatchObject({ kind: "reset" });
    expect(b.asked).toEqual(["a"]);
  });
});

describe("the client leaves", () => {
  test("during a wait: it ends at once and nobody is asked any more", async () => {
    const b = bench({ backends: [{}], retry: { base_delay: "1m", max_delay: "1m" }, answer: () => reset });
    const answered = b.forward();
    await waitFor("the first attempt", () => b.asked.length === 1);
    await Bun.sleep(0);
    b.controller.abort();
    const result = await answered;
    expect(failureOf(result)).toEqual({ kind: "aborted" });
    expect(b.asked).toEqual(["a"]);
  });

  test("during an attempt: there is no further one", async () => {
    const b = bench({ answer: () => failed({ kind: "aborted" }) });
    expect(failureOf(await b.forward())).toEqual({ kind: "aborted" });
    expect(b.asked).toEqual(["a"]);
    expect(b.suspects).toEqual([]);
  });
});

describe("a circuit that is half open, with all places taken", () => {
  /** One backend whose circuit opens at once and is half open after a moment; trials end when the test says so. */
  async function halfOpen(more: Partial<BenchOptions> = {}) {
    let nowMs = 1_000;
    const trials: PromiseWithResolvers<SendOutcome>[] = [];
    const b = bench({
      backends: [{}],
      retry: { max_attempts: 1 },
      circuitBreaker: {
        failure_threshold: 1,
        half_open_max_requests: 1,
        success_threshold: 1,
        timeout: "60s",
        panic: false,
      },
      now: () => nowMs,
      answer(_name, attempt) {
        if (attempt === 0) return reset;
        const trial = Promise.withResolvers<SendOutcome>();
        trials.push(trial);
        return trial.promise;
      },
      ...more,
    });
    failureOf(await b.forward());
    nowMs += 60_000;
    return {
      ...b,
      trials,
      wait(durationMs: number): void {
        nowMs += durationMs;
      },
    };
  }
  const refusalOf = (request: Promise<ForwardResult>) =>
    request.then(
      () => undefined,
      (error: GatewayError) => error.type,
    );

  test("the others wait for the trial and go on when it succeeds", async () => {
    const b = await halfOpen();
    const requests = Array.from({ length: 10 }, () => b.forward());
    await Bun.sleep(5);
    expect(b.asked.length).toBe(2);
    b.trials[0]?.resolve(fine);
    await waitFor("all are sent", () => b.trials.length === 10);
    for (const trial of b.trials) trial.resolve(fine);
    expect((await Promise.all(requests)).map(({ kind }) => kind)).toEqual(Array(10).fill("plain"));
  });

  test("they are refused when it fails", async () => {
    const b = await halfOpen();
    const first = b.forward();
    const others = [b.forward(), b.forward()].map(refusalOf);
    await Bun.sleep(5);
    b.trials[0]?.resolve(reset);
    failureOf(await first);
    expect(await Promise.all(others)).toEqual(["circuit_breaker_open", "circuit_breaker_open"]);
    expect(b.asked.length).toBe(2);
  });

  test("a place that becomes free is taken by one of them", async () => {
    const b = await halfOpen();
    const requests = [b.forward(), b.forward(), b.forward()];
    for (let index = 0; index < 3; index++) {
      await waitFor("a trial", () => b.trials.length === index + 1);
      b.trials[index]?.resolve(failed({ kind: "aborted" }));
    }
    expect((await Promise.all(requests)).map(({ kind }) => kind)).toEqual(Array(3).fill("failed"));
  });

  test("nobody waits for ever, beyond the deadline, in a hurry, or behind too many others", async () => {
    const delays: number[] = [];
    const b = await halfOpen({
      async delay(durationMs) {
        delays.push(durationMs);
        b.wait(durationMs);
      },
      timeouts: { request: "62s" },
    });
    const first = b.forward();
    expect(await refusalOf(b.forward({}, true))).toBe("circuit_breaker_open");
    expect(delays).toEqual([]);
    expect(await refusalOf(b.forward())).toBe("circuit_breaker_open");
    expect(delays).toEqual([2_000]); // 60 s of the time for the whole request have passed
    b.trials[0]?.resolve(fine);
    await first;

    const full = await halfOpen();
    const one = full.forward();
    const waiting = Array.from({ length: MAX_TRIAL_WAITERS }, () => full.forward());
    expect(await refusalOf(full.forward())).toBe("circuit_breaker_open");
    full.trials[0]?.resolve(fine);
    await waitFor("all are sent", () => full.trials.length === 1 + MAX_TRIAL_WAITERS);
    for (const trial of full.trials) trial.resolve(fine);
    await Promise.all([one, ...waiting]);
  });

  test("a client that leaves waits no longer", async () => {
    const b = await halfOpen();
    const first = b.forward();
    const second = refusalOf(b.forward());
    await Bun.sleep(5);
    b.controller.abort();
    expect(await within("the wait ends", second)).toBe("request_timeout");
    b.trials[0]?.resolve(fine);
    await first;
  });
});

describe("the first choice", () => {
  test("waits for the first checks when nobody is available yet", async () => {
    const checks = Promise.withResolvers<void>();
    const b = bench({ answer: () => fine, watch: { firstChecks: checks.promise } });
    b.setBoard((entries) => entries.map((entry) => ({ ...entry, available: false })));
    const answered = b.forward();
    b.setBoard((entries) => entries.map((entry) => ({ ...entry, available: true })));
    checks.resolve();
    expect((await answered).kind).toBe("plain");
  });

  test("an unknown model is looked for once before it is refused", async () => {
    let refreshes = 0;
    const refreshModels = async () => void refreshes++;
    const b = bench({ answer: () => fine, watch: { refreshModels } });
    const refusal = await b.forward({ model: "unknown" }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(GatewayError);
    expect(refusal).toMatchObject({ status: 404, type: "model_not_found" });
    expect(refreshes).toBe(1);
    expect(b.asked).toEqual([]);
    expect(b.context.record.attempts).toBe(0);
  });

  test("a model that the renewed lists hold is served", async () => {
    const refreshModels = async () =>
      b.setBoard((entries) =>
        entries.map((entry) => ({ ...entry, backend: { ...entry.backend, configuredModels: ["new"] } })),
      );
    const b: ReturnType<typeof bench> = bench({ answer: () => fine, watch: { refreshModels } });
    expect((await b.forward({ model: "new" })).kind).toBe("plain");
  });

  test("model lists are not renewed while no backend is available", async () => {
    let refreshes = 0;
    const refreshModels = async () => void refreshes++;
    const b = bench({ answer: () => fine, watch: { refreshModels } });
    b.setBoard((entries) => entries.map((entry) => ({ ...entry, available: false })));
    expect(await b.forward().catch((error: unknown) => error)).toMatchObject({ status: 503 });
    expect(refreshes).toBe(0);
  });
});

describe("what keeps a session on one backend", () => {
  async function chosen(more: Pick<BenchOptions, "affinity" | "keyId">): Promise<string> {
    const keys: string[] = [];
    const hash = consistentHash();
    const strategy: SelectionStrategy = {
      ...hash,
      score(ranking, query) {
        keys.push(query.sessionKey());
        hash.score(ranking, query);
      },
    };
    await bench({ strategy, answer: () => fine, ...more }).forward();
    return keys[0] as string;
  }

  test("the client's field, else its key, else its address", async () => {
    expect(await chosen({ affinity: "conversation", keyId: "key-1" })).toBe("conversation");
    expect(await chosen({ keyId: "key-1" })).toBe("key-1");
    expect(await chosen({})).toBe("10.0.0.1");
  });
});
