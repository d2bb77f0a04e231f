// Conditions of routes: each by itself, and all together.

import { describe, expect, test } from "bun:test";
import type { ConditionSettings } from "../config/sections/routes.ts";
import { compileCondition, type RouteSubject } from "./conditions.ts";

const NOON = Date.UTC(2026, 0, 15, 12);

function subject(more: Partial<RouteSubject> = {}): RouteSubject {
  return {
    inputTokens: () => 100,
    has: () => false,
    keyId: undefined,
    users: () => [],
    organizationId: undefined,
    header: () => null,
    metadata: () => undefined,
    wallTimeMs: NOON,
    ...more,
  };
}

const holds = (settings: Partial<ConditionSettings>, more?: Partial<RouteSubject>) =>
  compileCondition({ time_zone: "UTC", targets: [], ...settings }).holds(subject(more));

test.each([
  [">100", false],
  [">=100", true],
  ["<100", false],
  ["<= 100", true],
  ["<101", true],
])("input_tokens %s of 100 tokens: %p", (input_tokens, expected) => {
  expect(holds({ input_tokens })).toBe(expected);
});

describe("hours", () => {
  test.each([
    ["12:00-13:00", "UTC", true],
    ["11:00-12:00", "UTC", false],
    ["22:00-06:00", "UTC", false],
    ["20:00-12:01", "UTC", true],
    ["13:00-14:00", "Europe/Berlin", true],
    ["21:00-21:01", "Asia/Tokyo", true],
    ["12:00-12:00", "UTC", true],
  ])("%s in %s at noon in London: %p", (hours, time_zone, expected) => {
    expect(holds({ hours, time_zone })).toBe(expected);
  });

  test("end before their last minute, and go over midnight", () => {
    const at = (hour: number, minute: number) =>
      holds({ hours: "22:00-06:00" }, { wallTimeMs: Date.UTC(2026, 0, 15, hour, minute) });
    expect([at(21, 59), at(22, 0), at(0, 0), at(5, 59), at(6, 0)]).toEqual([false, true, true, true, false]);
  });
});

test("of several patterns one must match, and of several conditions all", () => {
  const settings = { key: ["batch-*", "night"], has: ["image", "tools"] as ["image", "tools"] };
  const both = { has: () => true };
  expect(holds(settings, { keyId: "batch-1", ...both })).toBe(true);
  expect(holds(settings, { keyId: "night", ...both })).toBe(true);
  expect(holds(settings, { keyId: "day", ...both })).toBe(false);
  expect(holds(settings, { keyId: "night", has: (feature) => feature === "image" })).toBe(false);
  expect(holds(settings, both)).toBe(false);
});

test("a user is the key's or the request's, and metadata must be text", () => {
  expect(holds({ user: ["ada"] }, { users: () => [undefined, "ada"] })).toBe(true);
  expect(holds({ metadata: { tier: ["1"] } }, { metadata: () => 1 })).toBe(false);
  expect(holds({ header: { "x-team": ["r*"] } }, { header: (name) => (name === "x-team" ? "red" : null) })).toBe(true);
});

test("the words name every condition", () => {
  const { words } = compileCondition({ time_zone: "UTC", targets: [], has: ["image"], input_tokens: ">5", key: ["a"] });
  expect(words).toBe("key a; has image; input_tokens >5");
});
