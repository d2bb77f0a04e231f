// What passes as a Responses request, what is refused, and how the refusal names the field.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readResponsesRequest } from "./read-request.ts";

const PDF = "data:application/pdf;base64,JVBERi0=";

function body(fields: JsonObject): JsonObject {
  return { model: "m", input: "Hello", ...fields };
}

function content(...parts: unknown[]): JsonObject {
  return body({ input: [{ role: "user", content: parts }] });
}

function refusal(request: JsonObject): { status: number; param: string | undefined; message: string } {
  try {
    readResponsesRequest(request);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { status: error.status, param: error.param, message: error.message };
  }
  throw new Error("nothing was refused");
}

describe("passes", () => {
  const accepted: [string, JsonObject][] = [
    ["a text", body({})],
    ["a streamed text", body({ stream: true })],
    ["an item without a type", body({ input: [{ role: "developer", content: "x" }] })],
    ["a type of null", body({ input: [{ type: null, role: "user", content: "x" }] })],
    ["a reference without a type", body({ input: [{ id: "msg_1" }] })],
    ["an unknown item", body({ input: [{ type: "shell_call", whatever: 1 }] })],
    ["an unknown part", content({ type: "input_hologram" })],
    ["members of tomorrow", body({ client_metadata: { a: 1 }, moderation: {} })],
    ["a file", content({ type: "input_file", filename: "a.pdf", file_data: PDF })],
    ["a plain text file", content({ type: "input_file", file_data: "data:text/plain;charset=utf-8;base64,YQ==" })],
    ["a file elsewhere", content({ type: "input_file", file_url: "https://example.com/a.pdf" })],
    ["an image", content({ type: "input_image", image_url: "data:image/png;base64,AA==", detail: "low" })],
    ["an image in chat's form", content({ type: "image_url", image_url: { url: "https://example.com/a.png" } })],
    ["hosted tools", body({ tools: [{ type: "web_search" }, { type: "computer_use" }, { type: "code_interpreter" }] })],
    ["a function", body({ tools: [{ type: "function", name: "f", parameters: null, strict: null }] })],
    ["a chosen function", body({ tool_choice: { type: "function", name: "f" } })],
    ["a stored prompt", body({ prompt: { id: "p" }, background: true, conversation: "conv_1" })],
    ["nulls", body({ temperature: null, reasoning: null, tools: null, tool_choice: null, previous_response_id: null })],
    ["no effort", body({ reasoning: { effort: null, summary: "auto" } })],
  ];
  test.each(accepted)("%s", (_name, request) => {
    const { model, choices, stream } = readResponsesRequest(request);
    expect({ model, choices, stream }).toEqual({ model: "m", choices: 1, stream: request.stream === true });
  });

  test.each(["auto", "low", "medium", "high", "xhigh", "none", "minimal"])("effort %s", (effort) => {
    expect(readResponsesRequest(body({ reasoning: { effort } })).model).toBe("m");
  });

  test("20 file references", () => {
    const part = { type: "input_file", file_url: "https://example.com/a.pdf" };
    expect(readResponsesRequest(content(...Array(20).fill(part))).model).toBe("m");
  });
});

describe("is refused", () => {
  const cases: [string, JsonObject, param: string, message: string][] = [
    ["no model", { input: "x" }, "model", "required"],
    ["no input", { model: "m" }, "input", "a string or an array of items"],
    ["a number as input", body({ input: 7 }), "input", "got a number"],
    ["a string as item", body({ input: ["x"] }), "input[0]", "got a string"],
    ["an empty item", body({ input: [{}] }), "input[0].type", "required"],
    ["an unknown role", body({ input: [{ role: "tool", content: "" }] }), "input[0].role", '"tool"'],
    ["no role", body({ input: [{ type: "message", content: "" }] }), "input[0].role", "required"],
    ["no content", body({ input: [{ role: "user" }] }), "input[0].content", "required"],
    ["a number as text", content({ type: "input_text", text: 1 }), "input[0].content[0].text", "got a number"],
    ["a part without type", content({ text: "x" }), "input[0].content[0].type", "part type"],
    ["a call without id", body({ input: [{ type: "function_call", name: "f" }] }), "input[0].call_id", "required"],
    [
      "arguments as an object",
      body({ input: [{ type: "function_call", call_id: "c", name: "f", arguments: {} }] }),
      "input[0].arguments",
      "got an object",
    ],
    ["no output", body({ input: [{ type: "function_call_output", call_id: "c" }] }), "input[0].output", "required"],
    ["a file id", content({ type: "input_file", file_id: 1 }), "input[0].content[0].file_id", "got a number"],
    ["an image id", content({ type: "input_image", file_id: {} }), "input[0].content[0].file_id", "got an object"],
    [
      "bare base64",
      content({ type: "input_file", file_data: "JVBERi0=" }),
      "input[0].content[0].file_data",
      "data URL",
    ],
    ["an empty file", content({ type: "input_file", filename: "x" }), "input[0].content[0].file_data", "file_url"],
    [
      "no data",
      content({ type: "input_file", file_data: "data:application/pdf;base64," }),
      "input[0].content[0].file_data",
      "no data",
    ],
    [
      "a foreign media type",
      content({ type: "input_file", file_data: "data:application/zip;base64,AA==" }),
      "input[0].content[0].file_data",
      '"application/zip"',
    ],
    ["a PDF as image", content({ type: "input_image", image_url: PDF }), "input[0].content[0].image_url", "image/jpeg"],
    [
      "a local file",
      content({ type: "input_file", file_url: "file:///etc/passwd" }),
      "input[0].content[0].file_url",
      "https",
    ],
    ["a bad temperature", body({ temperature: 3 }), "temperature", "from 0 to 2"],
    ["no output tokens", body({ max_output_tokens: 0 }), "max_output_tokens", "at least 1"],
    ["a numeric instruction", body({ instructions: 1 }), "instructions", "got a number"],
    [
      "an effort of max",
      body({ reasoning: { effort: "max" } }),
      "reasoning.effort",
      "auto, low, medium, high, xhigh, none, minimal",
    ],
    ["an effort of 1", body({ reasoning: { effort: 1 } }), "reasoning.effort", "got a number"],
    [
      "a nested function",
      body({ tools: [{ type: "function", function: { name: "f" } }] }),
      "tools[0].function",
      "nested form",
    ],
    ["a nameless function", body({ tools: [{ type: "function" }] }), "tools[0].name", "required"],
    ["a typeless tool", body({ tools: [{ name: "f" }] }), "tools[0].type", "required"],
    [
      "parameters as text",
      body({ tools: [{ type: "function", name: "f", parameters: "{}" }] }),
      "tools[0].parameters",
      "an object",
    ],
    [
      "strict as text",
      body({ tools: [{ type: "function", name: "f", strict: "yes" }] }),
      "tools[0].strict",
      "true or false",
    ],
    ["an unknown choice", body({ tool_choice: "any" }), "tool_choice", "auto, none, required"],
    [
      "chat's choice",
      body({ tool_choice: { type: "function", function: { name: "f" } } }),
      "tool_choice.name",
      "beside type",
    ],
    ["include as text", body({ include: "x" }), "include", "an array"],
    [
      "two memories",
      body({ conversation: { id: "c" }, previous_response_id: "r" }),
      "previous_response_id",
      "conversation",
    ],
    [
      "21 file references",
      content(...Array(21).fill({ type: "input_file", file_url: "https://example.com/a" })),
      "input",
      "at most 20 files",
    ],
  ];
  test.each(cases)("%s", (_name, request, param, message) => {
    const refused = refusal(request);
    expect({ status: refused.status, param: refused.param }).toEqual({ status: 400, param });
    expect(refused.message).toContain(message);
  });
});

describe("affinity", () => {
  const affinity = (fields: JsonObject) => readResponsesRequest(body({})).affinity(body(fields));

  test("the client's own key comes first", () => {
    expect(affinity({ prompt_cache_key: "k", user: "u", previous_response_id: "r" })).toBe("k");
  });

  test("a later turn has the affinity of the first", () => {
    const first = [{ role: "user", content: "Hi" }];
    const later = [...first, { role: "assistant", content: "Hello" }, { role: "user", content: "And?" }];
    expect(affinity({ input: later })).toBe(affinity({ input: first }) as string);
    expect(affinity({ input: later })).not.toBe(affinity({ input: later, instructions: "Other" }));
  });

  test("the earlier answer tells the conversation", () => {
    expect(affinity({ previous_response_id: "resp_1" })).toBe("resp_1");
  });
});
