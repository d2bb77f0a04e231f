// What can be asked of one stored file, in whichever dialect: what is known of it, its content, and its end.

import type { FilesInUse, StoredFile } from "../files/file-store.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { deleteFile, fileParameter, OF_FILES, openFiles, requireFile } from "./file-access.ts";
import { contentAnswer } from "./file-content.ts";
import { CONTENT_ANSWERS } from "./file-schemas.ts";

/** The words of one dialect for a file. */
export interface FileDialect {
  /** Of all its files. */
  path: string;
  /** The name of a file in ids of operations and in schemas. */
  name: string;
  toFile(file: StoredFile): object;
  toDeleted(id: string): object;
}

export function oneFileRoutes(files: FilesInUse, { path, name, toFile, toDeleted }: FileDialect): DescribedEndpoint[] {
  const common = { tag: "Files", access: "files", parameters: [fileParameter], errors: [...OF_FILES, 400] } as const;
  const one = `${path}/{file_id}`;
  return [
    {
      ...common,
      method: "GET",
      path: one,
      id: `get${name}`,
      summary: "What is known of a file",
      answers: [jsonAnswer(name, "The file.")],
      async handle(call) {
        const { file_id: id = "" } = call.parameters;
        const file = requireFile(await openFiles(call, files), id);
        return Response.json(toFile(file), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "DELETE",
      path: one,
      id: `delete${name}`,
      summary: "Delete a file",
      answers: [jsonAnswer(`${name}Deleted`, "It is gone.")],
      async handle(call) {
        const { file_id: id = "" } = call.parameters;
        await deleteFile(await openFiles(call, files), id);
        return Response.json(toDeleted(id), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path: `${one}/content`,
      id: `get${name}Content`,
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
