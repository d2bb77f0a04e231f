// What the section circuit_breaker accepts, in which spellings, and what it refuses with which words.

import { describe, expect, test } from "bun:test";
import { type CircuitBreakerSettings, circuitBreakerSection, circuitPolicyFor } from "./circuit-breaker.ts";

const { schema } = circuitBreakerSection;

function messagesOf(input: unknown): string[] {
  const result = schema.safeParse(input);
  return (result.error?.issues ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("defaults", () => {
  expect(schema.parse({})).toEqual({
    enabled: true,
    failure_threshold: 5,
    failure_rate_threshold: 0.5,
    minimum_requests: 10,
    timeout: 60_000,
    half_open_max_requests: 3,
    success_threshold: 2,
    panic: true,
    failure_status_codes: [500, 502, 503, 504],
    backends: {},
  });
});

describe("timeout", () => {
  test.each<[string | number, number]>([
    ["60s", 60_000],
    ["1m30s", 90_000],
    ["250ms", 250],
    [30, 30_000],
    [0.5, 500],
    ["30", 30_000],
    ["0.5", 500],
  ])("%p", (written, timeoutMs) => {
    expect(schema.parse({ timeout: written }).timeout).toBe(timeoutMs);
    expect(schema.parse({ backends: { a: { timeout: written } } }).backends.a?.timeout).toBe(timeoutMs);
  });

  const form = 'expected a duration such as "60s", or a number of seconds';
  test.each<[unknown, string]>([
    ["0s", "must be longer than zero"],
    [0, "must be longer than zero"],
    [-1, "must be longer than zero"],
    ["soon", form],
    ["-1", form],
    ["", form],
    [true, form],
    [null, form],
  ])("%p is refused", (written, message) => {
    expect(messagesOf({ timeout: written })).toEqual([`timeout: ${message}`]);
    expect(messagesOf({ backends: { a: { timeout: written } } })).toEqual([`backends.a.timeout: ${message}`]);
  });
});

describe("values without sense", () => {
  const atLeastOne = "must be at least 1; enabled: false switches the circuit breaker off";
  test.each<[string, unknown, string]>([
    ["failure_threshold", 0, atLeastOne],
    ["minimum_requests", 0, atLeastOne],
    ["half_open_max_requests", 0, atLeastOne],
    ["success_threshold", 0, atLeastOne],
    ["failure_threshold", -5, atLeastOne],
    ["failure_rate_threshold", 0, "must be above 0; 0.5 opens the circuit when half of the recent requests failed"],
    ["failure_rate_threshold", 50, "must be at most 1, which means that every recent request failed"],
  ])("%s: %p", (key, value, message) => {
    expect(messagesOf({ [key]: value })).toEqual([`${key}: ${message}`]);
    expect(messagesOf({ backends: { a: { [key]: value } } })).toEqual([`backends.a.${key}: ${message}`]);
  });

  test.each([400, 429, 499])("status %p as a failure", (status) => {
    expect(messagesOf({ failure_status_codes: [500, status] })).toEqual([
      "failure_status_codes.1: must be 500 to 599: a client's own mistake and overload (429) never count as failures",
    ]);
  });

  test("unknown keys, also of a backend", () => {
    expect(messagesOf({ threshold: 5 })).toHaveLength(1);
    expect(messagesOf({ backends: { a: { backends: {} } } })).toHaveLength(1);
  });
});

test("more successes than requests at one time can be asked for, because a request that ended makes room", () => {
  expect(messagesOf({ half_open_max_requests: 1, success_threshold: 5 })).toEqual([]);
});

test("every other spelling leads to a key of the schema, also of a backend", () => {
  for (const [spelling, key] of Object.entries(circuitBreakerSection.aliases ?? {})) {
    const value = key === "timeout" ? "5s" : 4;
    const input = spelling.startsWith("backends.") ? { backends: { a: { [key]: value } } } : { [key]: value };
    expect(messagesOf(input)).toEqual([]);
  }
});

describe("settings of one backend", () => {
  const settings: CircuitBreakerSettings = schema.parse({
    failure_threshold: 7,
    backends: { own: { timeout: 5, enabled: false }, plain: {} },
  });
  const { backends: _, ...common } = settings;

  test("its overrides replace single fields", () => {
    expect(circuitPolicyFor("own", settings)).toEqual({ ...common, timeout: 5_000, enabled: false });
  });

  test.each(["plain", "other", "constructor", "__proto__"])("%s has the common ones", (name) => {
    expect(circuitPolicyFor(name, settings)).toEqual(common);
  });
});
