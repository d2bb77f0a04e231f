// What a client is told about its limit.

import { describe, expect, test } from "bun:test";
import { type Decision, RateLimitError, writeRateLimitHeaders } from "./decision.ts";

const refused: Decision = {
  allowed: false,
  scope: "key",
  limit: 60,
  windowMs: 60_000,
  remaining: 0,
  retryAfterMs: 1000.001,
  resetAtMs: Date.UTC(2030, 0, 1) + 1,
};

describe("rate limit decision", () => {
  test("an admitted request carries the state of the limit and no Retry-After", () => {
    const headers = {};
    writeRateLimitHeaders({ ...refused, allowed: true, remaining: 7, retryAfterMs: 0 }, headers);
    expect(headers).toEqual({
      "X-RateLimit-Limit": "60",
      "X-RateLimit-Remaining": "7",
      "X-RateLimit-Reset": String(Date.UTC(2030, 0, 1) / 1000 + 1),
    });
  });

  test("the 429", () => {
    const error = new RateLimitError(refused);
    expect(error).toMatchObject({ status: 429, type: "rate_limit_exceeded", code: "rate_limit_exceeded" });
    expect(error.message).toBe("Rate limit exceeded: 60 requests per 60s for this API key. Try again in 2 s.");
    expect(error.details).toEqual({
      limit: 60,
      window: "60s",
      retry_after: 2,
      reset_at: "2030-01-01T00:00:01.000Z",
    });
    expect(error.headers).toEqual({
      "X-RateLimit-Limit": "60",
      "X-RateLimit-Remaining": "0",
      "X-RateLimit-Reset": String(Date.UTC(2030, 0, 1) / 1000 + 1),
      "Retry-After": "2",
    });
  });

  test("Retry-After is never 0, and a window may be shorter than a second", () => {
    const error = new RateLimitError({ ...refused, limit: 1, windowMs: 500, retryAfterMs: 0.001 });
    expect(error.headers?.["Retry-After"]).toBe("1");
    expect(error.message).toContain("1 request per 500ms");
  });
});
