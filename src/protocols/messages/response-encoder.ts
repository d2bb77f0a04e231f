// Neutral result -> body of a Messages answer; and the blocks and citations that the stream encoder writes as well.

import type { Citation, ContentPart, ReasoningPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import type { Seal } from "../seal-payload.ts";
import { inputOf } from "../tool-input.ts";
import { encodeSearchResult } from "./content-encoder.ts";
import { encodeFinish } from "./finish-reason.ts";
import { wrapSeal } from "./foreign-seal.ts";
import { encodeUsage } from "./usage.ts";
import { type Block, isBlock } from "./wire.ts";

export function encodeResponse(result: GenerationResult, context: AnswerContext): JsonObject {
  const content = result.parts.flatMap((part, index) => encodePart(part, index, context.nonce));
  const shape = {
    hasToolCalls: result.parts.some((part) => part.type === "tool-call" && part.serverSide !== true),
    hasRefusal: result.parts.some((part) => part.type === "refusal"),
  };
  return {
    id: messageId(result.id, context.nonce),
    type: "message",
    role: "assistant",
    model: context.model,
    content,
    ...encodeFinish(result.finish, shape),
    usage: encodeUsage(result.usage),
  };
}

export function messageId(id: string, nonce: string): string {
  return id.startsWith("msg_") ? id : `msg_${nonce}`;
}

/** The id of a call, made up where the backend gave none. */
export function callId(id: string, serverSide: boolean, index: number, nonce: string): string {
  return id === "" ? `${serverSide ? "srvtoolu" : "toolu"}_${nonce}${index}` : id;
}

function encodePart(part: ContentPart, index: number, nonce: string): Block[] {
  switch (part.type) {
    case "text":
      return encodeText(part.text, part.citations ?? []);
    case "refusal":
      return encodeText(part.text, []);
    case "reasoning":
      return encodeReasoning(part);
    case "tool-call": {
      const isServerSide = part.serverSide === true;
      const type = isServerSide ? "server_tool_use" : "tool_use";
      return [{ type, id: callId(part.id, isServerSide, index, nonce), name: part.name, input: inputOf(part) }];
    }
    case "search-result":
      return [encodeSearchResult(part)];
    case "opaque":
      return part.protocol === "messages" && isBlock(part.value) ? [part.value] : [];
    default:
      return []; // Pictures and sound have no place in an answer of this format.
  }
}

function encodeText(text: string, citations: readonly Citation[]): Block[] {
  const encoded = citations.map(encodeCitation).filter((citation) => citation !== undefined);
  // An empty text would be refused when the client sends the turn back.
  if (text === "" && encoded.length === 0) return [];
  return [encoded.length === 0 ? { type: "text", text } : { type: "text", text, citations: encoded }];
}

function encodeReasoning(part: ReasoningPart): Block[] {
  const { text, origin, sealed } = part;
  const signature = signatureOf(part);
  const blocks: Block[] = [];
  if (text !== "" || signature !== undefined) {
    blocks.push({ type: "thinking", thinking: text, signature: signature ?? wrapSeal({}) });
  }
  if (origin === "messages" && sealed !== undefined) blocks.push({ type: "redacted_thinking", data: sealed });
  return blocks;
}

/** A backend's own, or one that brings a foreign seal back; undefined when there is nothing to bring back. */
export function signatureOf(seal: Seal): string | undefined {
  const { origin, signature, sealed } = seal;
  if (origin === "messages") return signature;
  return origin === undefined || (signature === undefined && sealed === undefined) ? undefined : wrapSeal(seal);
}

/** Undefined for a citation without an address, which this format knows of documents only. */
export function encodeCitation({ origin, url, title, citedText }: Citation): JsonObject | undefined {
  if (origin?.protocol === "messages") return origin.value;
  if (url === undefined) return undefined;
  return {
    type: "web_search_result_location",
    url,
    title: title ?? null,
    encrypted_index: wrapSeal({}),
    cited_text: citedText ?? "",
  };
}
