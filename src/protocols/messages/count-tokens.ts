// An estimate of the input tokens of a Messages request, for backends that cannot count.

import { IMAGE_TOKENS } from "../../generation/token-facts.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { arrayOf, textOf } from "../reading.ts";
import {
  jsonTokens,
  pageTokens,
  TOKENS_FOR_TOOLS,
  TOKENS_PER_BLOCK,
  TOKENS_PER_TOOL,
  TOKENS_PER_TURN,
  textTokens,
} from "../token-estimate.ts";

export function estimateInputTokens(body: JsonObject): number {
  let tokens = TOKENS_PER_TURN + contentTokens(body.system);
  for (const message of arrayOf(body.messages)) {
    if (isObject(message)) tokens += TOKENS_PER_TURN + contentTokens(message.content);
  }
  const tools = arrayOf(body.tools);
  if (tools.length > 0) tokens += TOKENS_FOR_TOOLS;
  for (const tool of tools) tokens += TOKENS_PER_TOOL + jsonTokens(tool);
  if (isObject(body.output_config)) tokens += jsonTokens(body.output_config.format);
  return Math.ceil(tokens);
}

function contentTokens(content: unknown): number {
  if (typeof content === "string") return textTokens(content);
  let tokens = 0;
  for (const block of arrayOf(content)) {
    if (isObject(block)) tokens += TOKENS_PER_BLOCK + blockTokens(block);
  }
  return tokens;
}

function blockTokens(block: JsonObject): number {
  switch (block.type) {
    case "text":
      return textTokens(textOf(block.text));
    case "image":
      return IMAGE_TOKENS.usual;
    case "document":
      return textTokens(textOf(block.title)) + textTokens(textOf(block.context)) + documentTokens(block.source);
    case "search_result":
      return textTokens(textOf(block.title)) + textTokens(textOf(block.source)) + contentTokens(block.content);
    case "tool_use":
    case "server_tool_use":
      return TOKENS_PER_TOOL + textTokens(textOf(block.name)) + jsonTokens(block.input);
    case "tool_result":
      return TOKENS_PER_TOOL + contentTokens(block.content);
    case "thinking":
      return textTokens(textOf(block.thinking));
    case "redacted_thinking":
      return textTokens(textOf(block.data)) / 2;
    default:
      return jsonTokens(block);
  }
}

function documentTokens(source: unknown): number {
  if (!isObject(source)) return 0;
  if (source.type === "text") return textTokens(textOf(source.data));
  if (source.type === "content") return contentTokens(source.content);
  return pageTokens(textOf(source.data));
}
