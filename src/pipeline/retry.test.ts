// What follows a failed attempt: again or not, and after which wait.

import { describe, expect, test } from "bun:test";
import { newCounters, toBackend } from "../backends/backend.ts";
import { documentSchema } from "../config/sections/registry.ts";
import type { StatusFailure, UpstreamFailure } from "../upstream/failure.ts";
import { type RetrySettings, retrySettingsFor, waitBeforeRetry } from "./retry.ts";

const retry: RetrySettings = {
  max_attempts: 3,
  base_delay: 100,
  max_delay: 10_000,
  backoff_multiplier: 2,
  jitter: false,
  status_codes: [429, 502, 503, 504],
};

function status(code: number, retryAfterMs?: number): StatusFailure {
  return { kind: "status", status: code, body: new Uint8Array(), retryAfterMs, headers: {} };
}

const reset: UpstreamFailure = { kind: "reset", message: "" };

/** A wait, or the rule by which there is none. */
function wait(options: Partial<Parameters<typeof waitBeforeRetry>[0]>): number | string {
  return waitBeforeRetry({ failure: reset, attempts: 1, untriedLeft: false, retry, random: () => 0, ...options });
}

const isRetried = (options: Parameters<typeof wait>[0]) => typeof wait(options) === "number";

describe("which failures are worth another attempt", () => {
  const cases: [title: string, failure: UpstreamFailure, again: boolean][] = [
    ["no connection", { kind: "connect", message: "" }, true],
    ["a broken connection", reset, true],
    ["an answer that is none", { kind: "invalid-response", message: "" }, true],
    ["a timeout of connecting", { kind: "timeout", phase: "connect", message: "" }, true],
    ["a timeout of the first byte", { kind: "timeout", phase: "first_byte", message: "" }, true],
    ["a timeout between chunks", { kind: "timeout", phase: "between_chunks", message: "" }, true],
    ["the timeout of the whole request", { kind: "timeout", phase: "request", message: "" }, false],
    ["400", status(400), false],
    ["404", status(404), false],
    ["408", status(408), false],
    ["429", status(429), true],
    ["500", status(500), false],
    ["502", status(502), true],
    ["503", status(503), true],
    ["504", status(504), true],
    ["529", status(529), false],
    ["an error told in the stream", { kind: "told-in-stream" }, false],
    ["a client that left", { kind: "aborted" }, false],
  ];
  test.each(cases)("%s", (_title, failure, again) => {
    expect(isRetried({ failure })).toBe(again);
    expect(isRetried({ failure, untriedLeft: true })).toBe(again);
  });
});

test("what a model lacks is asked of another backend only where that is known to take it", () => {
  const lacking: UpstreamFailure = { ...status(400), lacks: "image" };
  expect(isRetried({ failure: lacking, untriedLeft: true })).toBe(false);
  expect(isRetried({ failure: lacking, untriedLeft: true, isTakenElsewhere: true })).toBe(true);
  expect(isRetried({ failure: lacking, untriedLeft: false, isTakenElsewhere: true })).toBe(false);
});

test("status_codes say which answers are worth another attempt, and nothing else", () => {
  const own = { ...retry, status_codes: [500, 404] };
  expect([500, 404, 503, 429].map((code) => isRetried({ failure: status(code), retry: own }))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(isRetried({ retry: { ...retry, status_codes: [] } })).toBe(true);
});

test("a backend that refuses the gateway's credential is left for another, and not asked again", () => {
  for (const code of [401, 403]) {
    expect(wait({ failure: status(code), untriedLeft: true })).toBe(0);
    expect(wait({ failure: status(code), untriedLeft: false })).toBe("no other backend of the model can be asked");
  }
});

test("the rule is named by which there is no other attempt", () => {
  expect(wait({ failure: status(500) })).toBe("HTTP 500 is not in retry.status_codes");
  expect(wait({ attempts: 3 })).toBe("retry.max_attempts is 3");
  expect(wait({ failure: { kind: "timeout", phase: "request", message: "" } })).toContain("timeouts.request");
});

describe("how often", () => {
  test("until the attempts are used up, other backends included", () => {
    expect(isRetried({ attempts: 2 })).toBe(true);
    expect(isRetried({ attempts: 3 })).toBe(false);
    expect(isRetried({ attempts: 3, untriedLeft: true })).toBe(false);
  });

  test("not at all when one attempt is allowed", () => {
    expect(isRetried({ retry: { ...retry, max_attempts: 1 }, untriedLeft: true })).toBe(false);
  });
});

describe("after which wait", () => {
  test("another backend is asked at once, whatever this one said", () => {
    expect(wait({ untriedLeft: true, failure: status(429, 5_000) })).toBe(0);
  });

  test("the backoff grows with the attempts", () => {
    const patient = { ...retry, max_attempts: 20 };
    expect([1, 2, 3, 7, 8].map((attempts) => wait({ attempts, retry: patient }))).toEqual([
      100, 200, 400, 6_400, 10_000,
    ]);
  });

  test("attempts that do not count wait as long as the first one does", () => {
    expect(wait({ attempts: 0 })).toBe(100);
  });

  test("jitter takes at most half of it away", () => {
    const jittered = { ...retry, jitter: true };
    expect([0, 0.5].map((value) => wait({ retry: jittered, random: () => value }))).toEqual([50, 75]);
  });

  test("a longer Retry-After is waited for, a shorter one does not shorten the backoff", () => {
    expect(wait({ failure: status(503, 2_000) })).toBe(2_000);
    expect(wait({ failure: status(503, 0) })).toBe(100);
    expect(wait({ failure: status(503) })).toBe(100);
  });

  test("never longer than max_delay", () => {
    expect(wait({ failure: status(429, 3_600_000) })).toBe(10_000);
  });
});

describe("settings of one backend", () => {
  test("its overrides replace single fields", () => {
    const settings = documentSchema.parse({
      backends: [
        { name: "own", url: "http://h", retry_override: { max_attempts: 7, base_delay: "0s" } },
        { name: "plain", url: "http://h" },
      ],
    });
    const [own, plain] = settings.backends.map((backend) => ({
      backend: toBackend(backend),
      health: "ready" as const,
      available: true,
      counters: newCounters(),
    }));
    expect(retrySettingsFor(own!, retry)).toEqual({ ...retry, max_attempts: 7, base_delay: 0 });
    expect(retrySettingsFor(plain!, retry)).toEqual(retry);
  });
});
