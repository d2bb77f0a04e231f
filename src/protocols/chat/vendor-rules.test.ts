// What is changed in a chat client's request for the vendors whose rows have rules.

import { expect, test } from "bun:test";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import type { PresetName } from "../../presets.ts";
import { chatPassThrough } from "./pass-through.ts";

const LOOK = { type: "function", function: { name: "look" } };
const WAIT = { type: "function", function: { name: "wait" } };
const USER = { role: "user", content: "hi" };

function adapt(type: PresetName, more: object, model = "m") {
  const body = { model, messages: [USER], ...more };
  return chatPassThrough.adapt?.(body, { kind: BACKEND_KINDS[type], model, askedModel: model });
}

test.each(["groq", "mistral", "xai", "openrouter", "together", "sglang", "docker"] as const)(
  "%s: a plain request passes as it is",
  (type) => {
    expect(adapt(type, { temperature: 0, max_tokens: 9, stream: true })).toBeUndefined();
  },
);

test("a member that is null is taken out, and nothing is lost by it", () => {
  expect(adapt("groq", { logprobs: null })).toEqual({ members: { logprobs: undefined }, lost: [] });
  expect(adapt("groq", { logprobs: true })).toEqual({ members: { logprobs: undefined }, lost: ["logprobs"] });
});

test.each([
  ["grok-4.3", undefined],
  ["grok-4.20-0309-non-reasoning", ["END"]],
])("xai: the stop sequences of %s", (model, stop) => {
  const body = { stop: ["END"] };
  expect({ ...body, ...adapt("xai", body, model)?.members }.stop).toEqual(stop as string[]);
});

test.each([
  ["grok-4.20-reasoning", undefined],
  ["grok-4.3", "low"],
])("xai: the effort minimal for %s", (model, effort) => {
  expect({
    reasoning_effort: "minimal",
    ...adapt("xai", { reasoning_effort: "minimal" }, model)?.members,
  }).toMatchObject({
    reasoning_effort: effort,
  });
});

test.each([
  ["moonshot", "required", [LOOK, WAIT], undefined],
  ["moonshot", LOOK, undefined, undefined],
  ["zai", "required", [LOOK, WAIT], undefined],
  ["zai", LOOK, [LOOK], undefined],
  ["zai", "none", "no tools", undefined],
  ["deepinfra", LOOK, [LOOK], undefined],
  ["deepinfra", "none", undefined, undefined],
  ["groq", "required", undefined, undefined],
] as const)("%s: tool_choice %j", (type, tool_choice, tools, choice) => {
  const members = adapt(type, { tools: [LOOK, WAIT], tool_choice })?.members;
  if (tools === undefined) expect(members).toBeUndefined();
  else if (tools === "no tools") expect(members).toEqual({ tools: undefined, tool_choice: undefined });
  else expect(members).toEqual({ tools, tool_choice: choice });
});

test.each([
  [{ reasoning_content: "hm" }, { reasoning: "hm" }],
  [{ reasoning_content: "hm", reasoning: "hm", reasoning_details: [] }, { reasoning: "hm" }],
  [{ reasoning: "hm", refusal: null, name: "bot" }, { reasoning: "hm" }],
])("groq: an answer with %j comes back with %j", (sent, kept) => {
  const members = adapt("groq", { messages: [USER, { role: "assistant", content: "a", ...sent }] })?.members;
  expect(members?.messages).toEqual([USER, { role: "assistant", content: "a", ...kept }]);
});

test("deepseek: thoughts that are there stay, others are blank, and pictures stay parts", () => {
  const picture = { role: "user", content: [{ type: "image_url", image_url: { url: "https://h/a.png" } }] };
  const messages = [
    picture,
    { role: "assistant", content: "a", reasoning_content: "hm" },
    { role: "assistant", content: "b" },
  ];
  expect(adapt("deepseek", { messages })?.members.messages).toEqual([
    ...messages.slice(0, 2),
    { role: "assistant", content: "b", reasoning_content: " " },
  ]);
});

test("mistral: the same id becomes the same nine characters, another id others", () => {
  const calls = ["call_1", "call_2", "abcDEF123"].map((id) => ({ id, ...LOOK }));
  const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "a" }));
  const members = adapt("mistral", {
    messages: [{ role: "assistant", content: "", tool_calls: calls }, ...results],
  })?.members;
  const [first, ...rest] = (members?.messages ?? []) as { tool_calls: { id: string }[]; tool_call_id: string }[];
  const ids = first?.tool_calls.map(({ id }) => id);
  expect(ids).toEqual(rest.map(({ tool_call_id }) => tool_call_id));
  expect(new Set(ids).size).toBe(3);
  expect(ids?.[2]).toBe("abcDEF123");
  for (const id of ids ?? []) expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
});
