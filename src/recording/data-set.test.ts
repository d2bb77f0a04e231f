import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { ContentPart } from "../generation/content.ts";
import { NO_CLIENT } from "../generation/request.ts";
import { readAnswer, readAsked } from "./conversation.ts";
import { type DataSetShape, importedRecording, readLine, toLine } from "./data-set.ts";

/** What an imported line says when it is exported again. */
function again(line: string, shape: DataSetShape): string {
  const read = readLine(line);
  if (typeof read === "string") throw new Error(read);
  const { facts, request, answer } = importedRecording("set", read, 0);
  const asked = readAsked(facts.operation, request);
  const told = readAnswer(facts.operation, answer, 200);
  if (asked === undefined || told === undefined) throw new Error("it cannot be read");
  return toLine(shape, { id: "id", model: read.model, request: asked, answer: told }) ?? "";
}

/** The line of a conversation that clients had with no tools. */
function exported(parts: ContentPart[], shape: DataSetShape = "finetuning") {
  const request = {
    ...{ model: "m", system: [], messages: [{ role: "user" as const, parts }], tools: [], sampling: {}, reasoning: {} },
    ...{ stream: false, origin: NO_CLIENT, extensions: {} },
  };
  return toLine(shape, {
    id: "id",
    model: "m",
    request,
    answer: { parts: [{ type: "text", text: "Yes." }], finish: "stop" },
  });
}

const filled = fc.string({ minLength: 1 }).filter((text) => text.trim() !== "");
const message = fc.record({ role: fc.constantFrom("user" as const, "assistant" as const), content: filled });
const call = { id: "c1", type: "function", function: { name: "look", arguments: '{"at":"sky"}' } };

describe("lines of data sets", () => {
  test("are refused where they would be too deep to be written again", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    expect(readLine(`{"messages":[{"role":"user","content":"x","more":${deep}}]}`)).toBe(
      "is nested deeper than 256 levels",
    );
  });

  test("come out as they went in", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), filled, filled, (between, first, last) => {
        const messages = [
          { role: "system", content: "Be kind." },
          { role: "user", content: first },
          ...between,
          { role: "assistant", content: last },
        ];
        expect(JSON.parse(again(JSON.stringify({ messages }), "finetuning"))).toEqual({ messages });
        const asEval = again(JSON.stringify({ messages }), "evals");
        expect(JSON.parse(asEval)).toMatchObject({
          item: { messages: messages.slice(0, -1) },
          sample: { output_text: last },
        });
        expect(again(asEval, "evals")).toBe(asEval);
      }),
    );
  });

  test("hold tools, their calls and results, and pictures", () => {
    const tools = [
      { type: "function", function: { name: "look", description: "Looks.", parameters: { type: "object" } } },
    ];
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,QUJD", detail: "low" } };
    const messages = [
      { role: "user", content: [{ type: "text", text: "What is there?" }, picture] },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "stars" },
      { role: "assistant", content: "Stars.", tool_calls: [call] },
    ];
    expect(JSON.parse(again(JSON.stringify({ messages, tools }), "finetuning"))).toEqual({ messages, tools });
  });

  test("hold free-form tools and the names of speakers", () => {
    const tools = [{ type: "custom", custom: { name: "patch", description: "Patches.", format: { type: "text" } } }];
    const patching = { id: "c1", type: "custom", custom: { name: "patch", input: "*** begin" } };
    const messages = [
      { role: "user", name: "ada", content: "Mend it." },
      { role: "assistant", content: null, tool_calls: [patching] },
      { role: "tool", tool_call_id: "c1", content: "done" },
      { role: "assistant", content: "Mended." },
    ];
    expect(JSON.parse(again(JSON.stringify({ messages, tools }), "finetuning"))).toEqual({ messages, tools });
  });

  test("hold no file of a vendor, and are left out where nothing of a message has a place", () => {
    const text = { type: "text" as const, text: "What is it?" };
    const file = { type: "image" as const, source: { kind: "file" as const, fileId: "file-of-a-vendor" } };
    expect(JSON.parse(exported([text, file]) ?? "")).toMatchObject({
      messages: [{ role: "user", content: "What is it?" }, { role: "assistant" }],
    });
    const sound = { type: "audio" as const, source: { kind: "base64" as const, mediaType: "audio/wav", data: "QUJD" } };
    for (const part of [file, sound])
      expect([exported([part]), exported([part], "evals")]).toEqual([undefined, undefined]);
  });

  test("without an answer are recordings whose answer was not kept", () => {
    for (const line of [{ messages: [{ role: "user", content: "2+2?" }] }, { item: { input: "2+2?" } }]) {
      const read = readLine(JSON.stringify(line));
      if (typeof read === "string") throw new Error(read);
      const { answer } = importedRecording("set", read, 0);
      expect(answer).toMatchObject({ incomplete: "not_recorded", bytes: 0 });
    }
  });

  test("may be evals of several forms", () => {
    const read = (value: object) => readLine(JSON.stringify(value));
    expect(read({ item: { input: "2+2?", ideal: "4" } })).toMatchObject({
      model: "imported",
      request: { messages: [{ role: "user", content: "2+2?" }] },
      answer: { choices: [{ message: { content: "4" } }] },
    });
    expect(
      read({ item: { messages: [{ role: "user", content: "Hi" }] }, sample: { model: "m", output_text: "Hello" } }),
    ).toMatchObject({
      model: "m",
      answer: { choices: [{ message: { content: "Hello" } }] },
    });
  });

  test("that say nothing are refused with a reason", () => {
    for (const line of ["", "[]", "{}", '{"messages": []}', '{"messages": [{"content": "x"}]}', '{"item": {}}']) {
      expect(readLine(line)).toBeString();
    }
    fc.assert(fc.property(fc.json(), (line) => expect(["string", "object"]).toContain(typeof readLine(line))));
  });
});
