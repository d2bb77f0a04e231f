import { describe, expect, test } from "bun:test";
import type { GenerationRequest } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { joinedName } from "./namespaces.ts";
import { decodeItem } from "./output-decoder.ts";
import { encodeOutput } from "./output-items.ts";
import { decodeRequest } from "./request-decoder.ts";
import { ResponsesStreamEncoder } from "./stream-encoder.ts";

const parameters = { type: "object", properties: {} };
const crm = {
  type: "namespace",
  name: "crm",
  description: "The customers.",
  tools: [
    { type: "function", name: "find", description: "Finds one.", parameters },
    { type: "custom", name: "note" },
  ],
};
const plain = { type: "function", name: "find", parameters };

const decode = (more: JsonObject) => decodeRequest({ model: "m", input: "hi", ...more });

describe("tools in a namespace", () => {
  test("become tools of their own, the first introduced by the namespace", () => {
    expect(decode({ tools: [crm, plain] }).tools).toEqual([
      { kind: "function", name: "crm__find", description: "crm: The customers.\n\nFinds one.", parameters },
      { kind: "custom", name: "crm__note" },
      { kind: "function", name: "find", parameters },
    ]);
  });

  test("brought by an item, too", () => {
    const item = { type: "additional_tools", role: "developer", tools: [crm] };
    const { tools } = decode({ input: [item, { role: "user", content: "hi" }] });
    expect(tools.map(({ name }) => name)).toEqual(["crm__find", "crm__note"]);
  });

  test("are refused where they are wrong", () => {
    const broken = { ...crm, tools: [{ type: "function" }] };
    expect(() => decode({ tools: [plain, broken] })).toThrow(/tools\[1\]\.tools\[0\]\.name/);
  });

  test("earlier calls have the joined name", () => {
    const call = { type: "function_call", call_id: "call_1", namespace: "crm", name: "find", arguments: "{}" };
    const result = { type: "function_call_output", call_id: "call_1", output: "Ada" };
    const { messages } = decode({ input: [{ role: "user", content: "hi" }, call, result] });
    expect(messages[1]?.parts[0]).toMatchObject({ type: "tool-call", name: "crm__find" });
  });

  test("calls come back under the client's names, whole and streamed", () => {
    const request = decode({ tools: [crm, plain] });
    const context: AnswerContext = { model: "m", createdAt: 1, nonce: "0".repeat(32), request };
    const calls = [
      { type: "tool-call", id: "call_1", name: "crm__find", arguments: "{}" },
      { type: "tool-call", id: "call_2", name: "crm__note", arguments: "x", custom: true },
      { type: "tool-call", id: "call_3", name: "find", arguments: "{}" },
    ] as const;
    const expected = [
      { type: "function_call", call_id: "call_1", namespace: "crm", name: "find" },
      { type: "custom_tool_call", call_id: "call_2", namespace: "crm", name: "note", input: "x" },
      { type: "function_call", call_id: "call_3", name: "find" },
    ];
    const finish = { reason: "tool-calls" } as const;
    const whole = encodeOutput({ id: "r", model: "m", createdAt: 1, parts: [...calls], finish }, context);
    expect(whole).toMatchObject(expected);
    expect(whole[2]).not.toHaveProperty("namespace");

    const encoder = new ResponsesStreamEncoder(context);
    let text = "";
    for (const [index, { arguments: args, ...call }] of calls.entries()) {
      text += encoder.push({ type: "part-start", index, part: call });
      text += encoder.push({ type: "delta", index, text: args });
      text += encoder.push({ type: "part-end", index });
    }
    text += encoder.push({ type: "finish", finish }) + encoder.end();
    const items = [...text.matchAll(/data: (.*"response\.output_item\.done".*)/g)].map(
      ([, data]) => (JSON.parse(data as string) as { item: JsonObject }).item,
    );
    expect(items).toMatchObject(expected);
  });
});

describe("functions that a tool search loads", () => {
  const deferred = { type: "function", name: "find", parameters, defer_loading: true };
  const call = { type: "function_call", call_id: "call_1", namespace: "find", name: "find", arguments: "{}" };
  const search = { type: "tool_search_call", call_id: "search_1", execution: "client", arguments: {} };
  const found = (...tools: JsonObject[]) => ({ type: "tool_search_output", call_id: "search_1", tools });
  const output = { type: "function_call_output", call_id: "call_1", output: "Ada" };
  const user = { role: "user", content: "hi" };

  test("earlier calls have the declared name, and calls come back as the vendor writes them", () => {
    const request = decode({ tools: [deferred, plainly("other")], input: [user, call, output] });
    expect(request.tools.map(({ name }) => name)).toEqual(["find", "other"]);
    expect(request.messages[1]?.parts[0]).toMatchObject({ type: "tool-call", name: "find" });
    expect(answered(request, "find", "other")).toMatchObject([
      { type: "function_call", namespace: "find", name: "find" },
      { type: "function_call", name: "other" },
    ]);
    expect(answered(request, "other")[0]).not.toHaveProperty("namespace");
  });

  test("by the client itself, are tools of the request", () => {
    const hosted = { type: "mcp", server_label: "files" };
    const request = decode({
      tools: [{ type: "tool_search", execution: "client" }],
      input: [user, search, found(deferred, crm, hosted), call, output],
    });
    expect(request.tools.map(({ name }) => name)).toEqual(["tool_search", "find", "crm__find", "crm__note"]);
    expect(answered(request, "find", "crm__find")).toMatchObject([
      { namespace: "find", name: "find" },
      { namespace: "crm", name: "find" },
    ]);
  });

  test("a namespace that holds a tool of its own name", () => {
    const own = { type: "namespace", name: "find", description: "d", tools: [plain, plainly("all")] };
    const request = decode({ tools: [own], input: [user, call, output] });
    expect(request.tools.map(({ name }) => name)).toEqual(["find", "find__all"]);
    expect(request.messages[1]?.parts[0]).toMatchObject({ name: "find" });
    expect(answered(request, "find", "find__all")).toMatchObject([
      { namespace: "find", name: "find" },
      { namespace: "find", name: "all" },
    ]);
  });
});

test("a backend's call of a function that it loaded has the name that other clients declared", () => {
  const item = { type: "function_call", id: "fc_1", call_id: "c", namespace: "find", name: "find", arguments: "{}" };
  expect(decodeItem(item)).toMatchObject([{ type: "tool-call", name: "find" }]);
});

test("a long name is cut, and still its own", () => {
  const names = ["a", "b"].map((end) => joinedName({ namespace: "n".repeat(60), name: `tool_${end}` }));
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  expect(new Set(names).size).toBe(2);
  expect(joinedName({ namespace: "mcp__files__", name: "read" })).toBe("mcp__files__read");
});

describe("hosted tools that agents offer unasked", () => {
  const search = { type: "web_search" };
  const optionalIn = (more: JsonObject) =>
    decode(more).tools.flatMap((tool) => ("optional" in tool && tool.optional ? [tool.name] : []));

  test.each([
    ["beside a function", { tools: [plain, search, { type: "tool_search" }, { type: "image_generation" }] }, 3],
    ["alone", { tools: [search] }, 0],
    ["demanded", { tools: [plain, search], tool_choice: search }, 0],
    ["one of the allowed", { tools: [plain, search], tool_choice: allowed([plain, search]) }, 1],
    ["the only one allowed", { tools: [plain, search], tool_choice: allowed([search]) }, 0],
    ["those that bring data", { tools: [plain, { type: "file_search" }, { type: "mcp" }] }, 0],
  ])("%s", (_what, more, count) => {
    expect(optionalIn(more)).toHaveLength(count);
  });
});

function plainly(name: string): JsonObject {
  return { type: "function", name, parameters };
}

/** The items of an answer that calls these tools. */
function answered(request: GenerationRequest, ...names: string[]): JsonObject[] {
  const parts = names.map((name, index) => ({ type: "tool-call" as const, id: `c${index}`, name, arguments: "{}" }));
  const context: AnswerContext = { model: "m", createdAt: 1, nonce: "0".repeat(32), request };
  return encodeOutput({ id: "r", model: "m", createdAt: 1, parts, finish: { reason: "tool-calls" } }, context);
}

function allowed(tools: readonly JsonObject[]): JsonObject {
  return { type: "allowed_tools", mode: "auto", tools: tools.map(({ type, name }) => ({ type, name })) };
}
