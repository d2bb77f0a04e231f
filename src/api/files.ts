// /v1/files: upload, list, look at, delete and read files, in the shapes of OpenAI's Files API. The same files in other
// shapes: messages-files.ts.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileQuery, FilesInUse, StoredFile } from "../files/file-store.ts";
import { oneOfTexts, ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { deleteFile, fileParameter, openFiles, requireFile } from "./file-access.ts";
import { contentAnswer } from "./file-content.ts";
import { CONTENT_ANSWERS } from "./file-schemas.ts";
import { type FormField, receiveFile, seconds, type UploadParts } from "./file-upload.ts";

export interface FileParts extends UploadParts {
  files: FilesInUse;
}

/** Statuses of errors of every endpoint that has to do with files; 404 is also for files that are switched off. */
export const OF_FILES = [401, 403, 404, 429, 500, 503] as const;

const MAX_PAGE = 10_000;

/** OpenAI's bounds of expires_after. */
const EXPIRY_SECONDS = { minimum: 3600, maximum: 30 * 86_400 };

export function fileRoutes(parts: FileParts): DescribedEndpoint[] {
  return [uploadRoute(parts), listRoute(parts), ...ofOneFile(parts)];
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
      let purpose: string | undefined;
      let anchor: string | undefined;
      let expiresAfterSeconds: number | undefined;
      const fields: Record<string, FormField> = {
        purpose(value) {
          purpose = requirePurpose(value, allowed);
        },
        "expires_after[anchor]"(value, name) {
          if (value !== "created_at") throw badField(name, "'created_at'");
          anchor = value;
        },
        "expires_after[seconds]"(value, name) {
          expiresAfterSeconds = seconds(value, name, EXPIRY_SECONDS);
        },
      };
      const file = await receiveFile(call, access, parts, fields, () => {
        if (purpose === undefined) throw missing("purpose", `one of ${allowed.join(", ")}`);
        if (anchor !== undefined && expiresAfterSeconds === undefined) {
          throw missing("expires_after[seconds]", "when the file expires");
        }
        if (anchor === undefined && expiresAfterSeconds !== undefined) {
          throw missing("expires_after[anchor]", "'created_at'");
        }
        return { purpose, expiresAfterSeconds };
      });
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

function ofOneFile({ files }: FileParts): DescribedEndpoint[] {
  const common = {
    tag: "Files",
    access: "files",
    parameters: [fileParameter],
    errors: [...OF_FILES, 400],
  } as const;
  return [
    {
      ...common,
      method: "GET",
      path: "/v1/files/{file_id}",
      id: "getFile",
      summary: "What is known of a file",
      answers: [jsonAnswer("File", "The file.")],
      async handle(call) {
        const { file_id: id = "" } = call.parameters;
        const file = requireFile(await openFiles(call, files), id);
        return Response.json(toFileObject(file), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "DELETE",
      path: "/v1/files/{file_id}",
      id: "deleteFile",
      summary: "Delete a file",
      answers: [jsonAnswer("FileDeleted", "It is gone.")],
      async handle(call) {
        const { file_id: id = "" } = call.parameters;
        await deleteFile(await openFiles(call, files), id);
        return Response.json({ id, object: "file", deleted: true }, { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path: "/v1/files/{file_id}/content",
      id: "getFileContent",
      summary: "The content of a file",
      answers: CONTENT_ANSWERS,
      errors: [...common.errors, 416],
      async handle(call) {
        const { file_id: id = "" } = call.parameters;
        const access = await openFiles(call, files);
        return contentAnswer(call, access.store, requireFile(access, id));
      },
    },
  ];
}

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
  if (order !== "asc" && order !== "desc") throw badField("order", "'asc' or 'desc'");
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
  throw badField("limit", `an integer from 1 to ${most}`);
}

function requirePurpose(value: string, allowed: readonly string[]): string {
  if (allowed.includes(value)) return value;
  throw badField("purpose", `one of ${allowed.join(", ")} (files.allowed_purposes)`);
}

function badField(param: string, expected: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param}: expected ${expected}.`, { param });
}

function missing(param: string, expected: string): GatewayError {
  return new GatewayError(ERRORS.missingParameter, `${param} is missing: ${expected}.`, { param });
}
