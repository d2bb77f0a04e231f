// Who searches itself, by type and format.

import { expect, test } from "bun:test";
import { PROTOCOL_PATHS } from "../backends/kind.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import type { Operation } from "../backends/operations.ts";
import { BACKEND_KIND_NAMES, type BackendKindName } from "../names.ts";
import { searchesItself } from "./native.ts";

/** Types that search for a client of the messages format, and of the chat format. */
const MESSAGES: readonly BackendKindName[] = ["anthropic", "gemini", "vertex", "federated"];
const CHAT: readonly BackendKindName[] = ["anthropic", "gemini", "vertex", "federated", "openai", "azure"];

test.each([...BACKEND_KIND_NAMES])("%s", (name) => {
  const kind = BACKEND_KINDS[name];
  const searches = (operation: Operation) => searchesItself({ kind, paths: kind.paths }, operation);
  expect(searches("messages")).toBe(MESSAGES.includes(name));
  expect(searches("chat")).toBe(CHAT.includes(name));
});

test("an engine that speaks a vendor's format has no search for it", () => {
  const kind = BACKEND_KINDS.vllm;
  expect(searchesItself({ kind, paths: PROTOCOL_PATHS.messages }, "messages")).toBe(false);
});
