// Body of a Messages request -> neutral request.

import type { JsonObject, Message } from "../../generation/content.ts";
import type { GenerationRequest, ResponseFormat, Sampling } from "../../generation/request.ts";
import type { HostedTool } from "../../generation/tools.ts";
import { isObject } from "../fields.ts";
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
    extensions: extensionsOf(body),
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
 * Members without which the answer would mean something else: tools that the vendor fetches from MCP servers, and a
 * conversation whose earlier turns only the vendor has. As tools of the vendor they are refused by other protocols.
 */
function toolsBeside(body: JsonObject): HostedTool[] {
  const tools: HostedTool[] = [];
  if (arrayOf(body.mcp_servers).length > 0) tools.push(beside("mcp_servers", body.mcp_servers));
  if (isContinued(body.thread)) tools.push(beside("thread", body.thread));
  return tools;
}

function beside(member: string, value: unknown): HostedTool {
  return { kind: "hosted", name: member, origin: { protocol: "messages", value: { [member]: value } } };
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

function extensionsOf(body: JsonObject): JsonObject {
  const extensions: JsonObject = {};
  for (const [member, value] of Object.entries(body)) {
    if (KNOWN_MEMBERS.has(member) || value === null) continue;
    if (member !== "thread" || !isContinued(value)) extensions[member] = value;
  }
  if (isObject(body.output_config)) {
    const { effort: _effort, format: _format, ...rest } = body.output_config;
    if (Object.keys(rest).length > 0) extensions.output_config = rest;
  }
  return extensions;
}
