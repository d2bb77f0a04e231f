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
    tiered: {
      l1: { type: "memory", max_value_size: 1_048_576 },
      l2: { key_prefix: "response-cache/", region: "us-east-1" },
      promote_on_hit: true,
      l1_promotion_ttl: 300_000,
    },
  });
  expect(deduplicationSection.schema.parse({})).toEqual({ mode: "deterministic", ttl: 60_000 });
});

test.each([
  [{ backend: "redis" }, 'is not available yet; use "memory" or "tiered"'],
  [{ tiered: { l1: { type: "disk" } } }, "expected memory"],
  [{ tiered: { l2: { key_prefix: "/a" } } }, 'expected names of letters, digits and . _ -, each with "/" behind it'],
  [
    { tiered: { l2: { endpoint: "https://h/path" } } },
    'expected an address such as "https://s3.example.com", without a path',
  ],
  [{ backend: "disk" }, "unknown; known are memory and tiered"],
  [{ ttl: "0s" }, "must be longer than zero"],
  [{ capacity: 0 }, "Too small: expected number to be >=1"],
])("%p is refused", (input, message) => {
  expect(responseCacheSection.schema.safeParse(input).error?.issues[0]?.message).toBe(message);
});
