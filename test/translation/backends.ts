// The strict backends of the matrix and the gateway in front of them.

import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { BEDROCK_KEY, startStrictBedrock } from "../support/strict/bedrock.ts";
import { startStrictChat } from "../support/strict/chat.ts";
import { startStrictGenerateContent } from "../support/strict/generate-content.ts";
import { Ledger } from "../support/strict/ledger.ts";
import { startStrictMessages } from "../support/strict/messages.ts";
import { startStrictResponses } from "../support/strict/responses.ts";
import type { ScriptEntry } from "../support/strict/script.ts";
import type { StrictBackend } from "../support/strict/server.ts";
import { startStrictVertex } from "../support/strict/vertex.ts";
import { startGoogleIssuer } from "../support/token-issuers.ts";
import type { JsonObject } from "./ask.ts";
import { readChat } from "./received/chat.ts";
import { readConverse } from "./received/converse.ts";
import { readGenerateContent } from "./received/generate-content.ts";
import { readMessages } from "./received/messages.ts";
import type { Received } from "./received/received.ts";
import { readResponses } from "./received/responses.ts";

export const BACKEND_NAMES = [
  "chat",
  "local",
  "responses",
  "messages",
  "generate-content",
  "vertex-claude",
  "vertex-gemini",
  "converse",
  "bedrock-claude",
] as const;

export type BackendName = (typeof BACKEND_NAMES)[number];

export interface MatrixBackend {
  id: BackendName;
  /** Its format, and how strictly it is read. */
  name: "chat" | "local" | "responses" | "messages" | "generate-content" | "converse";
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
  // What a vendor has signed is accepted wherever its models are served.
  const ledgers = { claude: new Ledger(), gemini: new Ledger() };
  const issuer = startGoogleIssuer();
  const vertex = {
    type: "vertex",
    project: "p-1",
    location: "europe-west1",
    credentials: JSON.stringify(issuer.serviceAccount),
  } as const;
  const startVertex = (ledger: Ledger, bare: (model: string) => string): Start => {
    const options = { ledger, location: vertex.location, accepts: issuer.hasIssued };
    return (script, { models }) => startStrictVertex(script, { ...options, models: models.map(bare) });
  };
  const bedrock = {
    type: "bedrock",
    region: "us-east-1",
    access_key_id: BEDROCK_KEY.accessKeyId,
    secret_access_key: BEDROCK_KEY.secretAccessKey,
  } as const;
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
      (script, options) => startStrictMessages(script, { ...options, ledger: ledgers.claude }),
    ),
    start(
      "generate-content",
      "generateContent",
      ["gemini-2.5-flash", "gemini-3-pro"],
      "gemini",
      readGenerateContent,
      undefined,
      (script, options) => startStrictGenerateContent(script, { ...options, ledger: ledgers.gemini }),
    ),
    start(
      "messages",
      "Vertex AI (Claude)",
      ["claude-sonnet-4-5@20250929", "claude-sonnet-4-5@20250929", "claude-opus-4-6@default"],
      vertex,
      readMessages,
      undefined,
      startVertex(ledgers.claude, (model) => model),
      "vertex-claude",
    ),
    start(
      "generate-content",
      "Vertex AI (Gemini)",
      ["google/gemini-2.5-flash", "publishers/google/models/gemini-3-pro"],
      vertex,
      readGenerateContent,
      undefined,
      startVertex(ledgers.gemini, (model) => model.slice(model.lastIndexOf("/") + 1)),
      "vertex-gemini",
    ),
    start(
      "converse",
      "Bedrock (Converse)",
      ["us.amazon.nova-2-lite-v1:0", "us.amazon.nova-2-lite-v1:0"],
      bedrock,
      readConverse,
      undefined,
      (script, options) => startStrictBedrock(script, { ...options, key: BEDROCK_KEY }),
    ),
    start(
      "messages",
      "Bedrock (Claude)",
      ["us.anthropic.claude-sonnet-4-5-v1:0", "us.anthropic.claude-sonnet-4-5-v1:0", "anthropic.claude-opus-4-6-v1"],
      bedrock,
      readMessages,
      undefined,
      (script, options) => startStrictBedrock(script, { ...options, key: BEDROCK_KEY, ledger: ledgers.claude }),
      "bedrock-claude",
    ),
  ]);
}

type Start = (script: (body: JsonObject) => ScriptEntry, options: { models: string[] }) => Promise<StrictBackend>;

async function start(
  name: MatrixBackend["name"],
  title: string,
  [plainModel, thinkingModel, effortModel = thinkingModel]: [string, string, string?],
  place: "openai" | "llamacpp" | "anthropic" | "gemini" | Partial<MatrixBackend["config"]>,
  read: MatrixBackend["read"],
  protocols: ("chat" | "responses")[] | undefined,
  startServer: Start,
  id: BackendName = name,
): Promise<MatrixBackend> {
  const models = [...new Set([plainModel, thinkingModel, effortModel])];
  const script: ScriptEntry[] = [];
  const nothingLeft: ScriptEntry = { error: { status: 500, message: "the script has no answer left" } };
  const server = await startServer(() => script.shift() ?? nothingLeft, { models });
  const config = {
    name: id,
    url: server.url,
    models,
    ...(typeof place === "string" ? { type: place, api_key: "sk-sekret-backend" } : place),
    ...(protocols && { protocols }),
  };
  return { id, name, title, server, script, read, plainModel, thinkingModel, effortModel, config };
}
