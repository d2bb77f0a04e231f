// /v1/files: the Files API in the shapes of OpenAI.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { StoredFile } from "../files/file-store.ts";
import type { JsonObject } from "../lib/json.ts";
import { oneOfTexts } from "../openapi/json-schema.ts";
import { queryParameter } from "../openapi/operation.ts";
import type { FileDialect } from "./file-routes.ts";
import { refusal, secondsField, textField } from "./file-upload.ts";

const MAX_PAGE = 10_000;

const ANCHOR = "expires_after[anchor]";
const SECONDS = "expires_after[seconds]";
/** OpenAI's bounds of expires_after. */
const EXPIRY_SECONDS = { minimum: 3600, maximum: 30 * 86_400 };

export const OPENAI_FILES: FileDialect = {
  path: "/v1/files",
  name: "File",
  uploadNote: "The fields may stand before or behind the file.",
  listSummary: "The caller's files",
  listParameters: [
    queryParameter("order", "By the time of their creation.", { ...oneOfTexts("asc", "desc"), default: "desc" }),
    queryParameter("after", "Only files behind this one."),
    queryParameter("purpose", "Only files with this purpose."),
  ],
  pageSize: { usual: MAX_PAGE, most: MAX_PAGE },
  readFields: (fields, { context }) => readFields(fields, context.settings.files.allowed_purposes),
  find({ store, owner }, query, limit) {
    const order = query.get("order") ?? "desc";
    if (order !== "asc" && order !== "desc") throw refusal("order", "must be 'asc' or 'desc'");
    const purpose = query.get("purpose") ?? undefined;
    return store.list(owner, { limit, order, purpose, after: query.get("after") ?? undefined });
  },
  toFile: toFileObject,
  toList: ({ files, hasMore }, data) => ({
    object: "list",
    data,
    first_id: files[0]?.id ?? null,
    last_id: files.at(-1)?.id ?? null,
    has_more: hasMore,
  }),
  toDeleted: (id) => ({ id, object: "file", deleted: true }),
};

/** The file object of OpenAI's Files API. */
function toFileObject({ id, bytes, createdAt, expiresAt, filename, purpose }: StoredFile): object {
  return {
    id,
    object: "file",
    bytes,
    created_at: createdAt,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
    filename,
    purpose,
    status: "processed",
  };
}

function readFields(fields: JsonObject, allowed: readonly string[]) {
  const purposes = allowed.join(", ");
  const purpose = textField(fields, "purpose");
  if (purpose === undefined) throw missing("purpose", `one of ${purposes}`);
  if (!allowed.includes(purpose)) throw refusal("purpose", `must be one of ${purposes} (files.allowed_purposes)`);
  const misspelt = Object.keys(fields).find(
    (name) => /^expires_after/.test(name) && name !== ANCHOR && name !== SECONDS,
  );
  // A file that its owner believes to end would stay for ever.
  if (misspelt !== undefined) throw refusal(misspelt.slice(0, 64), `is not known: use ${ANCHOR} and ${SECONDS}`);
  const anchor = textField(fields, ANCHOR);
  if (anchor !== undefined && anchor !== "created_at") throw refusal(ANCHOR, "must be 'created_at'");
  const expiresAfterSeconds = secondsField(fields, SECONDS, EXPIRY_SECONDS);
  if (anchor === undefined && expiresAfterSeconds !== undefined) throw missing(ANCHOR, "'created_at'");
  if (anchor !== undefined && expiresAfterSeconds === undefined) throw missing(SECONDS, "when the file expires");
  return { purpose, expiresAfterSeconds };
}

function missing(param: string, expected: string): GatewayError {
  return new GatewayError(ERRORS.missingParameter, `${param} is missing: ${expected}.`, { param });
}
