// Files as JSON Schema, in both shapes, and what their content comes as.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  count,
  described,
  flag,
  list,
  oneOfTexts,
  open,
  orNull,
  ref,
  type Schemas,
  shape,
  text,
  time,
  unixTime,
} from "../openapi/json-schema.ts";
import type { DescribedAnswer } from "../openapi/operation.ts";

const content: JsonSchema = { type: "string", contentMediaType: "application/octet-stream" };
const fileObject: JsonSchema = { const: "file" };
const mostSeconds = (maximum: number): JsonSchema => ({ type: "integer", minimum: 3600, maximum });

export const FILE_SCHEMAS: Schemas = {
  FileUpload: open(
    { file: content, purpose: described(text, "One of files.allowed_purposes.") },
    {
      "expires_after[anchor]": { const: "created_at" },
      "expires_after[seconds]": mostSeconds(2_592_000),
    },
  ),
  File: shape(
    {
      id: text,
      object: fileObject,
      bytes: count,
      created_at: unixTime,
      filename: text,
      purpose: text,
      status: oneOfTexts("processed"),
    },
    { expires_at: unixTime },
  ),
  FileList: shape({
    object: { const: "list" },
    data: list(ref("File")),
    first_id: orNull(text),
    last_id: orNull(text),
    has_more: flag,
  }),
  FileDeleted: shape({ id: text, object: fileObject, deleted: { const: true } }),
  MessagesFileUpload: open({ file: content }, { expires_in_seconds: mostSeconds(7_776_000) }),
  MessagesFile: shape({
    id: text,
    type: fileObject,
    filename: text,
    mime_type: text,
    size_bytes: count,
    created_at: time,
    downloadable: flag,
    expires_at: orNull(time),
  }),
  MessagesFileList: shape({
    data: list(ref("MessagesFile")),
    first_id: orNull(text),
    last_id: orNull(text),
    has_more: flag,
    next_page: orNull(text),
  }),
  MessagesFileDeleted: shape({ id: text, type: { const: "file_deleted" } }),
};

/** Sent with the media type of the file. */
export const CONTENT_ANSWERS: readonly DescribedAnswer[] = [
  { status: 200, description: "All of it.", types: ["*/*"], headers: ["ETag", "Accept-Ranges", "Content-Disposition"] },
  {
    status: 206,
    description: "The range that was asked for.",
    types: ["*/*"],
    headers: ["ETag", "Content-Range", "Content-Disposition"],
  },
  { status: 304, description: "The client has it already (If-None-Match).", headers: ["ETag"] },
];
