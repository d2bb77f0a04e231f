// An estimate of the input tokens of a Messages request, for backends that cannot count.
//
// Heuristic: a token is about four ASCII letters; scripts beyond Latin need up to one token per character, which their
// length in UTF-8 tells (three bytes for most CJK characters). Pictures and files count by kind, not by their base64.
// Every turn and tool has a small overhead. The result is meant to be slightly high rather than low.

import { IMAGE_TOKENS, USUAL_BYTES_PER_TOKEN } from "../../generation/token-facts.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { arrayOf, textOf } from "../reading.ts";

/** What each byte beyond the first of a character adds, in characters. */
const WEIGHT_OF_EXTRA_BYTE = 1.5;
const TOKENS_PER_TURN = 4;
const TOKENS_PER_BLOCK = 2;
const TOKENS_PER_TOOL = 12;
/** The instructions that a list of tools brings along. */
const TOKENS_FOR_TOOLS = 300;
const TOKENS_PER_PAGE = 2_000;
/** Base64 characters of a page in an ordinary PDF. */
const PAGE_LENGTH = 70_000;

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
  return TOKENS_PER_PAGE * Math.max(1, Math.ceil(textOf(source.data).length / PAGE_LENGTH));
}

function jsonTokens(value: unknown): number {
  return value === undefined ? 0 : textTokens(JSON.stringify(value));
}

function textTokens(text: string): number {
  const extraBytes = Buffer.byteLength(text, "utf8") - text.length;
  return (text.length + WEIGHT_OF_EXTRA_BYTE * extraBytes) / USUAL_BYTES_PER_TOKEN;
}
