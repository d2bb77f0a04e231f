// Where a prompt goes in every format, for every strategy.

import { describe, expect, test } from "bun:test";
import type { ProtocolName } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { JsonObject } from "../lib/json.ts";
import { mergeSystem, type PromptMerge } from "../protocols/inject-prompt.ts";
import { passThrough } from "../protocols/registry.ts";
import { injectIntoRequest } from "./inject.ts";

type Strategy = PromptMerge["strategy"];

const STRATEGIES: Strategy[] = ["prepend", "append", "replace"];
const by = (strategy: Strategy): PromptMerge => ({ strategy, separator: "|" });
const USER = { role: "user", content: "hi" };
const MARK = { type: "ephemeral" };

function injectPrompt(protocol: ProtocolName, body: JsonObject, prompt: string, merge: PromptMerge) {
  return passThrough(protocol).injectPrompt?.(body, prompt, merge);
}

/** What the strategies make of a body, in the order of STRATEGIES. */
function each(protocol: ProtocolName, body: JsonObject): (JsonObject | undefined)[] {
  return STRATEGIES.map((strategy) => injectPrompt(protocol, body, "P", by(strategy)));
}

test("mergeSystem", () => {
  expect(STRATEGIES.map((strategy) => mergeSystem("S", "P", by(strategy)))).toEqual(["P|S", "S|P", "P"]);
  expect(STRATEGIES.map((strategy) => mergeSystem(undefined, "P", by(strategy)))).toEqual(["P", "P", "P"]);
  expect(mergeSystem("", "P", by("append"))).toBe("P");
});

describe("chat", () => {
  const contents = (messages: unknown[]) =>
    each("chat", { messages }).map((changes) =>
      ((changes?.messages ?? []) as JsonObject[]).map(({ content }) => content),
    );

  test("without instructions a system message is put in front", () => {
    expect(injectPrompt("chat", { messages: [USER] }, "P", by("append"))).toEqual({
      messages: [{ role: "system", content: "P" }, USER],
    });
  });

  test("the text of a system or developer message", () => {
    expect(contents([{ role: "developer", content: "S" }, USER])).toEqual([
      ["P|S", "hi"],
      ["S|P", "hi"],
      ["P", "hi"],
    ]);
  });

  test("several leading messages: before the first, behind the last, in place of all", () => {
    const system = (content: string) => ({ role: "system", content });
    expect(contents([system("A"), system("B"), USER, system("later")])).toEqual([
      ["P|A", "B", "hi", "later"],
      ["A", "B|P", "hi", "later"],
      ["P", "hi", "later"],
    ]);
  });

  test("text parts", () => {
    const parts = [
      { type: "text", text: "A" },
      { type: "text", text: "B" },
    ];
    expect(contents([{ role: "system", content: parts }]).map((content) => content[0])).toEqual([
      [{ type: "text", text: "P|A" }, parts[1]],
      [parts[0], { type: "text", text: "B|P" }],
      "P",
    ]);
  });

  test("only instructions, and nothing at all", () => {
    expect(contents([{ role: "system", content: "S" }])).toEqual([["P|S"], ["S|P"], ["P"]]);
    expect(contents([])).toEqual([["P"], ["P"], ["P"]]);
    expect(injectPrompt("chat", {}, "P", by("prepend"))).toBeUndefined();
  });
});

describe("other formats", () => {
  test("responses: instructions", () => {
    expect(each("responses", { instructions: "S" })).toEqual([
      { instructions: "P|S" },
      { instructions: "S|P" },
      { instructions: "P" },
    ]);
    expect(each("responses", { instructions: null })[0]).toEqual({ instructions: "P" });
  });

  test("messages: a text", () => {
    expect(each("messages", { system: "S" })).toEqual([{ system: "P|S" }, { system: "S|P" }, { system: "P" }]);
    expect(each("messages", {})[1]).toEqual({ system: "P" });
  });

  test("messages: blocks keep their marks for the cache", () => {
    const system = [
      { type: "text", text: "A" },
      { type: "text", text: "B", cache_control: MARK },
    ];
    expect(each("messages", { system })).toEqual([
      { system: [{ type: "text", text: "P|A" }, system[1]] },
      { system: [system[0], { type: "text", text: "B|P", cache_control: MARK }] },
      { system: [{ type: "text", text: "P", cache_control: MARK }] },
    ]);
    expect(each("messages", { system: [] })[0]).toEqual({ system: [{ type: "text", text: "P" }] });
  });

  test("completions: always before the text", () => {
    const changed = { prompt: "P|T" };
    expect(each("completions", { prompt: "T" })).toEqual([changed, changed, changed]);
    expect(each("completions", { prompt: ["T", "U"] })[0]).toEqual({ prompt: ["P|T", "P|U"] });
    expect(each("completions", { prompt: [1, 2] })[0]).toBeUndefined();
    expect(each("completions", {})[0]).toBeUndefined();
  });

  test("the body itself stays as it was", () => {
    const body = { system: [{ type: "text", text: "A" }], messages: [USER] };
    const before = structuredClone(body);
    each("messages", body);
    each("chat", body);
    expect(body).toEqual(before);
  });
});

describe("a neutral request", () => {
  const request = (...texts: string[]): GenerationRequest => ({
    model: "m",
    system: texts.map((text) => ({ type: "text", text, cache: { ttl: "5m" } })),
    messages: [],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "chat", body: {} },
    extensions: {},
  });

  test("is merged like a body", () => {
    const systems = (from: GenerationRequest) =>
      STRATEGIES.map((strategy) => injectIntoRequest(from, "P", by(strategy)).system.map(({ text }) => text));
    expect(systems(request())).toEqual([["P"], ["P"], ["P"]]);
    expect(systems(request("A", "B"))).toEqual([["P|A", "B"], ["A", "B|P"], ["P"]]);
    expect(injectIntoRequest(request("A"), "P", by("replace")).system[0]?.cache).toEqual({ ttl: "5m" });
  });
});
