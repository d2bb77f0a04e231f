// Whatever a translation refuses: the field that is named stands in the client's own request.

import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { customToolsAsFunctions } from "../generation/custom-tools.ts";
import type { JsonObject } from "../lib/json.ts";
import { inClientsWords } from "./client-field.ts";
import { backendProtocol, clientProtocol } from "./registry.ts";

type Client = "chat" | "responses" | "messages" | "completions";

const BACKENDS = [
  ["chat", "openai", "gpt-4o"],
  ["chat", "ollama", "qwen3"],
  ["chat", "generic", "m"],
  ["responses", "openai", "gpt-5"],
  ["messages", "anthropic", "claude-sonnet-4-5"],
  ["generate-content", "gemini", "gemini-2.5-flash"],
] as const;

const chat = (content: unknown, more: JsonObject = {}): JsonObject => ({
  model: "m",
  messages: [{ role: "user", content }],
  ...more,
});
const responses = (content: unknown, more: JsonObject = {}): JsonObject => ({
  model: "m",
  input: [{ role: "user", content }],
  ...more,
});
const messages = (content: unknown, more: JsonObject = {}): JsonObject => ({ max_tokens: 9, ...chat(content, more) });

const BMP = "data:image/bmp;base64,AAAA";
const DOCX = "data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,AAAA";
const CITIES = Array.from({ length: 9 }, (_, index) => `STOP${index}`);
const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
const flat = (name: string) => ({ type: "function", name, parameters: { type: "object" } });
const own = (name: string) => ({ name, input_schema: { type: "object" } });

/** Request by request, with the field that is at fault. */
const CASES: readonly [title: string, client: Client, body: JsonObject, field: RegExp][] = [
  ["choices", "chat", chat("x", { n: 3 }), /^n$/],
  ["choices", "completions", { model: "m", prompt: "x", n: 3 }, /^n$/],
  ["stop sequences", "chat", chat("x", { stop: CITIES }), /^stop$/],
  ["stop sequences", "completions", { model: "m", prompt: "x", stop: CITIES }, /^stop$/],
  ["stop sequences", "messages", messages("x", { stop_sequences: CITIES }), /^stop_sequences$/],
  ["audio", "chat", chat([{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }]), /^messages/],
  ["audio", "responses", responses([{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }]), /^input/],
  ["a picture's type", "chat", chat([{ type: "image_url", image_url: { url: BMP } }]), /^messages/],
  ["a file's type", "chat", chat([{ type: "file", file: { filename: "a.docx", file_data: DOCX } }]), /^messages/],
  ["a file's id", "chat", chat([{ type: "file", file: { file_id: "file-1" } }]), /^messages/],
  ["a file's id", "responses", responses([{ type: "input_file", file_id: "file-1" }]), /^input/],
  ["a file's id", "messages", messages([{ type: "document", source: { type: "file", file_id: "f" } }]), /^messages/],
  ["a picture's id", "messages", messages([{ type: "image", source: { type: "file", file_id: "f" } }]), /^messages/],
  ["an unknown part", "responses", responses([{ type: "hologram" }]), /^input/],
  ["a name of a tool", "chat", chat("x", { tools: [tool("ok"), tool("no good!")] }), /^tools\[1\]\.function\.name$/],
  ["a name of a function", "chat", chat("x", { functions: [{ name: "no good!" }] }), /^functions\[0\]\.name$/],
  ["a name of a tool", "responses", responses("x", { tools: [flat("ok"), flat("no good!")] }), /^tools\[1\]\.name$/],
  ["a name of a tool", "messages", messages("x", { tools: [own("ok"), own("no good!")] }), /^tools\[1\]\.name$/],
  [
    "a name of a tool that an item brings",
    "responses",
    {
      model: "m",
      input: [
        { type: "additional_tools", tools: [flat("no good!")] },
        { role: "user", content: "x" },
      ],
      tools: [flat("ok")],
    },
    /^input\[0\]\.tools\[0\]\.name$/,
  ],
  ["a hosted tool", "responses", responses("x", { tools: [{ type: "code_interpreter", container: {} }] }), /^tools/],
  ["a hosted tool", "messages", messages("x", { tools: [{ type: "bash_20250124", name: "bash" }] }), /^tools\[0\]$/],
  [
    "servers of tools",
    "messages",
    messages("x", { mcp_servers: [{ type: "url", url: "https://e.org", name: "e" }], tools: [own("ok")] }),
    /^mcp_servers$/,
  ],
  ["a search by options", "chat", chat("x", { web_search_options: {}, functions: [{ name: "f" }] }), /^functions$/],
  [
    "a search beside functions",
    "messages",
    messages("x", { tools: [own("ok"), { type: "web_search_20250305", name: "web_search" }] }),
    /^tools/,
  ],
  [
    "blocked domains",
    "messages",
    messages("x", { tools: [{ type: "web_search_20250305", name: "web_search", blocked_domains: ["e.org"] }] }),
    /^tools/,
  ],
  [
    "an unknown tool as the choice",
    "chat",
    chat("x", { tools: [tool("f")], tool_choice: { type: "function", function: { name: "g" } } }),
    /^tool_choice/,
  ],
  [
    "an unknown function as the choice",
    "chat",
    chat("x", { functions: [{ name: "f" }], function_call: { name: "g" } }),
    /^function_call/,
  ],
  [
    "an unknown tool as the choice",
    "messages",
    messages("x", { tools: [own("f")], tool_choice: { type: "tool", name: "g" } }),
    /^tool_choice/,
  ],
  ["the prompt", "completions", { model: "m", prompt: [1, 2, 3] }, /^prompt$/],
  ["a suffix", "completions", { model: "m", prompt: "x", suffix: "y" }, /^suffix$/],
  ["a conversation", "responses", responses("x", { conversation: "conv_1" }), /^conversation$/],
  ["a stored prompt", "responses", responses("x", { prompt: { id: "p" } }), /^prompt$/],
];

/** What the translation to each of the backends refuses, in the client's words. */
function refusals(client: Client, body: JsonObject): GatewayError[] {
  const found: GatewayError[] = [];
  for (const [format, kind, model] of BACKENDS) {
    if (format === client) continue;
    try {
      const decoded = clientProtocol(client).decodeRequest(body);
      const request = format === "responses" ? decoded : customToolsAsFunctions(decoded);
      try {
        backendProtocol(format).encodeRequest(request, { kind: BACKEND_KINDS[kind], model });
      } catch (error) {
        throw error instanceof GatewayError ? inClientsWords(error, request) : error;
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      found.push(error);
    }
  }
  return found;
}

/** Whether a path such as input[0].tools[1].name leads to something. */
function exists(body: unknown, path: string): boolean {
  let value = body;
  for (const [, name, index] of path.matchAll(/([A-Za-z_]\w*)|\[(\d+)\]/g)) {
    value = (value as Record<string, unknown> | undefined)?.[name ?? (index as string)];
    if (value === undefined) return false;
  }
  return true;
}

describe.each(["chat", "responses", "messages", "completions"] as const)("a %s client's own field", (client) => {
  test.each(CASES.filter((entry) => entry[1] === client))("%s", (_title, _client, body, field) => {
    const found = refusals(client, body);
    expect(found).not.toBeEmpty();
    for (const { status, param = "", message } of found) {
      expect(status).toBe(400);
      expect({ param, exists: exists(body, param) }).toEqual({ param, exists: true });
      expect(param).toMatch(field);
      expect(message).toStartWith(param);
    }
  });
});
