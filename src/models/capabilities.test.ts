// The capability table against the specification's supported_methods mapping.

import { expect, test } from "bun:test";
import { features, supportedMethods } from "./capabilities.ts";

test.each([
  ["chat", "chat.completions"],
  ["vision", "chat.completions"],
  ["code", "chat.completions"],
  ["reasoning", "chat.completions"],
  ["audio", "chat.completions"],
  ["video", "chat.completions"],
  ["function_calling", "chat.completions"],
  ["tool", "chat.completions"],
  ["embedding", "embeddings"],
  ["image_generation", "images.generations"],
  ["image_edit", "images.edits"],
  ["image_variation", "images.variations"],
  ["moderation", "moderations"],
  ["rerank", "rerank"],
  ["sparse_embedding", "embed_sparse"],
])("the capability %s means the method %s", (capability, method) => {
  expect(supportedMethods([capability])).toEqual([method]);
});

test("methods and features come once each, in order", () => {
  const capabilities = ["vision", "embedding", "chat", "tool", "function_calling", "telepathy", "constructor"];
  expect(supportedMethods(capabilities)).toEqual(["chat.completions", "embeddings"]);
  expect(features(capabilities)).toEqual([
    "vision",
    "embedding",
    "chat",
    "function_calling",
    "telepathy",
    "constructor",
  ]);
});
