// Body of a Messages request -> neutral request.

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { Message } from "../../generation/content.ts";
import type { GenerationRequest, ResponseFormat, Sampling } from "../../generation/request.ts";
import type { HostedTool } from "../../generation/tools.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { extensionsOf } from "../decode-request.ts";
import { decodeContent } from "./content-decoder.ts";
import { readMessagesRequest } from "./read-request.ts";
import { decodeReasoning } from "./thinking-config.ts";
import { decodeToolChoice, decodeTools } from "./tools.ts";
import { arrayOf } from "./wire.ts";

/** Members with a place in the neutral request; all others are extensions. */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "stream",
  "temperature",
  "top_p",
  "top_k",
  "stop_sequences",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
  "metadata",
  "mcp_servers",
]);

/** This format gives its schemas no name. */
const SCHEMA_NAME = "output";

export function decodeRequest(body: JsonObject): GenerationRequest {
  const { model, stream } = readMessagesRequest(body);
  if (isContinued(body.thread)) throw threadNotFound();
  const request: GenerationRequest = {
    model,
    system: decodeContent(body.system).filter((part) => part.type === "text"),
    messages: arrayOf(body.messages).filter(isObject).map(decodeMessage),
    tools: [...decodeTools(body.tools), ...toolsBeside(body)],
    ...decodeToolChoice(body.tool_choice),
    sampling: decodeSampling(body),
    maxOutputTokens: body.max_tokens as number,
    reasoning: decodeReasoning(body.thinking, body.output_config),
    stream,
    origin: { protocol: "messages", body },
    extensions: decodeExtensions(body),
  };
  const responseFormat = decodeFormat(body);
  if (responseFormat !== undefined) request.responseFormat = responseFormat;
  decodeMetadata(body.metadata, request);
  return request;
}

function decodeMessage({ role, content }: JsonObject): Message {
  return { role: role === "assistant" || role === "system" ? role : "user", parts: decodeContent(content) };
}

/**
 * Tools that the vendor fetches from MCP servers: without them the answer would mean something else. As a tool of the
 * vendor they are refused by other protocols.
 */
function toolsBeside({ mcp_servers: servers }: JsonObject): HostedTool[] {
  if (arrayOf(servers).length === 0) return [];
  return [{ kind: "hosted", name: "mcp_servers", origin: { protocol: "messages", value: { mcp_servers: servers } } }];
}

/**
 * The earlier turns were not kept: a backend of another format made them. Told by this code, the official SDK, whose tool
 * runner makes threads unasked, sends the whole conversation instead.
 */
function threadNotFound(): GatewayError {
  return new GatewayError(
    ERRORS.invalidRequest,
    "thread.previous_message_id: no thread is kept for this model; send the whole conversation in messages.",
    { param: "thread.previous_message_id", details: { error_code: "thread_not_found" } },
  );
}

function isContinued(thread: unknown): boolean {
  return isObject(thread) && thread.type === "continue";
}

function decodeSampling(body: JsonObject): Sampling {
  const sampling: Sampling = {};
  if (typeof body.temperature === "number") sampling.temperature = body.temperature;
  if (typeof body.top_p === "number") sampling.topP = body.top_p;
  if (typeof body.top_k === "number") sampling.topK = body.top_k;
  if (Array.isArray(body.stop_sequences)) {
    sampling.stop = body.stop_sequences.filter((sequence) => typeof sequence === "string");
  }
  return sampling;
}

function decodeFormat(body: JsonObject): ResponseFormat | undefined {
  const format = (isObject(body.output_config) ? body.output_config.format : undefined) ?? body.output_format;
  if (!isObject(format) || format.type !== "json_schema" || !isObject(format.schema)) return undefined;
  return { type: "json-schema", name: SCHEMA_NAME, schema: format.schema };
}

function decodeMetadata(metadata: unknown, request: GenerationRequest): void {
  if (!isObject(metadata)) return;
  const { user_id: userId, ...rest } = metadata;
  if (typeof userId === "string") request.user = userId;
  if (Object.keys(rest).length > 0) request.metadata = rest;
}

function decodeExtensions(body: JsonObject): JsonObject {
  const extensions = extensionsOf(body, KNOWN_MEMBERS);
  if (isObject(body.output_config)) {
    const { effort: _effort, format: _format, ...rest } = body.output_config;
    if (Object.keys(rest).length > 0) extensions.output_config = rest;
  }
  return extensions;
}
