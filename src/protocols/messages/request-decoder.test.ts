// Requests of Messages clients in the neutral model.

import { describe, expect, test } from "bun:test";
import type { ContentPart } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { wrapSeal, wrapSnippet } from "./foreign-seal.ts";
import { decodeRequest } from "./request-decoder.ts";

const base = { model: "m", max_tokens: 5 };
const decode = (more: JsonObject) => decodeRequest({ ...base, messages: [{ role: "user", content: "hi" }], ...more });
const partsOf = (role: string, ...content: JsonObject[]) =>
  decode({ messages: [{ role, content }] }).messages[0]?.parts;

test("a request with everything", () => {
  const body = {
    ...base,
    stream: true,
    system: [
      { type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } },
      { type: "text", text: "b" },
    ],
    messages: [
      { role: "user", content: "hi" },
      { role: "system", content: "later" },
      { role: "assistant", content: [] },
    ],
    temperature: 0.5,
    top_p: 0.9,
    top_k: 3,
    stop_sequences: ["X"],
    metadata: { user_id: "u", more: 1 },
    output_config: {
      effort: "high",
      format: { type: "json_schema", schema: { type: "object" } },
      task_budget: { total: 1 },
    },
    thinking: { type: "adaptive", display: "summarized" },
    context_management: { edits: [] },
    client_metadata: { a: 1 },
    container: null,
  };
  const { origin, ...request } = decodeRequest(body);
  expect(origin).toEqual({ protocol: "messages", body });
  expect(request).toEqual({
    model: "m",
    stream: true,
    system: [
      { type: "text", text: "a", cache: { ttl: "1h" } },
      { type: "text", text: "b" },
    ],
    messages: [
      { role: "user", parts: [{ type: "text", text: "hi" }] },
      { role: "system", parts: [{ type: "text", text: "later" }] },
      { role: "assistant", parts: [] },
    ],
    tools: [],
    sampling: { temperature: 0.5, topP: 0.9, topK: 3, stop: ["X"] },
    maxOutputTokens: 5,
    reasoning: { effort: "high", enabled: true, visible: true },
    responseFormat: { type: "json-schema", name: "output", schema: { type: "object" } },
    user: "u",
    metadata: { more: 1 },
    extensions: {
      context_management: { edits: [] },
      client_metadata: { a: 1 },
      output_config: { task_budget: { total: 1 } },
    },
  });
});

test("the instructions may be a string", () => {
  expect(decode({ system: "be brief" }).system).toEqual([{ type: "text", text: "be brief" }]);
  expect(decode({ system: "" }).system).toEqual([]);
});

describe("blocks", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const cases: [title: string, role: string, block: JsonObject, parts: ContentPart[]][] = [
    [
      "text with a hint",
      "user",
      { type: "text", text: "a", cache_control: { type: "ephemeral" } },
      [{ type: "text", text: "a", cache: {} }],
    ],
    [
      "an image",
      "user",
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } },
      [{ type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA" } }],
    ],
    [
      "an image elsewhere",
      "user",
      { type: "image", source: { type: "url", url: "https://x" }, cache_control: { type: "ephemeral", ttl: "5m" } },
      [{ type: "image", source: { kind: "url", url: "https://x" }, cache: { ttl: "5m" } }],
    ],
    [
      "a file",
      "user",
      { type: "document", source: { type: "file", file_id: "f" } },
      [{ type: "document", source: { kind: "file", fileId: "f" } }],
    ],
    [
      "a plain text document",
      "user",
      { type: "document", title: "t", context: "c", citations: { enabled: true }, source: { type: "text", data: "é" } },
      [
        {
          type: "document",
          title: "t",
          context: "c",
          citations: true,
          source: { kind: "base64", mediaType: "text/plain", data: base64("é") },
        },
      ],
    ],
    [
      "a document of blocks",
      "user",
      {
        type: "document",
        source: {
          type: "content",
          content: [
            { type: "text", text: "a" },
            { type: "image", source: { type: "url", url: "u" } },
          ],
        },
      },
      [
        { type: "document", source: { kind: "base64", mediaType: "text/plain", data: base64("a") } },
        { type: "image", source: { kind: "url", url: "u" } },
      ],
    ],
    [
      "a search result",
      "user",
      { type: "search_result", source: "https://x", title: "T", content: [{ type: "text", text: "body" }] },
      [{ type: "text", text: "T\nhttps://x\n\nbody" }],
    ],
    [
      "an image of an unknown source",
      "user",
      { type: "image", source: { type: "future" } },
      [{ type: "opaque", protocol: "messages", value: { type: "image", source: { type: "future" } } }],
    ],
    [
      "a result without content",
      "user",
      { type: "tool_result", tool_use_id: "a" },
      [{ type: "tool-result", callId: "a", parts: [] }],
    ],
    [
      "a result that failed",
      "user",
      { type: "tool_result", tool_use_id: "a", is_error: true, content: "bad", cache_control: { type: "ephemeral" } },
      [{ type: "tool-result", callId: "a", parts: [{ type: "text", text: "bad" }], isError: true, cache: {} }],
    ],
    [
      "a result of blocks",
      "user",
      {
        type: "tool_result",
        tool_use_id: "a",
        content: [
          { type: "text", text: "t" },
          { type: "image", source: { type: "url", url: "u" } },
          { type: "tool_reference", tool_name: "f" },
        ],
      },
      [
        {
          type: "tool-result",
          callId: "a",
          parts: [
            { type: "text", text: "t" },
            { type: "image", source: { kind: "url", url: "u" } },
            { type: "text", text: '{"type":"tool_reference","tool_name":"f"}' },
          ],
        },
      ],
    ],
    [
      "thinking",
      "assistant",
      { type: "thinking", thinking: "hm", signature: "s" },
      [{ type: "reasoning", text: "hm", signature: "s", origin: "messages" }],
    ],
    [
      "thinking without a signature",
      "assistant",
      { type: "thinking", thinking: "hm", signature: "" },
      [{ type: "reasoning", text: "hm" }],
    ],
    [
      "thinking of another backend",
      "assistant",
      { type: "thinking", thinking: "hm", signature: wrapSeal({ origin: "generate-content", signature: "g" }) },
      [{ type: "reasoning", text: "hm", signature: "g", origin: "generate-content" }],
    ],
    [
      "thinking with our mark alone",
      "assistant",
      { type: "thinking", thinking: "hm", signature: wrapSeal({}) },
      [{ type: "reasoning", text: "hm" }],
    ],
    [
      "redacted thinking",
      "assistant",
      { type: "redacted_thinking", data: "d" },
      [{ type: "reasoning", text: "", sealed: "d", origin: "messages" }],
    ],
    [
      "a call",
      "assistant",
      { type: "tool_use", id: "a", name: "f", input: { x: 1 }, cache_control: { type: "ephemeral" } },
      [{ type: "tool-call", id: "a", name: "f", arguments: '{"x":1}', cache: {} }],
    ],
    [
      "a search of the gateway",
      "assistant",
      {
        type: "web_search_tool_result",
        tool_use_id: "a",
        content: [{ type: "web_search_result", url: "u", title: "t", encrypted_content: wrapSnippet("text") }],
      },
      [{ type: "search-result", callId: "a", results: [{ url: "u", title: "t", snippet: "text" }] }],
    ],
    [
      "a block of the future",
      "assistant",
      { type: "future", a: 1 },
      [{ type: "opaque", protocol: "messages", value: { type: "future", a: 1 } }],
    ],
  ];
  test.each(cases)("%s", (_title, role, block, parts) => {
    expect(partsOf(role, block)).toEqual(parts);
  });

  test("a citation that the gateway wrote has no origin", () => {
    const citation = { type: "web_search_result_location", url: "u", title: null, cited_text: "c" };
    const texts = ["E", wrapSeal({})].map((encrypted_index) => ({
      type: "text",
      text: "a",
      citations: [{ ...citation, encrypted_index }],
    }));
    const [own, foreign] = partsOf("assistant", ...texts) as unknown as { citations: JsonObject[] }[];
    expect(own?.citations[0]?.origin).toBeDefined();
    expect(foreign?.citations).toEqual([{ url: "u", citedText: "c" }]);
  });
});

describe("tools", () => {
  test("custom ones, web search of any date, and the vendor's others", () => {
    const search = {
      type: "web_search_20260318",
      name: "web_search",
      max_uses: 2,
      allowed_domains: ["a"],
      user_location: { type: "approximate", city: "X" },
    };
    const bash = { type: "bash_20250124", name: "bash" };
    const schema = { type: "object", properties: {} };
    const tools = [
      { name: "f", description: "d", input_schema: schema, strict: true, cache_control: { type: "ephemeral" } },
      { type: "custom", name: "g", input_schema: schema },
      search,
      bash,
    ];
    expect(decode({ tools }).tools).toEqual([
      { kind: "function", name: "f", description: "d", parameters: schema, strict: true, cache: {} },
      { kind: "function", name: "g", parameters: schema },
      {
        kind: "web-search",
        name: "web_search",
        maxUses: 2,
        allowedDomains: ["a"],
        userLocation: { city: "X" },
        origin: { protocol: "messages", value: search },
      },
      { kind: "hosted", name: "bash_20250124", origin: { protocol: "messages", value: bash } },
    ]);
  });

  test("what only the vendor has is a tool that others refuse", () => {
    const servers = [{ type: "url", url: "https://x", name: "s" }];
    const request = decode({ mcp_servers: servers });
    expect(request.tools.map((tool) => [tool.kind, tool.name])).toEqual([["hosted", "mcp_servers"]]);
    expect(request.extensions).toEqual({});
    const harmless = decode({ mcp_servers: [], thread: { type: "create" } });
    expect(harmless.tools).toEqual([]);
    expect(harmless.extensions).toEqual({ thread: { type: "create" } });
  });

  test("a thread that is continued is refused by the code that makes clients send all of it", () => {
    const refused = () => decode({ thread: { type: "continue", previous_message_id: "m" } });
    expect(refused).toThrow(
      expect.objectContaining({ status: 400, details: { error_code: "thread_not_found" } }) as unknown as Error,
    );
  });

  const choices: [choice: JsonObject, expected: JsonObject][] = [
    [{ type: "auto" }, { toolChoice: { type: "auto" } }],
    [
      { type: "any", disable_parallel_tool_use: true },
      { toolChoice: { type: "required" }, parallelToolCalls: false },
    ],
    [{ type: "tool", name: "f" }, { toolChoice: { type: "tool", name: "f" } }],
    [{ type: "none" }, { toolChoice: { type: "none" } }],
    [{ type: "auto", disable_parallel_tool_use: false }, { parallelToolCalls: true }],
  ];
  test.each(choices)("the choice %j", (tool_choice, expected) => {
    expect(decode({ tool_choice })).toMatchObject(expected);
  });
});

describe("the wish to think", () => {
  const cases: [more: JsonObject, expected: JsonObject][] = [
    [{}, {}],
    [{ thinking: { type: "enabled", budget_tokens: 2048 } }, { enabled: true, budgetTokens: 2048 }],
    [{ thinking: { type: "adaptive" } }, { enabled: true, effort: "auto" }],
    [
      { thinking: { type: "adaptive", display: "omitted" }, output_config: { effort: "max" } },
      { enabled: true, effort: "max", visible: false },
    ],
    [{ thinking: { type: "disabled" } }, { enabled: false }],
    [{ thinking: { type: "between_tools" } }, { enabled: false }],
    [{ output_config: { effort: "xhigh" } }, { effort: "xhigh" }],
    [{ output_config: { effort: "unheard-of" } }, {}],
  ];
  test.each(cases)("%j", (more, expected) => {
    expect(decode(more).reasoning).toEqual(expected);
  });
});
