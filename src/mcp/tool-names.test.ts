// Names of MCP tools: what fits passes as it is, everything else stays apart and stays the same.

import { describe, expect, test } from "bun:test";
import { createToolNames, serverLabels } from "./tool-names.ts";

const FITS = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const OWN = [
  "read_text_file",
  "write_text_file",
  "edit_text_file",
  "list_directory",
  "search_files",
  "run_command",
  "update_plan",
];

test.each([
  ["github", "create_issue", "github__create_issue"],
  ["my-server", "get-Sum", "my-server__get-Sum"],
  ["a", "_b", "a___b"],
  ["a", "b__c", "a__b__c"],
])("%s and %s", (server, tool, name) => {
  expect(createToolNames().nameOf(server, tool)).toBe(name);
});

test.each([
  ["a__b", "c", /^a_b__c_[0-9a-f]{8}$/],
  ["a_", "b", /^a__b_[0-9a-f]{8}$/],
  ["GitHub MCP", "issue.create", /^GitHub_MCP__issue_create_[0-9a-f]{8}$/],
  ["日本語", "検索", /^mcp____[0-9a-f]{8}$/],
  ["", "", /^mcp___[0-9a-f]{8}$/],
  ["9lives", "x", /^mcp_9lives__x_[0-9a-f]{8}$/],
  [
    "server-with-a-name-that-is-very-long",
    "tool_with_a_name_that_is_very_long_as_well",
    /^server-with-a-name-t__tool_with_a_name_that_is_very_lo.*_[0-9a-f]{8}$/,
  ],
])("%s and %s do not fit", (server, tool, pattern) => {
  const name = createToolNames().nameOf(server, tool);
  expect(name).toMatch(pattern);
  expect(name).toMatch(FITS);
});

describe("random names", () => {
  const LETTERS = [..."aAbB09_-_-__. /\\\"'\u0000\n\tüéß日本語🙂\ud800"];
  let state = 12_345;
  const random = (limit: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
  const word = () =>
    Array.from({ length: random(random(10) === 0 ? 200 : 6) }, () => LETTERS[random(LETTERS.length)]).join("");

  test("fit, are unique, stay the same, and none is one of the agent's", () => {
    const names = createToolNames();
    const known = new Map<string, string>();
    for (let round = 0; round < 20_000; round++) {
      const [server, tool] = [word(), word()];
      const key = JSON.stringify([server, tool]);
      if (known.size >= 4_000 && !known.has(key)) continue;
      const name = names.nameOf(server, tool);
      expect(name).toMatch(FITS);
      if (known.has(key)) expect(name).toBe(known.get(key) as string);
      known.set(key, name);
    }
    expect(known.size).toBeGreaterThan(3_000);
    expect(new Set(known.values()).size).toBe(known.size);
    for (const own of OWN) expect([...known.values()]).not.toContain(own);
  });

  test("are the same in another session", () => {
    const [one, other] = [createToolNames(), createToolNames()];
    const pairs = Array.from({ length: 500 }, () => [word(), word()] as const);
    const first = pairs.map(([server, tool]) => one.nameOf(server, tool));
    expect(pairs.map(([server, tool]) => other.nameOf(server, tool))).toEqual(first);
  });
});

test("a name made to look like another one's does not take its place", () => {
  const names = createToolNames();
  const odd = createToolNames().nameOf("s", "a.b");
  const tool = odd.slice("s__".length);
  expect(names.nameOf("s", tool)).toBe(odd);
  const other = names.nameOf("s", "a.b");
  expect(other).not.toBe(odd);
  expect(other).toMatch(FITS);
});

test("what is remembered is bounded", () => {
  const names = createToolNames();
  for (let index = 0; index < 10_000; index++) names.nameOf("s", `t${index}`);
  expect(names.nameOf("s", "t9999")).toBe("s__t9999");
  expect(names.nameOf("s", "t0")).toBe("s__t0");
});

test("servers of the same name have labels that differ", () => {
  expect(serverLabels(["a", "a", "a-2", "b", "a"])).toEqual(["a", "a-2", "a-2-2", "b", "a-3"]);
});
