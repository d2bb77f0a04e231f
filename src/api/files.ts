// /v1/files: upload, list, look at, delete and read files, in the shapes of OpenAI's Files API. The same files in other
// shapes: messages-files.ts.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileQuery, FilesInUse, StoredFile } from "../files/file-store.ts";
import type { JsonObject } from "../lib/json.ts";
import { oneOfTexts, ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { OF_FILES, openFiles } from "./file-access.ts";
import { receiveFile, refusal, secondsField, textField, type UploadParts } from "./file-upload.ts";
import { type FileDialect, oneFileRoutes } from "./one-file.ts";

export interface FileParts extends UploadParts {
  files: FilesInUse;
}

const MAX_PAGE = 10_000;

const ANCHOR = "expires_after[anchor]";
const SECONDS = "expires_after[seconds]";
/** OpenAI's bounds of expires_after. */
const EXPIRY_SECONDS = { minimum: 3600, maximum: 30 * 86_400 };

export function fileRoutes(parts: FileParts): DescribedEndpoint[] {
  return [uploadRoute(parts), listRoute(parts), ...oneFileRoutes(parts.files, OPENAI)];
}

function uploadRoute(parts: FileParts): DescribedEndpoint {
  return {
    method: "POST",
    path: "/v1/files",
    id: "createFile",
    tag: "Files",
    access: "files",
    takesUploads: true,
    summary: "Upload a file",
    description: "The fields may stand before or behind the file.",
    body: { schema: ref("FileUpload"), types: ["multipart/form-data"] },
    answers: [jsonAnswer("File", "The file is stored.")],
    errors: [...OF_FILES, 400, 408, 413],
    async handle(call) {
      const access = await openFiles(call, parts.files);
      const { allowed_purposes: allowed } = call.context.settings.files;
      const file = await receiveFile(call, access, parts, (fields) => readFields(fields, allowed));
      return Response.json(toFileObject(file), { headers: call.headers });
    },
  };
}

function listRoute({ files }: FileParts): DescribedEndpoint {
  return {
    method: "GET",
    path: "/v1/files",
    id: "listFiles",
    tag: "Files",
    access: "files",
    summary: "The caller's files",
    parameters: [
      queryParameter("limit", "Most files of a page.", {
        type: "integer",
        minimum: 1,
        maximum: MAX_PAGE,
        default: MAX_PAGE,
      }),
      queryParameter("order", "By the time of their creation.", { ...oneOfTexts("asc", "desc"), default: "desc" }),
      queryParameter("after", "Only files behind this one."),
      queryParameter("purpose", "Only files with this purpose."),
    ],
    answers: [jsonAnswer("FileList", "A page of files.")],
    errors: [...OF_FILES, 400],
    async handle(call) {
      const { store, owner } = await openFiles(call, files);
      const { files: page, hasMore } = store.list(owner, readQuery(new URL(call.request.url).searchParams));
      const body = {
        object: "list",
        data: page.map(toFileObject),
        first_id: page[0]?.id ?? null,
        last_id: page.at(-1)?.id ?? null,
        has_more: hasMore,
      };
      return Response.json(body, { headers: call.headers });
    },
  };
}

const OPENAI: FileDialect = {
  path: "/v1/files",
  name: "File",
  toFile: toFileObject,
  toDeleted: (id) => ({ id, object: "file", deleted: true }),
};

/** Shape: wire/openai-chat.md, section 9. */
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

function readQuery(query: URLSearchParams): FileQuery {
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc") throw refusal("order", "must be 'asc' or 'desc'");
  return {
    limit: pageSize(query.get("limit"), MAX_PAGE, MAX_PAGE),
    order,
    purpose: query.get("purpose") ?? undefined,
    after: query.get("after") ?? undefined,
  };
}

/** Throws 400 for what is no size of a page. */
export function pageSize(text: string | null, usual: number, most: number): number {
  if (text === null) return usual;
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text);
  throw refusal("limit", `must be an integer from 1 to ${most}`);
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
