// What has to change in a chat request that passes as it is, for each kind of backend.

import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { BackendKindName } from "../../names.ts";
import { adaptChatBody } from "./quirks.ts";

const user = { role: "user", content: "hi" };
const fn = (name: string) => ({ type: "function", function: { name } });
const KINDS: BackendKindName[] = [
  "openai",
  "azure",
  "vllm",
  "llamacpp",
  "ollama",
  "lmstudio",
  "federated",
  "generic",
  "demo",
];
const OLD: BackendKindName[] = ["llamacpp", "ollama", "lmstudio"];

function adapt(more: JsonObject, kind: BackendKindName): Record<string, unknown> | undefined {
  return adaptChatBody({ model: "m", messages: [user], ...more }, BACKEND_KINDS[kind].chat);
}

test("an ordinary request passes everywhere", () => {
  const more = {
    temperature: 1,
    max_tokens: 5,
    stream: true,
    tools: [fn("f")],
    tool_choice: "auto",
    messages: [
      { role: "system", content: "x" },
      user,
      { role: "assistant", content: "y" },
      { role: "tool", content: "z" },
    ],
  };
  for (const kind of KINDS) expect([kind, adapt(more, kind)]).toEqual([kind, undefined]);
});

test("max_completion_tokens is renamed for engines that know only max_tokens", () => {
  for (const kind of KINDS) {
    const changes = adapt({ max_completion_tokens: 5, max_tokens: 9 }, kind);
    expect([kind, changes]).toEqual([
      kind,
      OLD.includes(kind) ? { max_completion_tokens: undefined, max_tokens: 5 } : undefined,
    ]);
    expect(changes !== undefined && "max_completion_tokens" in changes).toBe(OLD.includes(kind));
  }
  expect(adapt({ max_completion_tokens: null, max_tokens: 9 }, "ollama")).toEqual({ max_completion_tokens: undefined });
});

test("what a client says to its own format goes on, even where it means nothing", () => {
  const more = { store: true, metadata: {}, service_tier: "flex", safety_identifier: "x", prompt_cache_key: "k" };
  for (const kind of ["vllm", "llamacpp", "ollama", "lmstudio", "openai", "azure", "generic", "federated"] as const) {
    expect(adapt(more, kind)).toBeUndefined();
  }
});

test("developer is system where it is not known", () => {
  const messages = [{ role: "developer", content: "x", name: "n" }, user];
  for (const kind of ["vllm", "llamacpp", "ollama", "lmstudio", "generic"] as const) {
    expect(adapt({ messages }, kind)).toEqual({ messages: [{ role: "system", content: "x", name: "n" }, user] });
  }
  for (const kind of ["openai", "azure", "federated"] as const) expect(adapt({ messages }, kind)).toBeUndefined();
});

describe("is_error", () => {
  const adapted = (message: JsonObject, kind: BackendKindName = "openai") =>
    (adapt({ messages: [user, { role: "tool", tool_call_id: "t", ...message }] }, kind)?.messages as JsonObject[])?.[1];

  test("is told in the text", () => {
    expect(adapted({ content: "bad", is_error: true })).toEqual({
      role: "tool",
      tool_call_id: "t",
      content: "[tool error] bad",
    });
    expect(adapted({ content: [{ type: "text", text: "bad" }], is_error: true })?.content).toEqual([
      { type: "text", text: "[tool error]" },
      { type: "text", text: "bad" },
    ]);
    expect(adapted({ content: "fine", is_error: false }, "ollama")).toEqual({
      role: "tool",
      tool_call_id: "t",
      content: "fine",
    });
  });

  test("another gateway of this kind reads it itself", () => {
    expect(adapted({ content: "bad", is_error: true }, "federated")).toBeUndefined();
  });
});

describe("extensions in replayed answers", () => {
  const answer = {
    role: "assistant",
    content: "x",
    reasoning_content: "hm",
    reasoning_details: [{}],
    tool_calls: [{ id: "1", ...fn("f"), extra_content: { google: {} } }],
  };

  test.each(["vllm", "llamacpp", "ollama", "lmstudio"])("proofs of thoughts are taken out for %s", (kind) => {
    const adapted = adapt({ messages: [answer] }, kind)?.messages as JsonObject[];
    expect(adapted[0]).toMatchObject({ content: "x", reasoning_content: "hm", reasoning: "hm" });
    expect(JSON.stringify(adapted)).not.toMatch(/reasoning_details|extra_content/);
  });

  test("are taken out for OpenAI", () => {
    expect(adapt({ messages: [answer] }, "openai")).toEqual({
      messages: [{ role: "assistant", content: "x", tool_calls: [{ id: "1", ...fn("f") }] }],
    });
  });

  test("thoughts are told under both names to local engines", () => {
    for (const kind of ["vllm", "llamacpp", "ollama", "lmstudio"] as const) {
      const changes = adapt({ messages: [answer] }, kind);
      const { reasoning_details: _, ...told } = answer;
      expect(changes).toEqual({ messages: [{ ...told, tool_calls: [{ id: "1", ...fn("f") }], reasoning: "hm" }] });
      expect(adapt(changes as JsonObject, kind)).toBeUndefined();
    }
    expect(adapt({ messages: [answer] }, "generic")).toBeUndefined();
  });
});

describe("tool_choice", () => {
  const tools = [fn("f"), fn("g")];
  const cases: [kind: BackendKindName, choice: unknown, expected: unknown][] = [
    ["openai", fn("g"), undefined],
    ["vllm", fn("g"), undefined],
    ["lmstudio", fn("g"), { tools: [fn("g")], tool_choice: "required" }],
    ["llamacpp", fn("g"), { tools: [fn("g")], tool_choice: "required" }],
    ["ollama", fn("g"), { tools: [fn("g")], tool_choice: undefined }],
    ["ollama", "none", { tools: undefined, tool_choice: undefined }],
    ["ollama", "required", undefined],
    ["lmstudio", "none", undefined],
    ["lmstudio", fn("h"), undefined],
    ["lmstudio", { type: "nonsense" }, undefined],
    [
      "generic",
      { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [fn("f")] } },
      { tools: [fn("f")], tool_choice: "auto" },
    ],
  ];
  test.each(cases)("%s: %j", (kind, tool_choice, expected) => {
    expect(adapt({ tools, tool_choice }, kind) as unknown).toEqual(expected);
  });
});

test("LM Studio knows JSON only by a schema", () => {
  const response_format = { type: "json_object" };
  expect(adapt({ response_format }, "lmstudio")).toMatchObject({ response_format: { type: "json_schema" } });
  expect(adapt({ response_format }, "ollama")).toBeUndefined();
});
