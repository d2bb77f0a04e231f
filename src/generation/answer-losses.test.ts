// The table of what answers lose, held against what the codecs write.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../lib/json.ts";
import type { AnswerContext } from "../protocols/protocol.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { LossWatch } from "./answer-losses.ts";
import { asEvents } from "./as-events.ts";
import type { Citation, ContentPart, ProtocolName } from "./content.ts";

const REQUESTS = {
  chat: { model: "m", messages: [{ role: "user", content: "x" }] },
  responses: { model: "m", input: "x" },
  messages: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] },
  completions: { model: "m", prompt: "x" },
} as const satisfies Partial<Record<ProtocolName, JsonObject>>;

const CLIENTS = Object.keys(REQUESTS) as (keyof typeof REQUESTS)[];

const SEARCH: ContentPart = {
  type: "tool-call",
  id: "s",
  name: "web_search",
  serverSide: true,
  arguments: '{"query":"q"}',
};

const PARTS: readonly ContentPart[] = [
  { type: "text", text: "x" },
  { type: "refusal", text: "x" },
  { type: "reasoning", text: "x" },
  { type: "tool-call", id: "call_1", name: "f", arguments: "{}" },
  SEARCH,
  { type: "tool-call", id: "s", name: "code_execution", serverSide: true, arguments: '{"code":"1"}' },
  { type: "search-result", callId: "s", results: [{ url: "https://e.org/", title: "E" }] },
  { type: "opaque", protocol: "responses", value: { type: "mcp_call", id: "mcp_1" } },
  { type: "opaque", protocol: "messages", value: { type: "container_upload" } },
  { type: "opaque", protocol: "chat", value: { executed_tools: [{ index: 0, type: "search" }] } },
  { type: "opaque", protocol: "chat", value: { annotations: [{ type: "file", file: { hash: "h" } }] } },
  { type: "opaque", protocol: "generate-content", value: { executableCode: {} } },
  { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "AA==" } },
  { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } },
  { type: "image", source: { kind: "url", url: "https://e.org/a.png" } },
];

function written(client: keyof typeof REQUESTS, parts: ContentPart[], isStream: boolean): string {
  const codec = clientProtocol(client);
  const request = codec.decodeRequest(REQUESTS[client]);
  const context: AnswerContext = { model: "m", createdAt: 1, nonce: "0".repeat(32), request };
  const result = { id: "", model: "m", createdAt: 1, parts, finish: { reason: "stop" } as const };
  if (!isStream) return JSON.stringify(codec.encodeResponse(result, context));
  const encoder = codec.streamEncoder(context);
  return (
    asEvents(result)
      .map((event) => encoder.push(event))
      .join("") + encoder.end()
  );
}

function lossesOf(client: keyof typeof REQUESTS, parts: readonly ContentPart[]): string[] {
  const watch = new LossWatch(clientProtocol(client).losses);
  for (const part of parts) {
    watch.part(part);
    if (part.type === "text") for (const citation of part.citations ?? []) watch.citation(citation);
  }
  return watch.entries.map(({ feature }) => feature);
}

describe.each(CLIENTS)("for a %s client", (client) => {
  test.each(PARTS.map((part) => [JSON.stringify(part), part] as const))("%s", (_, part) => {
    for (const isStream of [false, true]) {
      const isLost = written(client, [part], isStream) === written(client, [], isStream);
      expect(lossesOf(client, [part])).toHaveLength(isLost ? 1 : 0);
    }
  });

  test("what a search found is shown wherever its call is", () => {
    const found: ContentPart = { type: "search-result", callId: "s", results: [], errorCode: "unavailable" };
    const losses = lossesOf(client, [SEARCH, found]);
    expect(losses).toEqual(lossesOf(client, [SEARCH]));
    for (const isStream of [false, true]) {
      const isLost = written(client, [SEARCH, found], isStream) === written(client, [SEARCH], isStream);
      expect(isLost).toBe(losses.length > 0);
    }
  });

  test("citations", () => {
    const citations: Citation[] = [
      { url: "https://e.org/" },
      { origin: { protocol: "messages", value: { type: "char_location", cited_text: "x" } } },
      { origin: { protocol: "responses", value: { type: "file_citation", file_id: "f" } } },
    ];
    for (const citation of citations) {
      const text: ContentPart = { type: "text", text: "x", citations: [citation] };
      for (const isStream of [false, true]) {
        const isLost = written(client, [text], isStream) === written(client, [{ type: "text", text: "x" }], isStream);
        expect(isLost).toBe(lossesOf(client, [text]).length > 0);
      }
    }
  });
});
