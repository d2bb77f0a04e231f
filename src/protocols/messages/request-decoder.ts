// Body of a Messages request -> neutral request.

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { Message } from "../../generation/content.ts";
import type { GenerationRequest, ResponseFormat, Sampling } from "../../generation/request.ts";
import type { HostedTool } from "../../generation/tools.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { extensionsOf } from "../decode-request.ts";
import { arrayOf, objectOf, objectsOf, optionalNumber, optionalText, textsOf } from "../reading.ts";
import { decodeContent } from "./content-decoder.ts";
import { readMessagesRequest } from "./read-request.ts";
import { decodeReasoning } from "./thinking-config.ts";
import { decodeToolChoice, decodeTools } from "./tools.ts";

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
  if (objectOf(body.thread).type === "continue") throw threadNotFound();
  const { user_id: userId, ...metadata } = objectOf(body.metadata);
  return {
    model,
    system: decodeContent(body.system).filter((part) => part.type === "text"),
    messages: objectsOf(body.messages).map(decodeMessage),
    tools: [...decodeTools(body.tools), ...toolsBeside(body)],
    ...decodeToolChoice(body.tool_choice),
    sampling: decodeSampling(body),
    maxOutputTokens: body.max_tokens as number,
    reasoning: decodeReasoning(body.thinking, body.output_config),
    ...compact({
      responseFormat: decodeFormat(body),
      user: optionalText(userId),
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    }),
    stream,
    origin: { protocol: "messages", body },
    extensions: decodeExtensions(body),
  };
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

function decodeSampling(body: JsonObject): Sampling {
  return compact({
    temperature: optionalNumber(body.temperature),
    topP: optionalNumber(body.top_p),
    topK: optionalNumber(body.top_k),
    stop: Array.isArray(body.stop_sequences) ? textsOf(body.stop_sequences) : undefined,
  });
}

function decodeFormat(body: JsonObject): ResponseFormat | undefined {
  const format = objectOf(objectOf(body.output_config).format ?? body.output_format);
  if (format.type !== "json_schema" || !isObject(format.schema)) return undefined;
  return { type: "json-schema", name: SCHEMA_NAME, schema: format.schema };
}

function decodeExtensions(body: JsonObject): JsonObject {
  const extensions = extensionsOf(body, KNOWN_MEMBERS);
  const { effort: _effort, format: _format, ...rest } = objectOf(body.output_config);
  if (Object.keys(rest).length > 0) extensions.output_config = rest;
  return extensions;
}
