// Which store the Files API works on, and whose files a caller sees in it. Another caller's file gets the same answer
// as one that never was.

import { ownerOf } from "../access/owner.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError, unknownFile } from "../errors/gateway-error.ts";
import { FILE_ID_PATTERN, type FileStore, type FilesInUse, isFileId, type StoredFile } from "../files/file-store.ts";
import { text } from "../openapi/json-schema.ts";
import { pathParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";

export interface FileAccess {
  store: FileStore;
  owner: string;
}

/** Statuses of errors of every endpoint that has to do with files; 404 is also for files that are switched off. */
export const OF_FILES = [401, 403, 404, 429, 500, 503] as const;

export const fileParameter = pathParameter("file_id", "Id of a file.", { ...text, pattern: FILE_ID_PATTERN });

/** Throws 404 while files are switched off, and 401 for callers without a key where they need one. */
export async function openFiles({ context }: Pick<Call, "context">, files: FilesInUse): Promise<FileAccess> {
  const { caller, settings } = context;
  const opening = files();
  if (opening === undefined) {
    throw new GatewayError(ERRORS.routeNotFound, "The Files API is switched off (files.enabled).");
  }
  if (settings.files.require_key && caller === undefined) {
    throw new GatewayError(
      ERRORS.invalidApiKey,
      "Files need a valid API key: send it as the header 'Authorization: Bearer <key>' (files.require_key).",
      { headers: { "WWW-Authenticate": "Bearer" } },
    );
  }
  return { store: await opening, owner: ownerOf(caller) };
}

/** Throws 400 for what can be no id, and 404 for a file that the caller does not have. */
export async function requireFile({ store, owner }: FileAccess, id: string): Promise<StoredFile> {
  if (!isFileId(id)) {
    throw new GatewayError(
      ERRORS.malformedFileId,
      "file_id: expected an id that begins with 'file-', as the upload answered it.",
      {
        param: "file_id",
      },
    );
  }
  const file = await store.find(owner, id);
  if (file === undefined) throw unknownFile("file_id");
  return file;
}

/** Throws 404 also when another request deleted it first. */
export async function deleteFile(access: FileAccess, id: string): Promise<void> {
  await requireFile(access, id);
  if (!(await access.store.delete(access.owner, id))) throw unknownFile("file_id");
}
