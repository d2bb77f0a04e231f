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
    redis: {
      pool_size: 8,
      key_prefix: "cr:resp:",
      connect_timeout_ms: 3_000,
      command_timeout_ms: 1_000,
      tls: false,
      fallback_to_memory: true,
    },
  });
  expect(deduplicationSection.schema.parse({})).toEqual({ mode: "deterministic", ttl: 60_000 });
});

test.each([
  [{ tiered: { l1: { type: "disk" } } }, "expected memory"],
  [{ tiered: { l2: { key_prefix: "/a" } } }, 'expected names of letters, digits and . _ -, each with "/" behind it'],
  [
    { tiered: { l2: { endpoint: "https://h/path" } } },
    'expected an address such as "https://s3.example.com", without a path',
  ],
  [{ backend: "disk" }, "unknown; known are memory, tiered and redis"],
  [{ redis: { url: "http://sekret@host" } }, expect.stringContaining("expected a URL such as")],
  [{ redis: { command_timeout_ms: 1_001 } }, "Too big: expected number to be <=1000"],
  [{ redis: { key_prefix: "" } }, "expected 1 to 128 visible characters of ASCII"],
  [{ ttl: "0s" }, "must be longer than zero"],
  [{ capacity: 0 }, "Too small: expected number to be >=1"],
])("%p is refused", (input, message) => {
  expect(responseCacheSection.schema.safeParse(input).error?.issues[0]?.message).toEqual(message);
});
