// Lines of OpenAI's Batch API: requests in the input file, results in the output file and the error file. The codes of bad
// lines are those of its documentation: https://platform.openai.com/docs/guides/batch.

import { isObject } from "../lib/json.ts";
import { randomLetters } from "../lib/random-letters.ts";
import type { BatchFormat, Unanswered } from "./batch-format.ts";
import type { BatchFault, LineResult } from "./batch-store.ts";

const MAX_CUSTOM_ID_LENGTH = 512;
const ID_LENGTH = 24;

const REASONS: Readonly<Record<Unanswered, { code: string; message: string }>> = {
  expired: {
    code: "batch_expired",
    message: "This request could not be executed before the completion window expired.",
  },
  cancelled: { code: "batch_cancelled", message: "This request was not executed, because the batch was cancelled." },
};

export const FILE_FORMAT: BatchFormat = {
  idPrefix: "batch_",
  resultsOwner: (owner) => owner,
  hasErrorFile: true,
  readLine({ custom_id: customId, method, url, body }, endpoint) {
    if (typeof customId !== "string" || customId === "") return missing("custom_id", "a text that is not empty");
    if (customId.length > MAX_CUSTOM_ID_LENGTH) {
      return invalid("custom_id", `custom_id must have at most ${MAX_CUSTOM_ID_LENGTH} characters.`);
    }
    if (method !== "POST") return missing("method", "'POST'");
    if (url !== endpoint) {
      return { code: "url_mismatch", message: `url must be '${endpoint}', the endpoint of the batch.`, param: "url" };
    }
    if (!isObject(body)) return missing("body", "the object that is the request");
    if (typeof body.model !== "string" || body.model === "") return missing("body.model", "the name of a model");
    if (body.stream === true) return invalid("body.stream", "body.stream must not be true: batches do not stream.");
    return { customId, bodyMember: "body", model: body.model };
  },
  answered(customId, { status, requestId, body }, isAskedAgain) {
    const head = `{"id":${newId()},"custom_id":${JSON.stringify(customId)}`;
    const response = `{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":${body}}`;
    const note = isAskedAgain ? ',"asked_again":true' : "";
    return { isError: status >= 400, text: `${head},"response":${response},"error":null${note}}` };
  },
  unanswered: (customId, why) => failed(customId, REASONS[why]),
  // A custom_id that stands twice has the result of its first line alone.
  faulty: ({ code, message, line }) => failed(null, { code, message, line }),
};

function failed(
  customId: string | null,
  error: { code: string; message: string; line?: number | undefined },
): LineResult {
  const text = `{"id":${newId()},"custom_id":${JSON.stringify(customId)},"response":null,"error":${JSON.stringify(error)}}`;
  return { isError: true, text };
}

function newId(): string {
  return `"batch_req_${randomLetters(ID_LENGTH)}"`;
}

function missing(param: string, expected: string): BatchFault {
  return { code: "missing_required_parameter", message: `${param} must be ${expected}.`, param };
}

function invalid(param: string, message: string): BatchFault {
  return { code: "invalid_value", message, param };
}
