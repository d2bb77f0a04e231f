// Which tool the demo model calls when it is free to choose.

import { describe, expect, test } from "bun:test";
import { type ChatRequest, chatRequestSchema } from "./requests.ts";
import { chooseToolCall } from "./tool-choice.ts";

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tool = (name: string) => ({ type: "function", function: { name, parameters } });
const TOOLS = [tool("get_weather"), tool("Bash"), tool("TodoWrite"), { type: "custom", custom: { name: "shell" } }];

function request(question: unknown, more: object = {}): ChatRequest {
  return chatRequestSchema.parse({
    model: "demo",
    messages: [{ role: "user", content: question }],
    tools: TOOLS,
    ...more,
  });
}

describe("a tool that may be called is called when the question names it", () => {
  test.each([
    ["Call get_weather, please.", "get_weather"],
    ["Use Bash to look around", "Bash"],
    ["open a shell", "shell"],
  ])("%s", (question, name) => {
    expect(chooseToolCall(request(question))?.name).toBe(name);
  });

  test.each([["Say hello."], ["I like to bash metal"], [""]])("not by %p", (question) => {
    expect(chooseToolCall(request(question))).toBeUndefined();
  });

  test("its arguments fit its schema", () => {
    expect(JSON.parse(chooseToolCall(request("get_weather?"))?.input ?? "")).toEqual({ city: expect.any(String) });
  });

  test("only the user's own words count, not what an agent puts in front of them", () => {
    const content = [
      { type: "text", text: "<system-reminder>The Bash tool can be used.</system-reminder>" },
      { type: "text", text: "Say hello." },
    ];
    expect(chooseToolCall(request(content))).toBeUndefined();
  });

  test("tools that are not allowed are not called", () => {
    const only = (name: string) => ({
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name } }] },
      },
    });
    expect(chooseToolCall(request("get_weather?", only("Bash")))).toBeUndefined();
    expect(chooseToolCall(request("get_weather?", only("get_weather")))?.name).toBe("get_weather");
    expect(chooseToolCall(request("get_weather?", { tool_choice: "none" }))).toBeUndefined();
  });
});

test("once a tool has answered, the turn ends, whatever stands behind the answer", () => {
  const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } };
  const messages = [
    { role: "user", content: "get_weather?" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: "21 degrees" },
    { role: "user", content: "The Bash tool can be used." },
  ];
  expect(chooseToolCall(chatRequestSchema.parse({ model: "demo", messages, tools: TOOLS }))).toBeUndefined();
  const again = [...messages, { role: "assistant", content: "21" }, { role: "user", content: "and get_weather now?" }];
  const next = chatRequestSchema.parse({ model: "demo", messages: again, tools: TOOLS });
  expect(chooseToolCall(next)?.name).toBe("get_weather");
});
