// POST /v1/responses: what is special about it is that a request may build on an earlier answer.

import { ownerOf } from "../access/owner.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { JsonObject } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { Generated } from "../pipeline/generate.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import type { ResponseStore } from "../pipeline/response-store.ts";
import { checkDepth } from "../protocols/fields.ts";
import {
  bareItems,
  itemReferences,
  withPreviousItems,
  withReferencedItems,
} from "../protocols/responses/stored-items.ts";
import { responseIdAtStart } from "../protocols/responses/vendor-ids.ts";
import type { Call } from "../server/endpoint.ts";

export interface ResponsesParts {
  store: ResponseStore;
  /** True if a backend of the model speaks the format itself, and may know ids that the gateway does not. */
  hasNative(model: string): boolean;
  /** True if a request may name an id that a backend keeps and whose owner is not known. */
  isShared(): boolean;
}

/** Replaces references to earlier answers by what they stand for, and sees to it that this one is kept. */
export function arrangeResponse(
  call: Call,
  asked: ModelRequest,
  { store, hasNative, isShared }: ResponsesParts,
): ModelRequest {
  checkDepth(asked.body.value);
  const isNative = hasNative(asked.model);
  if (asked.body.bytes().length > MAX_PASSED_BYTES && isNative) {
    throw new GatewayError(
      ERRORS.payloadTooLarge,
      `The request body is larger than ${MAX_PASSED_BYTES} bytes, the most that is passed to the backend's own endpoint.`,
    );
  }
  const owner = ownerOf(call.context.caller);
  /** True if the backend may be asked for the object that it keeps under an id. */
  function mayName(id: string): boolean {
    const known = store.ownerOf(id);
    return isNative && (known === undefined ? isShared() : known === owner);
  }
  const { previous_response_id: previous, conversation } = asked.body.value;
  let { value } = asked.body;
  let prefer: string | undefined;
  let isResolved = false;
  /** True if a reference is left that only a backend can look up. */
  let namesVendorState = conversation !== undefined && conversation !== null;
  if (typeof previous === "string") {
    const kept = store.find(owner, previous);
    if (kept?.kind === "items") {
      value = withPreviousItems(value, kept.items);
      isResolved = true;
    } else if (kept?.kind === "backend") prefer = kept.name;
    else if (!mayName(previous)) throw unknownResponse(previous);
    namesVendorState ||= !isResolved;
  }
  // Conversations are made at the vendor itself: of none it is known whose it is.
  if (conversation !== undefined && conversation !== null && !isShared()) throw unknownConversation();
  const references = itemReferences(asked.body.value);
  if (references.length > 0) {
    const found = new Map<string, JsonObject>();
    for (const { id, param } of references) {
      const item = store.findItem(owner, id);
      if (item !== undefined) found.set(id, item);
      else if (!mayName(id)) throw unknownItem(id, param);
      else namesVendorState = true;
    }
    if (found.size > 0) value = withReferencedItems(value, found);
  }
  if (isNative) {
    for (const { id, param } of bareItems(asked.body.value)) {
      if (store.findItem(owner, id) === undefined && !mayName(id)) throw unknownItem(id, param);
      namesVendorState = true;
    }
  }
  // The answer names what it builds on; a backend that keeps responses itself would look for one that it never had.
  const sent = isResolved ? { ...value, previous_response_id: undefined } : value;
  const body = value === asked.body.value ? asked.body : JsonBody.written(value, sent);
  const isKept = value.store !== false;
  return {
    ...asked,
    body,
    prefer,
    ...(namesVendorState && { namesVendorState }),
    ...(isKept && {
      answered: (result, context) => store.keepItems(owner, result, context),
      mayReplay: ({ form, body }) => {
        const id = responseIdAtStart(body, form);
        return id === undefined ? false : store.renew(owner, id);
      },
    }),
  };
}

/** As arrangeResponse(), where another process keeps the earlier answers. */
export async function arrangeBrought(
  call: Call,
  asked: ModelRequest | Promise<ModelRequest>,
  parts: ResponsesParts,
  bring: NonNullable<ResponseStore["bring"]>,
): Promise<ModelRequest> {
  const request = await asked;
  checkDepth(request.body.value);
  const ids = namedIds(request);
  if (ids.length > 0) await bring(ownerOf(call.context.caller), ids);
  return arrangeResponse(call, request, parts);
}

/** Every id that a request may name of what is kept. */
function namedIds({ body: { value } }: ModelRequest): string[] {
  const { previous_response_id: previous } = value;
  const items = [...itemReferences(value), ...bareItems(value)].map(({ id }) => id);
  return typeof previous === "string" ? [previous, ...items] : items;
}

/** Remembers which backend keeps an answer that passed untouched, and whose it is; `ended`: all of a stream has passed. */
export function noteResponse(
  call: Call,
  asked: ModelRequest,
  generated: Generated,
  ended: Promise<unknown> | undefined,
  store: ResponseStore,
): void {
  if (asked.body.value.store === false || (generated.kind !== "plain" && generated.kind !== "stream")) return;
  const { result } = generated;
  const { stream, reader } = result.kind === "stream" ? result.live : {};
  const begun = result.kind === "plain" ? result.body : stream?.firstEvents;
  if (begun === undefined || (reader !== undefined && reader.itemIds === undefined)) return;
  const owner = ownerOf(call.context.caller);
  const id = responseIdAtStart(begun, result.kind);
  if (id !== undefined && store.find(owner, id) === undefined) {
    store.keepBackend(owner, id, result.entry.backend.name);
  }
  if (result.kind === "plain") store.noteItems(owner, result.itemIds ?? []);
  else void ended?.then(() => store.noteItems(owner, reader?.itemIds ?? []));
}

/** Limit of a body that goes untouched to a backend which speaks Responses itself. */
const MAX_PASSED_BYTES = 16 * 1024 * 1024;

function unknownResponse(id: string): GatewayError {
  return new GatewayError(
    ERRORS.previousResponseNotFound,
    `previous_response_id: no response '${id}' is kept; send the whole conversation as input.`,
    { param: "previous_response_id" },
  );
}

function unknownItem(id: string, param: string): GatewayError {
  const message = `${param}: no item ${JSON.stringify(id)} is kept here; send the item itself.`;
  return new GatewayError(ERRORS.itemNotFound, message, { param });
}

function unknownConversation(): GatewayError {
  return new GatewayError(
    ERRORS.conversationNotFound,
    "conversation: it is not known whose it is; send the whole conversation as input (responses.share_vendor_state).",
    { param: "conversation" },
  );
}
