// What is there stays unless the update says otherwise, and each difference is a line.

import { expect, test } from "bun:test";
import type { FactEntry } from "../config/sections/metadata-entry.ts";
import { mergeFacts } from "./merge-facts.ts";

const price = (input_tokens: number, cache_read_tokens?: number) => ({
  pricing: { input_tokens, output_tokens: 1, ...(cache_read_tokens !== undefined && { cache_read_tokens }) },
});
const fact = (id: string, metadata: FactEntry["metadata"], vendor?: FactEntry["vendor"]): FactEntry => ({
  id,
  aliases: [],
  metadata,
  ...(vendor !== undefined && { vendor }),
});

test("entries are added, changed and kept", () => {
  const present = [
    fact("same", price(2)),
    fact("dearer", price(2, 1)),
    fact("kept", price(9)),
    fact("m", price(1), "groq"),
  ];
  const update = [
    fact("same", price(2)),
    fact("dearer", price(3)),
    fact("new", price(4)),
    fact("m", price(5), "cerebras"),
  ];
  const { entries, lines, ...counts } = mergeFacts(present, update, []);
  expect(counts).toEqual({ added: 2, changed: 1, unchanged: 1 });
  expect(lines).toEqual([
    "~ dearer: input_tokens 2 -> 3, cache_read_tokens 1 -> none",
    "+ new: input_tokens 4, output_tokens 1",
    "+ cerebras: m: input_tokens 5, output_tokens 1",
  ]);
  expect(entries.map(({ id, vendor }) => `${vendor ?? ""} ${id}`)).toEqual([
    " same",
    " dearer",
    " kept",
    "groq m",
    " new",
    "cerebras m",
  ]);
});

test("what differs from the built-in facts is told, and their capabilities stay", () => {
  const builtin = [fact("m", { ...price(2), capabilities: ["chat", "code"], display_name: "M" })];
  const update = [fact("m", { ...price(3), capabilities: ["chat", "vision"] })];
  const { entries, lines } = mergeFacts([], update, builtin);
  expect(lines).toEqual(["~ m: input_tokens 2 -> 3, capabilities [chat code] -> [chat code vision]"]);
  expect(entries[0]?.metadata.capabilities).toEqual(["chat", "code", "vision"]);
});
