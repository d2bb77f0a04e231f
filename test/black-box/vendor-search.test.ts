// A search that a client asks for and that only one of a vendor's endpoints can make: that one is asked.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { startStrictResponses } from "../support/strict/responses.ts";
import { answer, text } from "../support/strict/script.ts";
import type { StrictBackend } from "../support/strict/server.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const SEARCH = { type: "web_search_20250305", name: "web_search" };

let backend: StrictBackend;
let gateway: Gateway;

beforeAll(async () => {
  const found = [
    { type: "search" as const, query: "oslo", results: [{ url: "https://met.example/", title: "Met" }] },
    text("Dry.", [{ url: "https://met.example/", title: "Met", citedText: "Dry.", start: 0, end: 4 }]),
  ];
  backend = await startStrictResponses(() => answer(...found), { models: ["gpt-4.1"] });
  gateway = await bed.gateway({
    config: {
      health_checks: { enabled: false },
      backends: [{ name: "o", type: "openai", url: backend.url, models: ["gpt-4.1"], api_key: "sk-sekret" }],
    },
  });
});

afterAll(() => backend.stop());

const ask = (more: object) =>
  gateway.post("/v1/messages", {
    model: "gpt-4.1",
    max_tokens: 100,
    messages: [{ role: "user", content: "weather?" }],
    ...more,
  });

describe("a Messages client's search in front of type openai", () => {
  test("goes to the Responses endpoint, plain and streamed", async () => {
    const plain = (await (await ask({ tools: [SEARCH] })).json()) as { content: { type: string }[] };
    expect(plain.content.map(({ type }) => type)).toEqual(["server_tool_use", "web_search_tool_result", "text"]);
    const streamed = await ask({ tools: [SEARCH], stream: true });
    expect(streamed.status).toBe(200);
    const events = await streamed.text();
    expect(events).toContain('"type":"web_search_tool_result"');
    expect(events).toContain('"citations_delta"');
    expect(events).toContain("event: message_stop");
    expect(backend.requests.map(({ path }) => path)).toEqual(["/v1/responses", "/v1/responses"]);
    expect(backend.requests[0]?.body.tools).toEqual([{ type: "web_search" }]);
  });

  test("anything else goes to the chat endpoint as before", async () => {
    await ask({});
    expect(backend.requests.at(-1)?.path).toBe("/v1/chat/completions");
  });
});
