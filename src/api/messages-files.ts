// /anthropic/v1/files: the same files as files.ts, in the shapes of the Messages API. The header anthropic-beta may be sent
// or not.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileQuery, StoredFile } from "../files/file-store.ts";
import { ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { type FileAccess, OF_FILES, openFiles } from "./file-access.ts";
import { receiveFile, secondsField } from "./file-upload.ts";
import { type FileParts, pageSize } from "./files.ts";
import { messagesErrors } from "./messages.ts";
import { type FileDialect, oneFileRoutes } from "./one-file.ts";

const DEFAULT_PAGE = 20;
const MAX_PAGE = 1000;
const MAX_IDS = 100;

/** The purpose of files of clients that know none. */
const PURPOSE = "user_data";

/** The bounds of expires_in_seconds. */
const EXPIRY_SECONDS = { minimum: 3600, maximum: 90 * 86_400 };

export function messagesFileRoutes(parts: FileParts): DescribedEndpoint[] {
  return [uploadRoute(parts), listRoute(parts), ...oneFileRoutes(parts.files, ANTHROPIC)].map((endpoint) => ({
    ...endpoint,
    ...messagesErrors(),
  }));
}

function uploadRoute(parts: FileParts): DescribedEndpoint {
  return {
    method: "POST",
    path: "/anthropic/v1/files",
    id: "createMessagesFile",
    tag: "Files",
    access: "files",
    takesUploads: true,
    summary: "Upload a file",
    body: { schema: ref("MessagesFileUpload"), types: ["multipart/form-data"] },
    answers: [jsonAnswer("MessagesFile", "The file is stored.")],
    errors: [...OF_FILES, 400, 408, 413],
    async handle(call) {
      const access = await openFiles(call, parts.files);
      const file = await receiveFile(call, access, parts, (fields) => ({
        purpose: PURPOSE,
        expiresAfterSeconds: secondsField(fields, "expires_in_seconds", EXPIRY_SECONDS),
      }));
      return Response.json(toMetadata(file), { headers: call.headers });
    },
  };
}

function listRoute({ files }: FileParts): DescribedEndpoint {
  return {
    method: "GET",
    path: "/anthropic/v1/files",
    id: "listMessagesFiles",
    tag: "Files",
    access: "files",
    summary: "The caller's files, the newest first",
    parameters: [
      queryParameter("limit", "Most files of a page.", {
        type: "integer",
        minimum: 1,
        maximum: MAX_PAGE,
        default: DEFAULT_PAGE,
      }),
      queryParameter("after_id", "Only files behind this one."),
      queryParameter("before_id", "Only files in front of this one."),
      queryParameter("page", "next_page of the page before."),
      queryParameter("ids[]", `Only these files, at most ${MAX_IDS}; for each one again.`),
    ],
    answers: [jsonAnswer("MessagesFileList", "A page of files.")],
    errors: [...OF_FILES, 400],
    async handle(call) {
      const access = await openFiles(call, files);
      const query = new URL(call.request.url).searchParams;
      const asked = readQuery(query);
      const ids = query.getAll("ids[]");
      const page = ids.length > 0 ? namedFiles(access, ids) : access.store.list(access.owner, asked);
      const last = page.files.at(-1)?.id ?? null;
      const body = {
        data: page.files.map(toMetadata),
        first_id: page.files[0]?.id ?? null,
        last_id: last,
        has_more: page.hasMore,
        // How newer clients ask for more.
        next_page: page.hasMore && !query.has("before_id") ? last : null,
      };
      return Response.json(body, { headers: call.headers });
    },
  };
}

const ANTHROPIC: FileDialect = {
  path: "/anthropic/v1/files",
  name: "MessagesFile",
  toFile: toMetadata,
  toDeleted: (id) => ({ id, type: "file_deleted" }),
};

/** Shape: wire/anthropic-messages.md, section 9. */
function toMetadata({ id, filename, mediaType, bytes, createdAt, expiresAt }: StoredFile): object {
  return {
    id,
    type: "file",
    filename,
    mime_type: mediaType,
    size_bytes: bytes,
    created_at: rfc3339(createdAt),
    downloadable: true,
    expires_at: expiresAt === undefined ? null : rfc3339(expiresAt),
  };
}

function rfc3339(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}

function readQuery(query: URLSearchParams): FileQuery {
  return {
    limit: pageSize(query.get("limit"), DEFAULT_PAGE, MAX_PAGE),
    order: "desc",
    after: query.get("after_id") ?? query.get("page") ?? undefined,
    before: query.get("before_id") ?? undefined,
  };
}

/** What does not lead to a file of the caller's is left out. */
function namedFiles({ store, owner }: FileAccess, ids: readonly string[]) {
  const different = new Set(ids);
  if (different.size > MAX_IDS) {
    throw new GatewayError(ERRORS.invalidRequest, `ids: at most ${MAX_IDS} are taken.`, { param: "ids" });
  }
  const files = [...different].flatMap((id) => store.find(owner, id) ?? []);
  return { files, hasMore: false };
}
