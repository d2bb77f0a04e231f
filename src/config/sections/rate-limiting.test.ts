// Defaults of the section rate_limiting, and what it refuses.

import { describe, expect, test } from "bun:test";
import { toJsonSchema } from "../schema/schema-export.ts";
import { parseAddressRange } from "../values/address-range.ts";
import { rateLimitingSection } from "./rate-limiting.ts";

const { schema } = rateLimitingSection;

function messages(input: unknown): string[] {
  return schema.safeParse(input).error?.issues.map(({ message }) => message) ?? [];
}

describe("section rate_limiting", () => {
  test("defaults", () => {
    expect(schema.parse({})).toEqual({
      enabled: false,
      storage: "memory",
      redis: { key_prefix: "cr:limit:", connect_timeout_ms: 3_000, command_timeout_ms: 250, tls: false },
      limits: {
        per_client: { requests_per_second: 10, burst_capacity: 20 },
        per_backend: { requests_per_second: 100, burst_capacity: 200 },
        per_api_key: { requests_per_second: 10, burst_capacity: 20 },
        global: { requests_per_second: 1000, burst_capacity: 2000 },
      },
      whitelist: [],
      bypass_keys: [],
      headers_on_success: false,
    });
  });

  test("the burst follows the rate, and may be below it", () => {
    const limitOf = (per_client: Record<string, number>) => schema.parse({ limits: { per_client } }).limits.per_client;
    expect(limitOf({ requests_per_second: 50 })).toEqual({ requests_per_second: 50, burst_capacity: 100 });
    expect(limitOf({ burst_capacity: 3 })).toEqual({ requests_per_second: 10, burst_capacity: 3 });
    expect(limitOf({ requests_per_second: 1_000_000 }).burst_capacity).toBe(1_000_000);
  });

  test("a limit below one is refused with a clear message", () => {
    const requests = (requests_per_second: unknown) => messages({ limits: { global: { requests_per_second } } });
    expect(requests(0)).toEqual(["must be at least 1; limits are switched off with rate_limiting.enabled: false"]);
    expect(requests(-5)[0]).toContain("must be at least 1");
    expect(requests(0.5)).toEqual(["expected a whole number of requests, 1 or more"]);
    expect(requests("10")).toEqual(["expected a whole number of requests, 1 or more"]);
    expect(requests(2_000_000)).toEqual(["must be at most 1000000"]);
    expect(messages({ limits: { per_backend: { burst_capacity: 0 } } })[0]).toContain("must be at least 1");
  });

  test("other refusals", () => {
    expect(messages({ storage: "disk" })).toEqual(["expected memory or redis"]);
    expect(messages({ whitelist: ["10.0.0.0/8", "10.0.0.0/33"] })[0]).toContain("CIDR range");
    expect(messages({ bypass_keys: ["short"] })).toEqual(["at least 8 characters"]);
    expect(messages({ limits: { per_user: {} } })).toHaveLength(1);
  });

  test("the JSON Schema shows the fields of a limit", () => {
    expect(JSON.stringify(toJsonSchema(schema))).toContain("burst_capacity");
  });
});

describe("addresses and ranges", () => {
  const valid: [text: string, address: string, prefixLength: number][] = [
    ["192.0.2.7", "192.0.2.7", 32],
    ["10.0.0.1/8", "10.0.0.1", 8],
    ["0.0.0.0/0", "0.0.0.0", 0],
    ["2001:DB8:0::1", "2001:db8::1", 128],
    ["::/0", "::", 0],
    ["::ffff:10.0.0.0/104", "10.0.0.0", 8],
    ["::ffff:1.2.3.4", "1.2.3.4", 32],
  ];
  test.each(valid)("%s", (text, address, prefixLength) => {
    const range = parseAddressRange(text);
    expect(range?.address.toString()).toBe(address);
    expect(range?.prefixLength).toBe(prefixLength);
  });

  const invalid =
    "|1|127.1|0x7f.0.0.1|010.0.0.1|1.2.3.4:80|1.2.3.4/|1.2.3.4/33|1.2.3.4/08|1.2.3.4/8/8|1.2.3.4/-1|10/8|" +
    "::/129|[::1]|fe80::1%eth0|::ffff:0:0/90|::1.2.3.4|localhost| 1.2.3.4";
  test.each(invalid.split("|"))("refused: '%s'", (text) => {
    expect(parseAddressRange(text)).toBeUndefined();
  });
});
