// The Files API in whichever dialect: upload, list, look at, delete and read files of one store.

import type { FilePage, FilesInUse, StoredFile } from "../files/file-store.ts";
import type { JsonObject } from "../lib/json.ts";
import { ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, type Parameter, queryParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { deleteFile, type FileAccess, fileParameter, OF_FILES, openFiles, requireFile } from "./file-access.ts";
import { contentAnswer } from "./file-content.ts";
import { CONTENT_ANSWERS } from "./file-schemas.ts";
import { receiveFile, refusal, type SaidOfFile, type UploadParts } from "./file-upload.ts";

export interface FileParts extends UploadParts {
  files: FilesInUse;
}

/** The words of one dialect for files. */
export interface FileDialect {
  /** The path of the list. */
  path: string;
  /** The name of a file in ids of operations and in schemas. */
  name: string;
  uploadNote?: string;
  listSummary: string;
  /** Parameters besides `limit`. */
  listParameters: readonly Parameter[];
  /** Files on a page. */
  pageSize: { usual: number; most: number };
  /** The fields of an upload; throws 400 for those that are wrong. */
  readFields(fields: JsonObject, call: Call): SaidOfFile;
  /** Throws 400 for a query that is wrong. */
  find(access: FileAccess, query: URLSearchParams, limit: number): Promise<FilePage>;
  toFile(file: StoredFile): object;
  /** `data`: the files of the page, as toFile() shows them. */
  toList(page: FilePage, data: readonly object[], query: URLSearchParams): object;
  toDeleted(id: string): object;
}

export function fileRoutes({ files, ...parts }: FileParts, dialect: FileDialect): DescribedEndpoint[] {
  const { path, name, pageSize, toFile } = dialect;
  const common = { tag: "Files", access: "files", errors: [...OF_FILES, 400] } as const;
  const one = `${path}/{file_id}`;
  const idOf = ({ parameters: { file_id: id = "" } }: Call) => id;
  return [
    {
      ...common,
      method: "POST",
      path,
      id: `create${name}`,
      takesUploads: true,
      summary: "Upload a file",
      ...(dialect.uploadNote !== undefined && { description: dialect.uploadNote }),
      body: { schema: ref(`${name}Upload`), types: ["multipart/form-data"] },
      answers: [jsonAnswer(name, "The file is stored.")],
      errors: [...common.errors, 408, 413],
      async handle(call) {
        const access = await openFiles(call, files);
        const file = await receiveFile(call, access, parts, (fields) => dialect.readFields(fields, call));
        return Response.json(toFile(file), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path,
      id: `list${name}s`,
      summary: dialect.listSummary,
      parameters: [
        queryParameter("limit", "Most files of a page.", {
          type: "integer",
          minimum: 1,
          maximum: pageSize.most,
          default: pageSize.usual,
        }),
        ...dialect.listParameters,
      ],
      answers: [jsonAnswer(`${name}List`, "A page of files.")],
      async handle(call) {
        const access = await openFiles(call, files);
        const query = new URL(call.request.url).searchParams;
        const page = await dialect.find(access, query, readLimit(query, pageSize));
        return Response.json(dialect.toList(page, page.files.map(toFile), query), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path: one,
      id: `get${name}`,
      summary: "What is known of a file",
      parameters: [fileParameter],
      answers: [jsonAnswer(name, "The file.")],
      async handle(call) {
        const file = await requireFile(await openFiles(call, files), idOf(call));
        return Response.json(toFile(file), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "DELETE",
      path: one,
      id: `delete${name}`,
      summary: "Delete a file",
      parameters: [fileParameter],
      answers: [jsonAnswer(`${name}Deleted`, "It is gone.")],
      async handle(call) {
        await deleteFile(await openFiles(call, files), idOf(call));
        return Response.json(dialect.toDeleted(idOf(call)), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path: `${one}/content`,
      id: `get${name}Content`,
      summary: "The content of a file",
      parameters: [fileParameter],
      answers: CONTENT_ANSWERS,
      errors: [...common.errors, 416],
      async handle(call) {
        const access = await openFiles(call, files);
        return contentAnswer(call, access.store, await requireFile(access, idOf(call)));
      },
    },
  ];
}

function readLimit(query: URLSearchParams, { usual, most }: FileDialect["pageSize"]): number {
  const text = query.get("limit");
  if (text === null) return usual;
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text);
  throw refusal("limit", `must be an integer from 1 to ${most}`);
}
