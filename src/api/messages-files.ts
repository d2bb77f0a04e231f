// /anthropic/v1/files: the same files as files.ts, in the shapes of the Messages API. The header anthropic-beta may be sent
// or not.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { StoredFile } from "../files/file-store.ts";
import { queryParameter } from "../openapi/operation.ts";
import type { FileAccess } from "./file-access.ts";
import type { FileDialect } from "./file-routes.ts";
import { secondsField } from "./file-upload.ts";

const MAX_IDS = 100;

/** The purpose of files of clients that know none. */
const PURPOSE = "user_data";

/** The bounds of expires_in_seconds. */
const EXPIRY_SECONDS = { minimum: 3600, maximum: 90 * 86_400 };

export const MESSAGES_FILES: FileDialect = {
  path: "/anthropic/v1/files",
  name: "MessagesFile",
  listSummary: "The caller's files, the newest first",
  listParameters: [
    queryParameter("after_id", "Only files behind this one."),
    queryParameter("before_id", "Only files in front of this one."),
    queryParameter("page", "next_page of the page before."),
    queryParameter("ids[]", `Only these files, at most ${MAX_IDS}; for each one again.`),
  ],
  pageSize: { usual: 20, most: 1000 },
  readFields: (fields) => ({
    purpose: PURPOSE,
    expiresAfterSeconds: secondsField(fields, "expires_in_seconds", EXPIRY_SECONDS),
  }),
  find(access, query, limit) {
    const ids = query.getAll("ids[]");
    if (ids.length > 0) return namedFiles(access, ids);
    const after = query.get("after_id") ?? query.get("page") ?? undefined;
    return access.store.list(access.owner, {
      limit,
      order: "desc",
      after,
      before: query.get("before_id") ?? undefined,
    });
  },
  toFile: toMetadata,
  toList({ files, hasMore }, data, query) {
    const last = files.at(-1)?.id ?? null;
    return {
      data,
      first_id: files[0]?.id ?? null,
      last_id: last,
      has_more: hasMore,
      // How newer clients ask for more.
      next_page: hasMore && !query.has("before_id") ? last : null,
    };
  },
  toDeleted: (id) => ({ id, type: "file_deleted" }),
};

/** FileMetadata of Anthropic's Files API. */
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

/** Ids that lead to no file of the caller are left out. */
async function namedFiles({ store, owner }: FileAccess, ids: readonly string[]) {
  const different = new Set(ids);
  if (different.size > MAX_IDS) {
    throw new GatewayError(ERRORS.invalidRequest, `ids: at most ${MAX_IDS} are taken.`, { param: "ids" });
  }
  const found = await Promise.all([...different].map((id) => store.find(owner, id)));
  const files = found.filter((file) => file !== undefined);
  return { files, hasMore: false };
}
