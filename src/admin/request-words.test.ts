// Sentences about requests: every kind of failure, every kind of step, every end.

import { describe, expect, test } from "bun:test";
import { type RequestEnd, recordOf } from "../../test/support/request-records.ts";
import type { AttemptStep } from "../stats/request-record.ts";
import { failureLabel, toFailure, type UpstreamFailure } from "../upstream/failure.ts";
import { candidateWords, explain, summarize, tokensPerSecond } from "./request-words.ts";

function begin(stream = true) {
  const time = { ms: 0 };
  const story = recordOf({ operation: "chat", model: "m", stream, isKept: true }, () => time.ms);
  const finish = (status: number, durationMs: number, { outcome, ...more }: Partial<RequestEnd> = {}) => {
    Object.assign(story, more);
    story.finish(status, outcome ?? (status < 400 ? "succeeded" : "failed"), durationMs);
  };
  return { story, time, finish };
}

const coded = (code: string) => Object.assign(new Error("secret"), { code });
const status = (number: number): UpstreamFailure => ({
  kind: "status",
  status: number,
  body: new TextEncoder().encode("sekret prompt"),
  retryAfterMs: undefined,
  headers: {},
});
const timeout = (phase: "connect" | "first_byte" | "between_chunks" | "request"): UpstreamFailure => ({
  kind: "timeout",
  phase,
  message: `Backend 'gpu-1' did not answer in time: the limit${phase === "request" ? "" : " of 5000 ms"} for timeouts.${phase} has passed.`,
});

const FAILURES: [failure: UpstreamFailure, words: string, more?: Partial<AttemptStep>][] = [
  [toFailure(coded("ECONNREFUSED"), "gpu-1"), "gpu-1 refused the connection"],
  [toFailure(coded("ENOTFOUND"), "gpu-1"), "gpu-1 has a name that leads nowhere"],
  [toFailure(coded("EHOSTUNREACH"), "gpu-1"), "gpu-1 cannot be reached from here"],
  [toFailure(coded("ENOENT"), "gpu-1"), "gpu-1 has no socket at its path"],
  [toFailure(coded("EACCES"), "gpu-1"), "gpu-1 has a socket that the gateway may not use"],
  [toFailure(coded("EPROTO"), "gpu-1"), "gpu-1 does not speak TLS"],
  [toFailure(coded("CERT_HAS_EXPIRED"), "gpu-1"), "gpu-1 showed a certificate that is not accepted"],
  [toFailure(coded("FailedToOpenSocket"), "gpu-1"), "gpu-1 could not be reached"],
  [toFailure(coded("ECONNRESET"), "gpu-1"), "gpu-1 broke the connection off before it had answered"],
  [
    toFailure(coded("ECONNRESET"), "gpu-1"),
    "gpu-1 broke the connection off in the middle of its answer, after 300 ms",
    { firstByteMs: 20 },
  ],
  [
    { kind: "reset", message: "Backend 'gpu-1' was taken out of service, and its time to finish has passed." },
    "gpu-1 was taken out of service before its answer was complete",
  ],
  [timeout("connect"), "gpu-1 could not be connected to within 5 s"],
  [timeout("first_byte"), "gpu-1 sent nothing within 5 s"],
  [timeout("between_chunks"), "gpu-1 fell silent in the middle of its answer, for 5 s"],
  [timeout("request"), "gpu-1 was not done when the time for the whole request was over, after 300 ms"],
  [status(400), "gpu-1 refused the request (status 400)"],
  [status(401), "gpu-1 did not accept the gateway's own credentials (status 401)"],
  [status(403), "gpu-1 did not accept the gateway's own credentials (status 403)"],
  [
    status(429),
    "gpu-1 had no room for the request (status 429) and asked to be left alone for 2.5 s",
    { retryAfterMs: 2500 },
  ],
  [status(500), "gpu-1 failed (status 500)"],
  [status(503), "gpu-1 was overloaded or not ready (status 503)"],
  [{ kind: "invalid-response", message: "Backend 'gpu-1' answered with HTML." }, "gpu-1 answered with HTML"],
  [{ kind: "told-in-stream" }, "gpu-1 ended its stream with an error of its own"],
  [{ kind: "aborted" }, "gpu-1 was still answering when the client left, after 300 ms"],
];

describe("a failed attempt", () => {
  test.each(FAILURES)("%p", (failure, words, more = {}) => {
    const { story, finish } = begin();
    const step = story.attempt("gpu-1", "m");
    const detail = "message" in failure ? { detail: failure.message } : {};
    const known = failure.kind === "status" ? { status: failure.status } : {};
    Object.assign(step, { durationMs: 300, failure: failureLabel(failure), ...detail, ...known, ...more });
    const next = story.attempt("gpu-2", "m");
    Object.assign(next, { durationMs: 3000, firstByteMs: 1200, status: 200 });
    finish(200, 3400);
    expect(summarize(story, undefined)).toBe(`${words}; gpu-2 answered after 1.2 s.`);
    expect(explain(story, undefined)).toEqual([
      `${words}.`,
      "gpu-2 answered after 1.2 s.",
      "The answer was complete after 3.4 s.",
    ]);
    expect(JSON.stringify(explain(story, undefined))).not.toMatch(/sek?ret/);
  });

  test("that was never sent, or that is not known by its name", () => {
    const { story, finish } = begin();
    Object.assign(story.attempt("gpu-1", "m"), { durationMs: 1, failure: "not_sent" });
    Object.assign(story.attempt("gpu-2", "m"), { durationMs: 1, failure: "odd" });
    finish(400, 2, { failure: "invalid_request_error" });
    expect(explain(story, undefined)).toEqual([
      "gpu-1 was not asked: its format cannot say what the request wants.",
      "gpu-2 failed (odd).",
      "The client got status 400 after 2 ms.",
    ]);
  });
});

describe("other steps and ends", () => {
  test("what the cache did", () => {
    for (const [cache, reason, words] of [
      ["HIT", undefined, "The response cache had the answer: no backend was asked."],
      ["MISS", undefined, "The response cache did not have the answer."],
      ["BYPASS", undefined, "The response cache was left out."],
      [
        "BYPASS",
        "not_deterministic",
        "The response cache was left out: its temperature is not 0, so that every answer is another one.",
      ],
    ] as const) {
      const { story, finish } = begin();
      story.cache = cache;
      story.cacheReason = reason;
      finish(200, 5);
      expect(explain(story, undefined)).toEqual([words, "The answer was complete after 5 ms."]);
    }
  });

  test("waits, stand-ins, takeovers, shared calls, files", () => {
    const { story, time, finish } = begin();
    time.ms = 2000;
    for (const reason of ["first_checks", "model_refresh", "trial", "limits", "retry"]) {
      story.add({ kind: "wait", durationMs: 90, reason });
    }
    story.add({ kind: "wait", durationMs: 1230, reason: "queue", class: "batch" });
    story.add({ kind: "file", field: "messages[0]" });
    story.add({ kind: "shared", leader: "o-1" });
    story.add({ kind: "fallback", from: "m", to: "n", reason: "error_code_503" });
    story.add({ kind: "takeover", from: "gpu-1", to: "gpu-2", reason: "reset" });
    finish(200, 125_000, { usage: { input: { total: 1 }, output: { total: 1000 } }, firstByteMs: 25_000 });
    expect(explain(story, undefined)).toEqual([
      "The request took 2 s to arrive and to be read.",
      "The request waited 90 ms for the first health checks of the backends.",
      "The request waited 90 ms for the backends to say which models they have.",
      "The request waited 90 ms for a request that was trying a backend after failures.",
      "The request waited 90 ms for a limit that is kept elsewhere.",
      "The request waited 90 ms before another attempt.",
      "The request waited 1.2 s in the queue (class batch).",
      "messages[0] names a file that is not kept here: only backends that may hold it could be asked.",
      "An identical request was under way (o-1), and its answer was shared.",
      "m could not answer (error_code_503), so n was asked instead.",
      "gpu-2 went on in the stream that had broken off at gpu-1 (reset).",
      "The answer was complete after 2 min 5 s, with 1000 tokens (10 per second).",
    ]);
  });

  test("refusals, in the words that the client had where they are known", () => {
    const { story, finish } = begin();
    story.add({ kind: "refused", reason: "circuit_breaker_open" });
    finish(503, 3, { failure: "circuit_breaker_open" });
    expect(summarize(story, undefined)).toBe("No backend was asked: the circuits of all its backends are open.");
    expect(summarize(story, "Its only backend is down.")).toBe("No backend was asked: Its only backend is down.");
  });

  test("requests that run, streams that broke off, clients that left", () => {
    const running = begin();
    running.story.attempt("gpu-1", "m");
    running.time.ms = 61_000;
    expect(explain(running.story, undefined)).toEqual([
      "gpu-1 is being asked.",
      "It still runs, for 1 min 1 s so far.",
    ]);
    const broken = begin();
    Object.assign(broken.story.attempt("gpu-1", "m"), { durationMs: 900, firstByteMs: 1, failure: "reset" });
    broken.finish(502, 901, { failure: "reset", outcome: "stream_broken" });
    expect(summarize(broken.story, undefined)).toBe(
      "gpu-1 broke the connection off in the middle of its answer, after 900 ms. The stream broke off after 901 ms: the client has a part of the answer and an error behind it.",
    );
    const left = begin();
    left.finish(499, 70, { outcome: "client_left" });
    expect(summarize(left.story, undefined)).toBe("The client left after 70 ms.");
  });
});

test("candidates: why each was or was not chosen", () => {
  const { story } = begin();
  const candidates = [
    { backend: "a", score: 1 / 3 },
    { backend: "b", score: 0.25 },
    { backend: "c", score: 1 / 3 },
    { backend: "d", excluded: "over_share", score: 1 },
    { backend: "e", excluded: "circuit_open" },
    { backend: "f", excluded: "no_slot" },
  ];
  const step = story.attempt("a", "m", "Random", candidates);
  expect(candidates.map((candidate) => candidateWords(candidate, step))).toEqual([
    "chosen by Random: 0.3333",
    "not chosen: 0.25 against 0.3333 of a",
    "not chosen: as good as a (0.3333)",
    "not chosen: it has more than its share of the open requests",
    "not chosen: its circuit is open",
    "not chosen: it had no free slot",
  ]);
  expect(explain(story, undefined)[0]).toContain("e was passed over: its circuit is open");
});

test("tokens per second are those of the time in which the model wrote", () => {
  const speed = (stream: boolean, more: Partial<RequestEnd>) => {
    const { story, finish } = begin(stream);
    finish(200, 1100, { usage: { input: { total: 1 }, output: { total: 50 } }, ...more });
    return tokensPerSecond(story);
  };
  expect(speed(true, { firstByteMs: 100 })).toBe(50);
  expect(speed(false, { backendMs: 500, firstByteMs: 1100 })).toBe(100);
  expect(speed(true, { firstByteMs: 1100 })).toBeUndefined();
  // The disk keeps microseconds: 2.9874 ms come back as 2.987 ms.
  expect(speed(false, { backendMs: 2.9874 })).toBe(speed(false, { backendMs: 2.987 }) as number);
  expect(speed(true, { usage: { input: { total: 1 }, output: { total: 0 } } })).toBeUndefined();
});
