// POST /v1/responses: what is special about it is that a request may build on an earlier answer.

import { ownerOf } from "../access/owner.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { JsonObject } from "../lib/json.ts";
import type { ExternalCheck } from "../media/fetch-external.ts";
import type { Generated, GenerateRequest } from "../pipeline/generate.ts";
import type { ResponseStore } from "../pipeline/response-store.ts";
import { checkDepth } from "../protocols/fields.ts";
import {
  fileUrls,
  referencedItemIds,
  withPreviousItems,
  withReferencedItems,
} from "../protocols/responses/stored-items.ts";
import type { Call } from "../server/handler.ts";

export interface ResponsesParts {
  store: ResponseStore;
  /** Whether a backend of the model speaks the format itself, and may know what the gateway does not. */
  hasNative(model: string): boolean;
  fetchExternal: ExternalCheck;
}

/** Replaces references to earlier answers by what they stand for, and sees to it that this one is kept. */
export async function arrangeResponse(
  call: Call,
  asked: GenerateRequest,
  { store, hasNative, fetchExternal }: ResponsesParts,
): Promise<GenerateRequest> {
  for (const { url, param } of fileUrls(asked.value)) {
    await fetchExternal.check({ url, param, signal: call.context.signal });
  }
  checkDepth(asked.value);
  if (asked.body.length > MAX_PASSED_BYTES && hasNative(asked.model)) {
    throw new GatewayError(
      ERRORS.payloadTooLarge,
      `The request body is larger than ${MAX_PASSED_BYTES} bytes, the most that is passed to the backend's own endpoint.`,
    );
  }
  const owner = ownerOf(call.context.caller);
  const { previous_response_id: previous } = asked.value;
  let { value } = asked;
  let prefer: string | undefined;
  let isResolved = false;
  if (typeof previous === "string") {
    const kept = store.find(owner, previous);
    if (kept?.kind === "items") {
      value = withPreviousItems(value, kept.items);
      isResolved = true;
    } else if (kept?.kind === "backend") prefer = kept.name;
    else if (!hasNative(asked.model)) throw unknownResponse(previous);
  }
  const references = referencedItemIds(value);
  if (references.length > 0) {
    const found = new Map<string, JsonObject>();
    for (const id of references) {
      const item = store.findItem(owner, id);
      if (item !== undefined) found.set(id, item);
    }
    // A backend that speaks the format may know items that the gateway does not.
    if (found.size === new Set(references).size || !hasNative(asked.model)) value = withReferencedItems(value, found);
  }
  // The answer names what it builds on; a backend that keeps responses itself would look for one that it never had.
  const sent = isResolved ? { ...value, previous_response_id: undefined } : value;
  const body = value === asked.value ? asked.body : new TextEncoder().encode(JSON.stringify(sent));
  const isKept = value.store !== false;
  return {
    ...asked,
    value,
    body,
    prefer,
    ...(isKept ? { answered: (result, context) => store.keepItems(owner, result, context) } : {}),
  };
}

/** Remembers which backend keeps an answer that passed untouched. */
export function noteResponse(call: Call, asked: GenerateRequest, generated: Generated, store: ResponseStore): void {
  if (asked.value.store === false || (generated.kind !== "plain" && generated.kind !== "stream")) return;
  const { result } = generated;
  const start = result.kind === "plain" ? result.body : result.live.stream.firstEvents;
  if (result.kind === "stream" && result.live.translator !== undefined) return;
  const id = /"id"\s*:\s*"(resp_[^"\\]{1,200})"/.exec(
    new TextDecoder().decode(start.subarray(0, ID_WITHIN_BYTES)),
  )?.[1];
  if (id === undefined || store.find(ownerOf(call.context.caller), id) !== undefined) return;
  store.keepBackend(ownerOf(call.context.caller), id, result.entry.backend.name);
}

/** Specification, Limits: "Responses pass-through request payload". */
const MAX_PASSED_BYTES = 16 * 1024 * 1024;

/** The id stands at the beginning of a response. */
const ID_WITHIN_BYTES = 4096;

function unknownResponse(id: string): GatewayError {
  return new GatewayError(
    ERRORS.previousResponseNotFound,
    `previous_response_id: no response '${id}' is kept; send the whole conversation as input.`,
    { param: "previous_response_id" },
  );
}
