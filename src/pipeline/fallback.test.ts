// The walk along a chain of models: what leads to the next one, what does not, and what the client is told.

import { describe, expect, test } from "bun:test";
import { contextOf, recordOf } from "../../test/support/request-records.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { ForwardResult } from "./attempt.ts";
import { createFallbackChains, type FallbackResult, writeFallbackHeaders } from "./fallback.ts";
import { ASKING_BODY, type ModelRequest } from "./model-request.ts";

type Policy = NonNullable<NonNullable<ConfigDocument["fallback"]>["fallback_policy"]>;

const entry: BackendEntry = {
  backend: toBackend(documentSchema.parse({ backends: [{ name: "b1", url: "http://h" }] }).backends[0]!),
  health: "ready",
  available: true,
  counters: newCounters(),
};

const plain: ForwardResult = { kind: "plain", entry, body: new Uint8Array(), contentType: "x/y", headers: {} };
const failed = (failure: UpstreamFailure): ForwardResult => ({ kind: "failed", entry, failure });
const status = (code: number) =>
  failed({ kind: "status", status: code, body: new Uint8Array(), retryAfterMs: undefined, headers: {} });
const refused = (definition: ErrorDefinition) => new GatewayError(definition, "refused");

const body = new JsonBody(new TextEncoder().encode('{ "model": "m", "n" : 1.0 }'), { model: "m", n: 1 });

interface BenchOptions {
  /** What the forwarder comes to, by model; plain when left out. */
  outcomes?: Record<string, ForwardResult | Error>;
  policy?: Policy;
  enabled?: boolean;
  chains?: Record<string, string[]>;
}

function bench({ outcomes = {}, policy = {}, enabled = true, chains = { m: ["n", "o"] } }: BenchOptions) {
  const settings = documentSchema.parse({
    fallback: { enabled, fallback_chains: chains, fallback_policy: policy },
  });
  const requests: ModelRequest[] = [];
  const hurries: boolean[] = [];
  const fallback = createFallbackChains({
    hasOther: () => true,
    hasPool: () => false,
    async forward(_context, request, hurry = false) {
      requests.push(request);
      hurries.push(hurry);
      const outcome = outcomes[request.model] ?? plain;
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
  });
  const context = contextOf(recordOf({ id: "own-1", requestId: "request-1", model: "m", startedAtMs: 0 }), {
    trace: { id: "request-1", traceparent: undefined, tracestate: undefined },
    settings,
    client: new AbortController(),
    caller: undefined,
    clientHeaders: new Headers(),
    peerAddress: () => undefined,
  });
  const request: ModelRequest = {
    operation: "chat",
    model: "m",
    stream: false,
    choices: 1,
    affinity: () => undefined,
    body,
    askedModel: "m",
    asking: ASKING_BODY,
    patience: 1,
    avoid: new Set(),
  };
  return {
    requests,
    hurries,
    context,
    fallback,
    request,
    models: () => requests.map(({ model }) => model),
    forward: () => fallback.forward(context, request),
    refusal: async () => {
      const error: unknown = await fallback.forward(context, request).catch((thrown: unknown) => thrown);
      if (!(error instanceof GatewayError)) throw new Error("nothing was refused");
      return error;
    },
  };
}

describe("what leads to the next model", () => {
  const all = { error_codes: [429, 500, 502, 503, 504] };
  const off = { timeout: false, connection_error: false, circuit_breaker_open: false, error_codes: [599] };
  type Case = [reason: string, outcome: ForwardResult | Error, only: Policy["trigger_conditions"]];
  const message = "broken";
  const timeout = (phase: "connect" | "first_byte" | "between_chunks" | "request") =>
    failed({ kind: "timeout", phase, message });
  const cases: Case[] = [
    ...[429, 500, 502, 503, 504].map(
      (code): Case => [`error_code_${code}`, status(code), { ...off, error_codes: [code] }],
    ),
    ["error_code_529", status(529), { ...off, error_codes: [529] }],
    ["timeout", timeout("connect"), { ...off, timeout: true }],
    ["timeout", timeout("first_byte"), { ...off, timeout: true }],
    ["connection_error", failed({ kind: "connect", message }), { ...off, connection_error: true }],
    ["connection_error", failed({ kind: "reset", message }), { ...off, connection_error: true }],
    ["error_code_502", failed({ kind: "invalid-response", message }), { ...off, error_codes: [502] }],
    ["circuit_breaker_open", refused(ERRORS.circuitOpen), { ...off, circuit_breaker_open: true }],
    ["error_code_429", refused(ERRORS.rateLimited), { ...off, error_codes: [429] }],
    ["no_backend_available", refused(ERRORS.modelNotFound), { ...off, connection_error: true }],
    ["no_backend_available", refused(ERRORS.allBackendsUnhealthy), { ...off, connection_error: true }],
    ["no_backend_available", refused(ERRORS.unsupportedOperation), { ...off, connection_error: true }],
  ];
  for (const [reason, outcome, only] of cases) {
    const what =
      outcome instanceof GatewayError ? outcome.type : JSON.stringify((outcome as { failure?: unknown }).failure);
    test(`${reason}: ${what}`, async () => {
      const on = bench({ outcomes: { m: outcome }, policy: { trigger_conditions: only } });
      expect(await on.forward()).toMatchObject({ kind: "plain", model: "n", reasons: [{ model: "m", reason }] });
      expect(on.models()).toEqual(["m", "n"]);
      expect(on.context.record.answeredBy).toBe("n");

      // Everything else switched on, and only this condition off.
      const opposite = {
        timeout: !(only?.timeout ?? false),
        connection_error: !(only?.connection_error ?? false),
        circuit_breaker_open: !(only?.circuit_breaker_open ?? false),
        error_codes: [...all.error_codes, 529].filter((code) => !only?.error_codes?.includes(code)),
      };
      const without = bench({ outcomes: { m: outcome }, policy: { trigger_conditions: opposite } });
      if (outcome instanceof Error) expect(await without.refusal()).toBe(outcome as GatewayError);
      else expect(await without.forward()).toEqual({ ...outcome, model: "m", reasons: [] });
      expect(without.models()).toEqual(["m"]);
      expect(without.context.record.answeredBy).toBeUndefined();
    });
  }

  test.each([400, 401, 403, 404, 408, 413, 422])("the client's own error %d never does", async (code) => {
    const b = bench({ outcomes: { m: status(code) } });
    expect(await b.forward()).toMatchObject({ kind: "failed", model: "m", reasons: [], failure: { status: code } });
    expect(b.models()).toEqual(["m"]);
  });

  test("nor does a client that leaves, at any model", async () => {
    const aborted = failed({ kind: "aborted" });
    const first = bench({ outcomes: { m: aborted } });
    expect(await first.forward()).toMatchObject({ kind: "failed", model: "m", failure: { kind: "aborted" } });
    const second = bench({ outcomes: { m: status(500), n: aborted } });
    expect(await second.forward()).toMatchObject({ kind: "failed", model: "n", failure: { kind: "aborted" } });
    expect(second.models()).toEqual(["m", "n"]);
  });

  test("nor does a bug", async () => {
    const bug = new TypeError("undefined is not a function");
    const b = bench({ outcomes: { m: bug } });
    expect(await b.forward().catch((error: unknown) => error)).toBe(bug);
    expect(b.models()).toEqual(["m"]);
  });

  test("the mistake of a client that the pipeline finds is answered at once", async () => {
    const mistake = refused(ERRORS.invalidRequest);
    const on = bench({ outcomes: { m: mistake } });
    expect(await on.refusal()).toBe(mistake);
    expect(on.models()).toEqual(["m"]);
  });
});

describe("the walk", () => {
  test("goes in order and ends at the first answer", async () => {
    const chains = { m: ["n", "o", "p"] };
    const b = bench({ chains, outcomes: { m: status(500), n: refused(ERRORS.circuitOpen) } });
    expect(await b.forward()).toEqual({
      ...plain,
      model: "o",
      reasons: [
        { model: "m", reason: "error_code_500" },
        { model: "n", reason: "circuit_breaker_open" },
      ],
      target: { model: "o", arms: [] },
    } as FallbackResult);
    expect(b.models()).toEqual(["m", "n", "o"]);
    expect(b.context.record.answeredBy).toBe("o");
  });

  test("what a stand-in refuses does not end it", async () => {
    const b = bench({ outcomes: { m: status(500), n: status(400) } });
    expect(await b.forward()).toMatchObject({ model: "o", reasons: [{}, { model: "n", reason: "error_code_400" }] });
  });

  test.each([
    [1, ["m", "n"]],
    [2, ["m", "n", "o"]],
    [3, ["m", "n", "o", "p"]],
    [4, ["m", "n", "o", "p"]],
  ])("tries %d stand-ins at most", async (max_fallback_attempts, models) => {
    const outcomes = { m: status(500), n: status(500), o: status(500), p: status(500) };
    const b = bench({ chains: { m: ["n", "o", "p"] }, outcomes, policy: { max_fallback_attempts } });
    expect((await b.refusal()).details?.attempted_fallbacks).toEqual(models.slice(1));
    expect(b.models()).toEqual(models);
  });

  test("stand-ins get their own model in otherwise the same bytes, and longer timeouts", async () => {
    const b = bench({ outcomes: { m: status(500), n: status(500) }, policy: { fallback_timeout_multiplier: 2.5 } });
    await b.forward();
    expect(b.requests.map(({ patience }) => patience)).toEqual([1, 2.5, 2.5]);
    expect(b.requests[0]).toBe(b.request);
    expect(b.requests.map((request) => new TextDecoder().decode(request.body.bytes()))).toEqual([
      '{ "model": "m", "n" : 1.0 }',
      '{ "model": "n", "n" : 1.0 }',
      '{ "model": "o", "n" : 1.0 }',
    ]);
  });

  test("that nobody can end is refused with every reason", async () => {
    const outcomes = {
      m: status(503),
      n: failed({ kind: "timeout", phase: "first_byte", message: "late" }),
      o: refused(ERRORS.modelNotFound),
    };
    const error = await bench({ outcomes }).refusal();
    expect(error).toMatchObject({ status: 503, type: "all_fallbacks_exhausted", code: "all_fallbacks_exhausted" });
    expect(error.details).toEqual({
      original_model: "m",
      attempted_fallbacks: ["n", "o"],
      failure_reasons: [
        { model: "m", reason: "error_code_503" },
        { model: "n", reason: "timeout" },
        { model: "o", reason: "no_backend_available" },
      ],
    });
    expect(error.message).toContain("m: error_code_503, n: timeout, o: no_backend_available");
  });
});

describe("when to come back", () => {
  const later = (code: number, retryAfterMs: number | undefined) =>
    failed({ kind: "status", status: code, body: new Uint8Array(), retryAfterMs, headers: {} });
  const cases: [title: string, outcomes: BenchOptions["outcomes"], seconds: string | undefined][] = [
    ["nobody knows", { m: status(503), n: status(503), o: status(503) }, undefined],
    ["the soonest of all models", { m: later(429, 30_000), n: later(503, 2_100), o: status(500) }, "3"],
    [
      "a circuit that opens sooner",
      {
        m: later(429, 30_000),
        n: new GatewayError(ERRORS.circuitOpen, "open", { headers: { "Retry-After": "7" } }),
        o: status(500),
      },
      "7",
    ],
    [
      "an attempt before the last one",
      {
        m: { ...failed({ kind: "connect", message: "" }), retryAfterMs: 4_000 } as ForwardResult,
        n: status(500),
        o: status(500),
      },
      "4",
    ],
    ["at once", { m: later(429, 0), n: status(500), o: status(500) }, "1"],
    ["a backend that exaggerates", { m: later(429, 1e300), n: status(500), o: status(500) }, "86400"],
    ["nonsense", { m: later(429, Number.POSITIVE_INFINITY), n: status(500), o: status(500) }, undefined],
  ];
  test.each(cases)("%s", async (_title, outcomes, seconds) => {
    const error = await bench(outcomes === undefined ? {} : { outcomes }).refusal();
    expect(error.headers?.["Retry-After"]).toBe(seconds as string);
    expect(error.headers?.["x-should-retry"]).toBe("false");
  });
});

test("only the last model of a chain waits for a circuit, and all when an open circuit is no trigger", async () => {
  const outcomes = { m: status(503), n: status(503), o: status(503) };
  const b = bench({ outcomes });
  await b.refusal();
  expect(b.hurries).toEqual([true, true, false]);
  const patient = bench({ outcomes, policy: { trigger_conditions: { circuit_breaker_open: false } } });
  await patient.refusal();
  expect(patient.hurries).toEqual([false, false, false]);
});

describe("without a chain", () => {
  const cases: [title: string, options: BenchOptions][] = [
    ["no chain at all", { chains: {} }],
    ["a chain of another model", { chains: { n: ["o"] } }],
    ["switched off", { enabled: false }],
  ];
  test.each(cases)("%s: the very same request goes on, and its failure comes back", async (_title, options) => {
    const b = bench({ ...options, outcomes: { m: status(503) } });
    expect(b.fallback.chainOf(b.context, "m")).toEqual([]);
    expect(await b.forward()).toEqual({ ...status(503), model: "m", reasons: [] } as FallbackResult);
    expect(b.requests.length).toBe(1);
    expect(b.requests[0]).toBe(b.request);
    expect(b.requests[0]?.body).toBe(body);
  });

  test.each(["constructor", "__proto__", "toString"])("the model %s has none by accident", (model) => {
    const b = bench({});
    expect(b.fallback.chainOf(b.context, model)).toEqual([]);
  });
});

describe("headers", () => {
  const written = (original: string, result: FallbackResult) => {
    const headers: Record<string, string> = {};
    writeFallbackHeaders(original, result, headers);
    return headers;
  };

  test("are none without a fallback", () => {
    expect(written("m", { ...plain, model: "m", reasons: [] } as FallbackResult)).toEqual({});
  });

  test("name both models, the first reason and the number of models that failed", () => {
    const reasons = [
      { model: "m", reason: "timeout" },
      { model: "n", reason: "error_code_500" },
    ];
    expect(written("m", { ...plain, model: "o", reasons } as FallbackResult)).toEqual({
      "X-Fallback-Used": "true",
      "X-Original-Model": "m",
      "X-Fallback-Model": "o",
      "X-Fallback-Reason": "timeout",
      "X-Fallback-Attempts": "2",
    });
  });

  test("of names that a header cannot hold are percent-encoded", () => {
    const reasons = [{ model: "x", reason: "timeout" }];
    const headers = written("ünï/🚂 v1\r\nX-Evil: 1", { ...plain, model: "模型:8b\u007f", reasons } as FallbackResult);
    expect(headers["X-Original-Model"]).toBe("%C3%BCn%C3%AF/%F0%9F%9A%82 v1%0D%0AX-Evil: 1");
    expect(headers["X-Fallback-Model"]).toBe("%E6%A8%A1%E5%9E%8B:8b%7F");
    expect(() => new Headers(headers)).not.toThrow();
  });
});
