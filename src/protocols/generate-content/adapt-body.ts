// What a client's own body needs before a Gemini backend gets it: parts that the gateway signed for another backend's
// answer must not come back as if a Gemini model had made them, and another model than the client named must not be asked
// for a way to think that it does not know.

import { DropList } from "../../generation/dropped.ts";
import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import type { PassTarget } from "../protocol.ts";
import { isForeignMark } from "./foreign-signature.ts";
import { either, generationConfigOf, listOf } from "./members.ts";
import { rulesOf } from "./model-rules.ts";
import { encodeThinking } from "./thinking.ts";
import { decodeThinking } from "./thinking-wish.ts";
import { SKIP_VALIDATION } from "./thought-signature.ts";

/** The top-level members to set, undefined ones to remove; no result when the body can pass as it is. */
export function adaptBody(body: JsonObject, { model, askedModel }: PassTarget): JsonObject | undefined {
  const changes: JsonObject = {};
  // The path names it; a body that was made for a stand-in names it, too.
  if (isPresent(body.model)) changes.model = undefined;
  const contents = withoutForeignSignatures(body.contents, model);
  if (contents !== undefined) changes.contents = contents;
  // Google refuses a member that is there in both spellings.
  const isTwice = isObject(body.generationConfig) && isObject(body.generation_config);
  if (isTwice) Object.assign(changes, { generationConfig: generationConfigOf(body), generation_config: undefined });
  if (askedModel !== model) Object.assign(changes, adaptThinking(body, model));
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Undefined where there is none. */
function withoutForeignSignatures(contents: unknown, model: string): unknown[] | undefined {
  const list = listOf(contents);
  if (!list.some(hasForeignPart)) return undefined;
  const stand = rulesOf(model).signatures === "required" ? { thoughtSignature: SKIP_VALIDATION } : {};
  return list.flatMap((content) => {
    if (!isObject(content) || !hasForeignPart(content)) return [content];
    const parts = listOf(content.parts).flatMap((part) => {
      if (!isForeign(part)) return [part];
      if (part.thought === true) return [];
      const { thoughtSignature: _camel, thought_signature: _snake, ...rest } = part;
      return [isPresent(either(rest, "functionCall", "function_call")) ? { ...rest, ...stand } : rest];
    });
    // A content without parts is refused.
    return parts.length === 0 ? [] : [{ ...content, parts }];
  });
}

function hasForeignPart(content: unknown): boolean {
  return isObject(content) && listOf(content.parts).some(isForeign);
}

function isForeign(part: unknown): part is JsonObject {
  return isObject(part) && isForeignMark(either(part, "thoughtSignature", "thought_signature"));
}

const CALLS = ["functionCall", "function_call", "functionResponse", "function_response"] as const;

/** Whether a call or a result is named by an id. */
export function hasCallIds({ contents }: JsonObject): boolean {
  const hasId = (part: unknown) => isObject(part) && CALLS.some((name) => isObject(part[name]) && "id" in part[name]);
  return listOf(contents).some((content) => isObject(content) && listOf(content.parts).some(hasId));
}

/** Budgets and levels are words of different generations of models. */
function adaptThinking(body: JsonObject, model: string): JsonObject {
  const config = generationConfigOf(body);
  const thinking = either(config, "thinkingConfig", "thinking_config");
  if (!isPresent(thinking)) return {};
  const { thinkingConfig: _camel, thinking_config: _snake, ...rest } = config;
  const thinkingConfig = encodeThinking(decodeThinking(thinking), model, new DropList());
  const name = isPresent(body.generationConfig) ? "generationConfig" : "generation_config";
  return { [name]: { ...rest, ...(thinkingConfig !== undefined && { thinkingConfig }) } };
}
