import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { joinedName } from "./namespaces.ts";
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

function allowed(tools: readonly JsonObject[]): JsonObject {
  return { type: "allowed_tools", mode: "auto", tools: tools.map(({ type, name }) => ({ type, name })) };
}
