// Bodies of the client formats in the neutral model, and back, as hooks read and change them.

import { BACKEND_KINDS } from "../backends/kinds.ts";
import { formatOf, writesText } from "../backends/operations.ts";
import { collect } from "../generation/collect.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { backendProtocol, clientProtocol, keptAnswers } from "../protocols/registry.ts";
import { readEvents } from "../protocols/sse.ts";
import { HookFault } from "./hook-fault.ts";

/** The body is the neutral model itself. */
export const NEUTRAL = "neutral";

/** True of operations whose bodies are conversations. */
export function isConversation(operation: string): boolean {
  return writesText(operation) && formatOf(operation) !== undefined;
}

/** Undefined where the body is no conversation. */
export function decodeRequestBody(format: string, body: JsonObject): GenerationRequest | undefined {
  if (format === NEUTRAL) return body as unknown as GenerationRequest;
  return isConversation(format) ? clientProtocol(format).decodeRequest(body) : undefined;
}

export function encodeRequestBody(format: string, request: GenerationRequest): JsonObject {
  if (format === NEUTRAL) return request as unknown as JsonObject;
  const protocol = backendProtocol(format);
  // The first kind that is asked in the format itself has no rules of another vendor.
  const kind = Object.values(BACKEND_KINDS).find(({ paths }) => paths[format] !== undefined);
  if (kind === undefined || protocol.readsStreamsAlone) {
    throw new HookFault(`requests of the format ${format} cannot be written from the neutral model; change body`);
  }
  const { body, dropped } = protocol.encodeRequest(request, { model: request.model, kind });
  if (dropped.length > 0) {
    throw new HookFault(
      `the changed request cannot be written as ${format}: ${dropped.map(({ feature }) => feature).join(", ")}`,
    );
  }
  return body;
}

/** Undefined for an answer that cannot be read. */
export function decodeAnswerBody(format: string, body: JsonObject): GenerationResult | undefined {
  if (format === NEUTRAL) return body as unknown as GenerationResult;
  if (!isConversation(format)) return undefined;
  const protocol = backendProtocol(format);
  if (!protocol.readsStreamsAlone) return protocol.decodeResponse(body);
  const events = keptAnswers(format)?.asStream(JSON.stringify(body), true);
  if (events === undefined) return undefined;
  const decoder = protocol.streamDecoder();
  const told = readEvents(events).flatMap(({ data, name }) => decoder.push(data, name));
  return collect([...told, ...decoder.end()]);
}

/**
 * The request with an answer and another message behind it. Undefined where the format has no place for them.
 * @param said - the text of the answer
 */
export function withReply(format: string, body: JsonObject, said: string, message: string): JsonObject | undefined {
  if (format !== NEUTRAL) return clientProtocol(format).withReply?.(body, said, message);
  const turn = (role: "assistant" | "user", text: string) => ({ role, parts: [{ type: "text", text }] });
  return { ...body, messages: [...(body.messages as unknown[]), turn("assistant", said), turn("user", message)] };
}

const decoder = new TextDecoder();

export function parsedBody(bytes: Uint8Array | undefined): JsonObject {
  const value = bytes === undefined ? undefined : parseObject(decoder.decode(bytes));
  if (!isObject(value)) throw new HookFault("the body is no JSON object");
  return value;
}
