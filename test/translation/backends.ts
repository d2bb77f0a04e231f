// The strict backends of the matrix and the gateway in front of them.

import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { startStrictChat } from "../support/strict/chat.ts";
import { startStrictGenerateContent } from "../support/strict/generate-content.ts";
import { startStrictMessages } from "../support/strict/messages.ts";
import { startStrictResponses } from "../support/strict/responses.ts";
import type { ScriptEntry } from "../support/strict/script.ts";
import type { StrictBackend } from "../support/strict/server.ts";
import type { JsonObject } from "./ask.ts";
import { readChat } from "./received/chat.ts";
import { readGenerateContent } from "./received/generate-content.ts";
import { readMessages } from "./received/messages.ts";
import type { Received } from "./received/received.ts";
import { readResponses } from "./received/responses.ts";

export const BACKEND_NAMES = ["chat", "local", "responses", "messages", "generate-content"] as const;

export type BackendName = (typeof BACKEND_NAMES)[number];

export interface MatrixBackend {
  name: BackendName;
  /** Column of the page. */
  title: string;
  server: StrictBackend;
  /** Answers for the next requests that are accepted. */
  script: ScriptEntry[];
  read(body: JsonObject): Received;
  /** Answers at once. */
  plainModel: string;
  /** Thinks before it answers. */
  thinkingModel: string;
  /** Is told how hard to think by a word. */
  effortModel: string;
  config: NonNullable<ConfigDocument["backends"]>[number];
}

export async function startBackends(): Promise<MatrixBackend[]> {
  return await Promise.all([
    start("chat", "chat (hosted)", ["gpt-4o", "gpt-5"], "openai", readChat, ["chat"], startStrictChat),
    start("local", "chat (local engine)", ["qwen3-8b", "qwen3-8b"], "llamacpp", readChat, ["chat"], (script, options) =>
      startStrictChat(script, { ...options, dialect: "local" }),
    ),
    start(
      "responses",
      "Responses",
      ["gpt-4.1", "gpt-5.1"],
      "openai",
      readResponses,
      ["responses"],
      startStrictResponses,
    ),
    start(
      "messages",
      "Messages",
      ["claude-sonnet-4-5", "claude-sonnet-4-5", "claude-opus-4-6"],
      "anthropic",
      readMessages,
      undefined,
      startStrictMessages,
    ),
    start(
      "generate-content",
      "generateContent",
      ["gemini-2.5-flash", "gemini-3-pro"],
      "gemini",
      readGenerateContent,
      undefined,
      startStrictGenerateContent,
    ),
  ]);
}

type Start = (script: (body: JsonObject) => ScriptEntry, options: { models: string[] }) => Promise<StrictBackend>;

async function start(
  name: BackendName,
  title: string,
  [plainModel, thinkingModel, effortModel = thinkingModel]: [string, string, string?],
  type: "openai" | "llamacpp" | "anthropic" | "gemini",
  read: MatrixBackend["read"],
  protocols: ("chat" | "responses")[] | undefined,
  startServer: Start,
): Promise<MatrixBackend> {
  const models = [...new Set([plainModel, thinkingModel, effortModel])];
  const script: ScriptEntry[] = [];
  const nothingLeft: ScriptEntry = { error: { status: 500, message: "the script has no answer left" } };
  const server = await startServer(() => script.shift() ?? nothingLeft, { models });
  const config = {
    name,
    type,
    url: server.url,
    models,
    api_key: "sk-sekret-backend",
    ...(protocols && { protocols }),
  };
  return { name, title, server, script, read, plainModel, thinkingModel, effortModel, config };
}
