// Results of MCP tools as parts for a model.

import { expect, test } from "bun:test";
import type { JsonObject } from "../lib/json.ts";
import { readToolResult } from "./tool-result.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const text = (words: string) => ({ type: "text", text: words });
const base64 = (words: string) => Buffer.from(words).toString("base64");

const BLOCKS: [string, JsonObject, object][] = [
  ["text", { type: "text", text: "hello" }, text("hello")],
  [
    "an image",
    { type: "image", data: PIXEL, mimeType: "image/PNG" },
    { type: "image", source: { kind: "base64", mediaType: "image/png", data: PIXEL } },
  ],
  [
    "an image of a strange type",
    { type: "image", data: "AAAA", mimeType: "image/x-icon" },
    text("[image, image/x-icon, about 3 bytes: cannot be shown to a model]"),
  ],
  [
    "an image that is none",
    { type: "image", data: "<html>", mimeType: "image/png" },
    text("[image, image/png, about 4 bytes: cannot be shown to a model]"),
  ],
  [
    "audio",
    { type: "audio", data: "AAAAAAAA", mimeType: "audio/wav" },
    text("[audio, audio/wav, about 6 bytes: cannot be shown to a model]"),
  ],
  [
    "a text resource",
    { type: "resource", resource: { uri: "file:///a", text: "inside" } },
    text("[resource file:///a]\ninside"),
  ],
  [
    "a text resource as bytes",
    { type: "resource", resource: { uri: "file:///a", blob: base64("grün"), mimeType: "text/plain" } },
    text("[resource file:///a]\ngrün"),
  ],
  [
    "a picture as a resource",
    { type: "resource", resource: { uri: "file:///a", blob: PIXEL, mimeType: "image/png" } },
    { type: "image", source: { kind: "base64", mediaType: "image/png", data: PIXEL } },
  ],
  [
    "a document as a resource",
    { type: "resource", resource: { uri: "file:///a.pdf", blob: "JVBERi0=", mimeType: "application/pdf" } },
    {
      type: "document",
      source: { kind: "base64", mediaType: "application/pdf", data: "JVBERi0=" },
      title: "file:///a.pdf",
    },
  ],
  [
    "bytes as a resource",
    { type: "resource", resource: { uri: "x:1", blob: "AAAA", mimeType: "application/zip" } },
    text("[resource x:1, application/zip, about 3 bytes: cannot be shown to a model]"),
  ],
  [
    "a link",
    { type: "resource_link", uri: "file:///b", name: "b", mimeType: "text/plain", description: "The b." },
    text("[link to the resource file:///b: b, text/plain, The b.]"),
  ],
  ["something new", { type: "hologram", data: 1 }, text("[content of the type hologram, which cannot be shown]")],
];

test.each(BLOCKS)("%s", (_title, block, part) => {
  expect(readToolResult({ content: [block] })).toEqual({ parts: [part] } as ReturnType<typeof readToolResult>);
});

test("an error", () => {
  expect(readToolResult({ content: [{ type: "text", text: "no" }], isError: true })).toEqual({
    parts: [{ type: "text", text: "no" }],
    isError: true,
  });
});

test("structured content counts where no text says it, and is kept for programs", () => {
  const structuredContent = { degrees: 7 };
  expect(readToolResult({ content: [], structuredContent })).toEqual({
    parts: [{ type: "text", text: '{"degrees":7}' }],
    rawOutput: structuredContent,
  });
  expect(readToolResult({ content: [{ type: "text", text: "7 degrees" }], structuredContent })).toEqual({
    parts: [{ type: "text", text: "7 degrees" }],
    rawOutput: structuredContent,
  });
});

test.each([[{ content: [] }], [{}], [{ content: [{ type: "text", text: "" }, null, 7] }]])("nothing: %p", (result) => {
  expect(readToolResult(result)).toEqual({
    parts: [{ type: "text", text: "[The tool has answered without content.]" }],
  });
});

test("what is no result is an error", () => {
  for (const result of [undefined, null, 7, "x", []]) expect(readToolResult(result)).toMatchObject({ isError: true });
});

test("sizes are bounded", () => {
  const long = readToolResult({
    content: [
      { type: "text", text: "x".repeat(500_000) },
      { type: "text", text: "y" },
    ],
  });
  expect(long.parts[0]).toMatchObject({ text: expect.stringMatching(/x\n\[100000 more characters were left out\]$/) });
  expect(long.parts[1]).toEqual({ type: "text", text: "[1 more pieces of content were left out.]" });
  const many = readToolResult({ content: Array.from({ length: 500 }, () => ({ type: "text", text: "x" })) });
  expect(many.parts.length).toBe(101);
  const image = { type: "image", data: "A".repeat(8 * 1024 * 1024), mimeType: "image/png" };
  expect(readToolResult({ content: [image, image, image] }).parts.map(({ type }) => type)).toEqual([
    "image",
    "image",
    "text",
  ]);
});
