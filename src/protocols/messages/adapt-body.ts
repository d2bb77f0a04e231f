// What a Messages client's own body needs before a Messages backend gets it: blocks that the gateway made for another
// backend's answer must not come back as if the backend had made them, and another model than the client named must
// not be asked for what it refuses.

import { DropList } from "../../generation/dropped.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { arrayOf } from "../reading.ts";
import { searchText } from "../request-words.ts";
import { decodeSearchResult } from "./content-decoder.ts";
import { isForeignMark } from "./foreign-seal.ts";
import { rulesOf } from "./model-rules.ts";
import { adaptThinking } from "./thinking-config.ts";
import { lacksThinking, type Turn } from "./tool-results.ts";
import { type Block, isBlock } from "./wire.ts";

/**
 * The top-level members to set, undefined ones to remove; no result when the body can pass as it is. The model is the
 * one that the backend is asked for, which is not among the changes.
 */
export function adaptMessagesBody(body: JsonObject, model: string, askedModel: string): JsonObject | undefined {
  const messages = withoutForeignBlocks(arrayOf(body.messages));
  const changes: JsonObject = messages === undefined ? {} : { messages };
  if (askedModel !== model) {
    const rules = rulesOf(model);
    const turns = (messages ?? arrayOf(body.messages)).filter(isTurn);
    const context = {
      model,
      rules,
      limit: rules.maxOutputTokens,
      lacksThinking: lacksThinking(turns),
      dropped: new DropList(),
    };
    Object.assign(changes, adaptThinking(body, context));
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

function isTurn(message: unknown): message is Turn {
  return isObject(message) && Array.isArray(message.content) && message.content.every(isBlock);
}

/** Undefined when there is none. */
function withoutForeignBlocks(messages: readonly unknown[]): unknown[] | undefined {
  if (!messages.some(hasForeignBlock)) return undefined;
  const kept: unknown[] = [];
  for (const message of messages) {
    if (!isObject(message) || !hasForeignBlock(message)) {
      kept.push(message);
      continue;
    }
    const content = nativeContent(arrayOf(message.content));
    // An empty turn is refused; neighbours of one role are joined by the backend.
    if (content.length > 0) kept.push({ ...message, content });
  }
  return kept;
}

function hasForeignBlock(message: unknown): boolean {
  return isObject(message) && arrayOf(message.content).some((block) => isBlock(block) && isForeign(block));
}

function isForeign(block: Block): boolean {
  if (block.type === "thinking") return isForeignMark(block.signature);
  if (block.type === "web_search_tool_result") return arrayOf(block.content).some(isForeignHit);
  return block.type === "text" && arrayOf(block.citations).some(isForeignCitation);
}

function isForeignHit(hit: unknown): boolean {
  return isObject(hit) && isForeignMark(hit.encrypted_content);
}

function isForeignCitation(citation: unknown): boolean {
  return isObject(citation) && isForeignMark(citation.encrypted_index);
}

function nativeContent(content: readonly unknown[]): unknown[] {
  const blocks = content.filter(isBlock);
  const searches = blocks.filter((block) => block.type === "web_search_tool_result" && isForeign(block));
  const calls = new Set(searches.map((block) => block.tool_use_id));
  return blocks.flatMap((block) => {
    if (block.type === "server_tool_use" && calls.has(block.id)) return [];
    if (!isForeign(block)) return [block];
    if (block.type === "thinking") return [];
    if (block.type === "web_search_tool_result") return [{ type: "text", text: searchText(decodeSearchResult(block)) }];
    const { citations, ...text } = block;
    const own = arrayOf(citations).filter((citation) => !isForeignCitation(citation));
    return [own.length === 0 ? text : { ...text, citations: own }];
  });
}
