// Defaults and refusals of the sections response_cache and deduplication.

import { expect, test } from "bun:test";
import { deduplicationSection } from "./deduplication.ts";
import { responseCacheSection } from "./response-cache.ts";

test("the defaults", () => {
  expect(responseCacheSection.schema.parse({})).toEqual({
    enabled: false,
    backend: "memory",
    capacity: 1_000,
    ttl: 300_000,
    max_response_size: 1_048_576,
    max_stream_buffer_size: 10_485_760,
    max_total_size: 268_435_456,
  });
  expect(deduplicationSection.schema.parse({})).toEqual({ mode: "deterministic", ttl: 60_000 });
});

test.each([
  [{ backend: "redis" }, 'is not available yet; use "memory"'],
  [{ backend: "tiered" }, 'is not available yet; use "memory"'],
  [{ backend: "disk" }, "unknown; known is memory"],
  [{ ttl: "0s" }, "must be longer than zero"],
  [{ capacity: 0 }, "Too small: expected number to be >=1"],
])("%p is refused", (input, message) => {
  expect(responseCacheSection.schema.safeParse(input).error?.issues[0]?.message).toBe(message);
});
