// Content blocks in both protocols' forms, and what is said of those that are none.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { RpcError } from "../rpc-error.ts";
import { decodePrompt } from "./blocks.ts";

const decode = (block: unknown) => decodePrompt([block], "prompt")[0];

function refusal(blocks: unknown): string {
  try {
    decodePrompt(blocks, "prompt");
  } catch (error) {
    expect(error).toBeInstanceOf(RpcError);
    expect((error as RpcError).code).toBe(-32602);
    return (error as RpcError).message;
  }
  throw new Error("it was taken");
}

test("text, with its type and without", () => {
  for (const block of [{ type: "text", text: "a" }, { text: "a" }, { text: "a", _meta: {}, annotations: null }]) {
    expect(decode(block)).toEqual({ type: "text", text: "a" });
  }
});

test("images and audio, with either name of their type", () => {
  const image = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AAAA" } };
  expect(decode({ type: "image", data: "AAAA", mimeType: "image/png" })).toEqual(image as never);
  expect(decode({ data: "AAAA", mediaType: "image/png" })).toEqual(image as never);
  expect(decode({ type: "image", data: "data:image/png;base64,AAAA" })).toEqual(image as never);
  const audio = { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "AAAA" } };
  expect(decode({ type: "audio", data: "AAAA", mimeType: "audio/wav" })).toEqual(audio as never);
  expect(decode({ data: "AAAA", mimeType: "audio/wav" })).toEqual(audio as never);
});

test("links become text that names the file", () => {
  const text = "[@main.ts](/project/src/my main.ts)";
  const uri = "file:///project/src/my%20main.ts";
  expect(decode({ type: "resource_link", uri, name: "main.ts" })).toEqual({ type: "text", text });
  expect(decode({ type: "resource", uri, name: "main.ts", mediaType: "text/plain" })).toEqual({ type: "text", text });
  expect(decode({ uri })).toEqual({ type: "text", text: "[@my main.ts](/project/src/my main.ts)" });
  expect(decode({ uri: "https://host/a/b?c" })).toEqual({ type: "text", text: "[@b](https://host/a/b?c)" });
});

test("embedded resources: text, pictures, and other bytes", () => {
  expect(decode({ type: "resource", resource: { uri: "file:///a.ts", text: "let a;" } })).toEqual({
    type: "text",
    text: '<context ref="/a.ts">\nlet a;\n</context>',
  });
  expect(decode({ resource: { uri: "file:///a.png", blob: "AAAA", mimeType: "image/png" } })).toMatchObject({
    type: "image",
  });
  expect(decode({ resource: { uri: "file:///a.pdf", blob: "AAAA", mimeType: "application/pdf" } })).toEqual({
    type: "document",
    source: { kind: "base64", mediaType: "application/pdf", data: "AAAA" },
    title: "a.pdf",
  });
});

test("what is no block is refused with its place and the fix", () => {
  expect(refusal("text")).toBe("prompt must be a list of content blocks.");
  expect(refusal([])).toBe("prompt is empty: give at least one content block.");
  expect(refusal(["text"])).toStartWith("prompt[0] must be a content block");
  expect(refusal([{ text: "a" }, { type: "video", data: "" }])).toStartWith('prompt[1].type is not known ("video")');
  expect(refusal([{}])).toStartWith("prompt[0].type is missing");
  expect(refusal([{ type: "text", text: 1 }])).toBe("prompt[0].text must be a string.");
  expect(refusal([{ type: "image", mimeType: "image/png" }])).toBe(
    "prompt[0].data is missing: give the bytes as base64.",
  );
  expect(refusal([{ type: "image", data: "AAAA" }])).toStartWith("prompt[0].mimeType is missing");
  expect(refusal([{ type: "image", data: "not base64!", mimeType: "image/png" }])).toBe(
    "prompt[0].data must be base64, without spaces.",
  );
  expect(refusal([{ resource: { uri: "a" } }])).toBe("prompt[0].resource must have text or blob.");
  expect(refusal([{ type: "constructor" }])).toStartWith("prompt[0].type is not known");
});

test("property: any JSON is either read or refused in words", () => {
  const key = fc.constantFrom("type", "text", "data", "mimeType", "mediaType", "uri", "name", "resource", "blob");
  const leaf = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom("text", "image", "audio", "resource", "resource_link", "AAAA", "file:///%ff"),
  );
  const block = fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf)));
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.array(fc.oneof(block, fc.jsonValue()))), (blocks) => {
      try {
        const parts = decodePrompt(blocks, "prompt");
        expect(parts).toHaveLength((blocks as unknown[]).length);
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        expect(error.message).toMatch(/^prompt/);
      }
    }),
    { numRuns: 500 },
  );
});
