// Lines of Anthropic's Message Batches: the requests of the body that creates one, and what the results say of each. Shapes:
// resources/messages/batches of @anthropic-ai/sdk; the form of a custom_id: the refusals of the vendor.

import { isObject, type JsonObject } from "../lib/json.ts";
import type { BatchFormat } from "./batch-format.ts";
import type { BatchFault, LineResult } from "./batch-store.ts";

const CUSTOM_ID = /^[A-Za-z0-9_-]{1,64}$/;

export const MESSAGE_FORMAT: BatchFormat = {
  idPrefix: "msgbatch_",
  // No owner begins like this (access/owner.ts).
  resultsOwner: (owner) => `batches of ${owner}`,
  hasErrorFile: false,
  readLine({ custom_id: customId, params, ...others }: JsonObject) {
    if (typeof customId !== "string" || !CUSTOM_ID.test(customId)) {
      return invalid("custom_id", "must be a text of 1 to 64 letters, digits, '_' and '-'");
    }
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) return invalid(unknown.slice(0, 64), "is not known here");
    if (!isObject(params)) return invalid("params", "must be the object that is the request");
    if (params.stream === true) return invalid("params.stream", "must not be true: batches do not stream");
    // What else is wrong with it becomes its result, as everywhere.
    const { model } = params;
    return { customId, bodyMember: "params", model: typeof model === "string" ? model : undefined };
  },
  answered(customId, { status, body }, isAskedAgain) {
    const result =
      status < 400 ? `{"type":"succeeded","message":${body}}` : `{"type":"errored","error":${errorOf(body)}}`;
    return { isError: status >= 400, text: textOf(customId, result, isAskedAgain) };
  },
  unanswered(customId, why): LineResult {
    const result = JSON.stringify({ type: why === "cancelled" ? "canceled" : "expired" });
    return { isError: true, text: textOf(customId, result, false) };
  },
};

function textOf(customId: string, result: string, isAskedAgain: boolean): string {
  const note = isAskedAgain ? ',"asked_again":true' : "";
  return `{"custom_id":${JSON.stringify(customId)},"result":${result}${note}}`;
}

/** A backend may answer something else than JSON. */
function errorOf(body: string): string {
  if (body.startsWith("{")) return body;
  const error = { type: "api_error", message: "The backend answered with something else than JSON." };
  return JSON.stringify({ type: "error", error, request_id: null });
}

function invalid(param: string, expected: string): BatchFault {
  return { code: "invalid_value", message: `${param} ${expected}.`, param };
}
