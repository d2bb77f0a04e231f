// What each client format tells of what its requests bring and name.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../lib/json.ts";
import { NO_ATTACHMENTS, partAt, withPart } from "./attachments.ts";
import { clientProtocol } from "./registry.ts";

const link = "https://example.com/a.png";
const data = "data:image/png;base64,iVBORw0KGgo=";

type Told = [kind: string, place: string, value: string, param: string, mediaType?: string];

function told(format: "chat" | "responses" | "messages", body: JsonObject): Told[] {
  const found = clientProtocol(format).attachments?.(body) ?? [];
  for (const { at, param } of found) {
    let text = "";
    for (const step of at) text += typeof step === "number" ? `[${step}]` : `.${step}`;
    expect(param.startsWith(`${text.slice(1)}.`)).toBe(true);
  }
  return found.map(({ kind, place, value, param, mediaType }) =>
    mediaType === undefined ? [kind, place, value, param] : [kind, place, value, param, mediaType],
  );
}

test("texts share one empty list", () => {
  const turns = [
    { role: "user", content: "Hello!" },
    { role: "assistant", content: null },
    {
      role: "user",
      content: [
        { type: "text", text: "x" },
        { type: "input_text", text: "y" },
      ],
    },
  ];
  for (const format of ["chat", "responses", "messages", "completions"] as const) {
    const found = clientProtocol(format).attachments?.({ messages: turns, input: turns, system: "x" });
    if (format === "completions") expect(found).toBeUndefined();
    else expect(found).toHaveLength(0);
  }
  expect(clientProtocol("chat").attachments?.({ messages: turns.slice(0, 2) })).toBe(NO_ATTACHMENTS);
  expect(clientProtocol("responses").attachments?.({ input: "Hello!" })).toBe(NO_ATTACHMENTS);
  expect(clientProtocol("responses").attachments?.({ input: turns })).toBe(NO_ATTACHMENTS);
  expect(clientProtocol("messages").attachments?.({ messages: turns.slice(0, 2) })).toBe(NO_ATTACHMENTS);
});

describe("chat", () => {
  const inMessage = (...content: unknown[]) =>
    told("chat", {
      messages: [
        { role: "system", content: "x" },
        { role: "user", content },
      ],
    });
  const at = (place: number) => `messages[1].content[${place}]`;

  test("parts that bring something", () => {
    expect(
      inMessage(
        { type: "text", text: link },
        { type: "image_url", image_url: { url: link, detail: "low" } },
        { type: "image_url", image_url: data },
        { type: "audio_url", audio_url: { url: link } },
        { type: "video_url", video_url: { url: "data:video/mp4;base64,AAAA" } },
        { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
      ),
    ).toEqual([
      ["link", "image", link, `${at(1)}.image_url.url`],
      ["data", "image", data, `${at(2)}.image_url`],
      ["link", "other", link, `${at(3)}.audio_url.url`],
      ["data", "other", "data:video/mp4;base64,AAAA", `${at(4)}.video_url.url`],
    ]);
  });

  test("files", () => {
    expect(
      inMessage(
        { type: "file", file: { file_id: "file-1" } },
        { type: "file", file: { file_data: "JVBERi0=", filename: "a.pdf" } },
        { type: "file", file: { file_data: "eA==", filename: "a.TXT" } },
        { type: "file", file: { file_data: "eA==" } },
        { type: "file", file: { file_data: data, filename: "x" } },
        { type: "file", file: { file_data: link } },
        { type: "file", file: { file_data: "HTTP:127.0.0.1" } },
      ),
    ).toEqual([
      ["file-id", "document", "file-1", `${at(0)}.file.file_id`],
      ["data", "document", "JVBERi0=", `${at(1)}.file.file_data`, "application/pdf"],
      ["data", "document", "eA==", `${at(2)}.file.file_data`, "text/plain"],
      ["data", "document", "eA==", `${at(3)}.file.file_data`, "application/pdf"],
      ["data", "document", data, `${at(4)}.file.file_data`],
      ["link", "document", link, `${at(5)}.file.file_data`],
      ["link", "document", "HTTP:127.0.0.1", `${at(6)}.file.file_data`],
    ]);
  });

  test("whatever the part is called, and whoever says it", () => {
    const content = [{ type: "picture", image_url: { url: link } }];
    expect(told("chat", { messages: [{ role: "tool", tool_call_id: "1", content }] })).toEqual([
      ["link", "image", link, "messages[0].content[0].image_url.url"],
    ]);
  });

  test("what cannot be one is left to whoever reads it", () => {
    const parts = [null, 1, "x", [], { type: "image_url" }, { type: "image_url", image_url: { url: 1 } }, { file: 1 }];
    expect(inMessage(...parts, { type: "file", file: { file_id: 1, file_data: null } })).toEqual([]);
    expect(told("chat", { messages: [null, "x", { content: 1 }] })).toEqual([]);
    expect(told("chat", {})).toEqual([]);
  });
});

describe("Responses", () => {
  test("parts of messages and of outputs", () => {
    expect(
      told("responses", {
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: link },
              { type: "input_image", image_url: link },
              { type: "image_url", image_url: { url: data } },
              { type: "input_image", file_id: "file-1" },
              { type: "input_file", file_id: "file-2" },
              { type: "input_file", file_url: link },
              { type: "input_file", file_data: data, filename: "a.png" },
            ],
          },
          { type: "function_call_output", call_id: "1", output: "https://example.com" },
          { type: "function_call_output", call_id: "1", output: [{ type: "input_image", image_url: link }] },
          { type: "computer_call_output", output: { type: "computer_screenshot", image_url: link, file_id: "file-3" } },
          { type: "reasoning", content: [{ type: "reasoning_text", text: "x" }] },
        ],
      }),
    ).toEqual([
      ["link", "image", link, "input[0].content[1].image_url"],
      ["data", "image", data, "input[0].content[2].image_url.url"],
      ["file-id", "image", "file-1", "input[0].content[3].file_id"],
      ["file-id", "document", "file-2", "input[0].content[4].file_id"],
      ["link", "document", link, "input[0].content[5].file_url"],
      ["data", "document", data, "input[0].content[6].file_data"],
      ["link", "image", link, "input[2].output[0].image_url"],
      ["file-id", "image", "file-3", "input[3].output.file_id"],
      ["link", "image", link, "input[3].output.image_url"],
    ]);
  });
});

describe("Messages", () => {
  const image = { type: "image", source: { type: "url", url: link } };
  const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } };
  const file = { type: "document", source: { type: "file", file_id: "file_1" }, title: "x" };

  test("blocks of instructions, turns, results and documents", () => {
    expect(
      told("messages", {
        system: [{ type: "text", text: "x" }, file],
        messages: [
          { role: "user", content: [image, pdf, { type: "document", source: { type: "text", data: link } }] },
          { role: "assistant", content: [{ type: "tool_use", id: "1", name: "f", input: { source: { url: link } } }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: [image, pdf, file] }] },
          { role: "user", content: [{ type: "document", source: { type: "content", content: [image] } }] },
        ],
      }),
    ).toEqual([
      ["file-id", "document", "file_1", "system[1].source.file_id"],
      ["link", "image", link, "messages[0].content[0].source.url"],
      ["data", "document", "JVBERi0=", "messages[0].content[1].source.data", "application/pdf"],
      ["link", "image", link, "messages[2].content[0].content[0].source.url"],
      ["data", "document", "JVBERi0=", "messages[2].content[0].content[1].source.data", "application/pdf"],
      ["file-id", "document", "file_1", "messages[2].content[0].content[2].source.file_id"],
      ["link", "image", link, "messages[3].content[0].source.content[0].source.url"],
    ]);
  });

  test("a document in the result of a tool", () => {
    const nested = { type: "document", source: { type: "content", content: [image] } };
    const content = [{ type: "tool_result", tool_use_id: "1", content: [nested] }];
    expect(told("messages", { messages: [{ role: "user", content }] })).toEqual([
      ["link", "image", link, "messages[0].content[0].content[0].source.content[0].source.url"],
    ]);
  });
});

test("another part takes its place, and all that does not lead there is shared", () => {
  const value = { model: "m", messages: [{ content: "x" }, { role: "user", content: [{ a: 1 }, { b: 2 }] }] };
  const changed = withPart(value, ["messages", 1, "content", 0], { c: 3 });
  expect(changed).toEqual({
    model: "m",
    messages: [{ content: "x" }, { role: "user", content: [{ c: 3 }, { b: 2 }] }],
  });
  expect(partAt(changed, ["messages", 0])).toBe(value.messages[0] as JsonObject);
  expect(partAt(changed, ["messages", 1, "content", 1])).toBe(partAt(value, ["messages", 1, "content", 1]));
  expect(partAt(value, ["messages", 1, "content", 0])).toEqual({ a: 1 });
});
