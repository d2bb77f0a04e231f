// An upload, from the form to the store: a refusal names the field, and then nothing of it stays.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileFacts, StoredFile } from "../files/file-store.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import type { JsonObject } from "../lib/json.ts";
import { checkDeclaredMedia, HEAD_BYTES } from "../media/media-types.ts";
import type { UploadResult } from "../metrics/gateway-events.ts";
import type { Call } from "../server/endpoint.ts";
import { readUpload, type Upload } from "../server/read-upload.ts";
import type { FileAccess } from "./file-access.ts";

export interface UploadParts {
  deadlines: Deadlines;
  now(): number;
  /** An upload is over, and this is what became of it. */
  uploaded(result: UploadResult): void;
}

/** Facts of a file that the other fields of its form give. */
export type SaidOfFile = Pick<FileFacts, "purpose" | "expiresAfterSeconds">;

/** Largest size of a form besides the content of its file. */
const FORM_BYTES = 1024 * 1024;

const MAX_NAME_LENGTH = 255;
const CONTROL = /\p{Cc}/u;
const MEDIA_TYPE = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/;
const UNKNOWN_TYPE = "application/octet-stream";

/** `readFields` reads the fields around the file; it throws 400 for what is wrong with them. */
export async function receiveFile(
  call: Pick<Call, "request" | "context">,
  access: FileAccess,
  parts: UploadParts,
  readFields: (fields: JsonObject) => SaidOfFile,
): Promise<StoredFile> {
  try {
    const file = await received(call, access, parts, readFields);
    parts.uploaded("stored");
    return file;
  } catch (error) {
    parts.uploaded(error instanceof GatewayError && error.status < 500 ? "refused" : "failed");
    throw error;
  }
}

async function received(
  { request, context }: Pick<Call, "request" | "context">,
  { store, owner }: FileAccess,
  { deadlines, now }: UploadParts,
  readFields: (fields: JsonObject) => SaidOfFile,
): Promise<StoredFile> {
  const { files, timeouts } = context.settings;
  const { max_file_size: maxFileBytes, max_total_size: maxTotalBytes } = files;
  const maxBytes = maxFileBytes + FORM_BYTES;
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) {
    throw new GatewayError(
      ERRORS.payloadTooLarge,
      `The file is larger than ${maxFileBytes} bytes, which files.max_file_size allows.`,
      { param: "file" },
    );
  }
  const incoming = store.receive({ maxFileBytes, maxTotalBytes });
  try {
    const options = { deadlines, now, timeoutMs: timeouts.request_body, maxBytes };
    const head = new Uint8Array(HEAD_BYTES);
    let headBytes = 0;
    const { fields, file } = await readUpload(request, options, {
      write(piece) {
        const more = piece.subarray(0, HEAD_BYTES - headBytes);
        head.set(more, headBytes);
        headBytes += more.length;
        return incoming.write(piece);
      },
    });
    const said = readFields(fields);
    const checked = checkedFile(file);
    checkDeclaredMedia(checked.mediaType, head.subarray(0, headBytes), "file");
    return await incoming.finish({ owner, ...said, ...checked });
  } finally {
    incoming.discard();
  }
}

function checkedFile(file: Upload["file"]): Pick<FileFacts, "filename" | "mediaType"> {
  if (file === undefined) throw refusal("file", "is missing: a part of the form with this name and a filename");
  const { name, filename, contentType } = file;
  if (name !== "file")
    throw refusal(shown(name), "is not the name that the file of the form must have, which is 'file'");
  if (filename === "") throw refusal("file", "has no filename");
  if (filename.length > MAX_NAME_LENGTH) {
    throw refusal("file", `has a filename of more than ${MAX_NAME_LENGTH} characters`);
  }
  if (/[/\\]/.test(filename) || filename === "." || filename === ".." || CONTROL.test(filename)) {
    throw refusal("file", "has a filename with a path or control characters; give the name alone");
  }
  return { filename, mediaType: mediaTypeOf(contentType) };
}

/** It is sent again as it is, so it must be one. */
function mediaTypeOf(contentType: string | undefined): string {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return MEDIA_TYPE.test(type) ? type : UNKNOWN_TYPE;
}

/** A field that the form may have once. */
export function textField(fields: JsonObject, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || typeof value === "string") return value;
  throw refusal(name, "stands more than once");
}

/** Throws 400 for what is no number of seconds within these bounds. */
export function secondsField(
  fields: JsonObject,
  name: string,
  { minimum, maximum }: { minimum: number; maximum: number },
): number | undefined {
  const text = textField(fields, name);
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum) return Number(text);
  throw refusal(name, `must be an integer from ${minimum} to ${maximum}, in seconds`);
}

export function refusal(param: string, what: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param} ${what}.`, { param });
}

function shown(name: string): string {
  return name.slice(0, 64);
}
