// What the gateway keeps of an answer, and how a later request takes it up (previous_response_id, item_reference).
// Pure: where items are kept, for how long and for whom is settled elsewhere.

import type { GenerationResult } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { textOf } from "../reading.ts";
import { encodeOutput } from "./output-items.ts";
import { isItemReference } from "./wire.ts";

/**
 * The whole conversation as items: the input of the request, with what withPreviousItems() put before it, and the output.
 * The output keeps the thoughts with their proofs even where the client did not ask for them; its ids are the client's.
 * Instructions are not part of it: they hold for one request only.
 */
export function storedItems(result: GenerationResult, context: AnswerContext): JsonObject[] {
  return [...inputItems(context.request.origin.body.input), ...encodeOutput(result, context, { keepsAll: true })];
}

/** The request with earlier items before its own input. */
export function withPreviousItems(body: JsonObject, items: readonly JsonObject[]): JsonObject {
  return { ...body, input: [...items, ...inputItems(body.input)] };
}

/** The items that a request only refers to. */
export function itemReferences({ input }: JsonObject): { id: string; param: string }[] {
  if (!Array.isArray(input)) return [];
  return input.flatMap((item: unknown, index) =>
    isObject(item) && isItemReference(item) ? [{ id: textOf(item.id), param: `input[${index}].id` }] : [],
  );
}

/**
 * Whether an item holds what its id stands for; of a type that is not here, the id alone names nothing at the vendor.
 */
const HOLDS_ITSELF: Readonly<Record<string, (item: JsonObject) => boolean>> = {
  reasoning: ({ encrypted_content, content }) =>
    textOf(encrypted_content) !== "" || (Array.isArray(content) && content.length > 0),
  image_generation_call: ({ result }) => textOf(result) !== "",
};

/** Items of which nothing but the id was sent along: a vendor that keeps them looks them up, as it does references. */
export function bareItems({ input }: JsonObject): { id: string; param: string }[] {
  if (!Array.isArray(input)) return [];
  return input.flatMap((item: unknown, index) => {
    if (!isObject(item) || typeof item.type !== "string" || typeof item.id !== "string") return [];
    const holdsItself = Object.hasOwn(HOLDS_ITSELF, item.type) ? HOLDS_ITSELF[item.type]?.(item) : true;
    return holdsItself ? [] : [{ id: item.id, param: `input[${index}].id` }];
  });
}

/** The request with items in the place of references to them; the other references stay. */
export function withReferencedItems(body: JsonObject, items: ReadonlyMap<string, JsonObject>): JsonObject {
  if (!Array.isArray(body.input)) return body;
  const input = body.input.map((item: unknown) =>
    isObject(item) && isItemReference(item) ? (items.get(textOf(item.id)) ?? item) : item,
  );
  return { ...body, input };
}

function inputItems(input: unknown): JsonObject[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? input.filter(isObject) : [];
}
