// What a generateContent request brings or names besides text: files in its turns and in results of functions. fileUri is an
// address, or the id of a file that is kept here.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  type Attachment,
  AttachmentWalk,
  type BodyPath,
  type FileContent,
  NO_ATTACHMENTS,
  toBase64,
} from "../attachments.ts";
import { mediaTypeOf } from "./content-decoder.ts";
import { either } from "./members.ts";

/** Documents whose content is compared with their type; of the others Google reads more than can be told apart here. */
const DOCUMENTS: ReadonlySet<string> = new Set(["application/pdf", "text/plain"]);

/** Google's own storage, which Google alone reads. */
const VENDORS_STORAGE = /^gs:\/\//;

const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;

/** A request to count tokens may hold the whole request that is to be counted. */
const INNER = ["generateContentRequest", "generate_content_request"] as const;

export function attachmentsOf(body: JsonObject): readonly Attachment[] {
  let walk = addContents(undefined, body.contents, ["contents"]);
  for (const name of INNER) {
    const inner = body[name];
    if (isObject(inner)) walk = addContents(walk, inner.contents, [name, "contents"]);
  }
  return walk?.found ?? NO_ATTACHMENTS;
}

function addContents(walk: AttachmentWalk | undefined, contents: unknown, path: BodyPath): AttachmentWalk | undefined {
  if (!Array.isArray(contents)) return addParts(walk, contents, path);
  let found = walk;
  for (let index = 0; index < contents.length; index++) found = addParts(found, contents[index], [...path, index]);
  return found;
}

/** @param holder - a content, or the result of a function: what has parts */
function addParts(walk: AttachmentWalk | undefined, holder: unknown, path: BodyPath): AttachmentWalk | undefined {
  if (!isObject(holder)) return walk;
  const { parts } = holder;
  if (!Array.isArray(parts)) return isObject(parts) ? addPart(walk, parts, [...path, "parts"]) : walk;
  let found = walk;
  for (let place = 0; place < parts.length; place++) {
    const part: unknown = parts[place];
    if (isObject(part) && typeof part.text !== "string") found = addPart(found, part, [...path, "parts", place]);
  }
  return found;
}

function addPart(walk: AttachmentWalk | undefined, part: JsonObject, at: BodyPath): AttachmentWalk | undefined {
  const data = either(part, "inlineData", "inline_data");
  const file = either(part, "fileData", "file_data");
  const found = walk ?? new AttachmentWalk();
  if (isObject(data) && typeof data.data === "string") {
    const mediaType = mediaTypeOf(data) ?? "";
    found.add(at, "inlineData.data", { kind: "data", place: placeOf(mediaType), value: data.data, mediaType });
    return found;
  }
  if (isObject(file)) {
    const uri = either(file, "fileUri", "file_uri");
    const place = placeOf(mediaTypeOf(file) ?? "");
    if (typeof uri !== "string" || VENDORS_STORAGE.test(uri)) return walk;
    if (ADDRESS.test(uri)) found.addUrl(at, "fileData.fileUri", place, uri);
    else found.addId(at, "fileData.fileUri", place, uri);
    return found;
  }
  const name = isPresent(part.functionResponse) ? "functionResponse" : "function_response";
  return addParts(walk, part[name], [...at, name]);
}

function placeOf(mediaType: string): Attachment["place"] {
  if (mediaType.startsWith("image/")) return "image";
  return DOCUMENTS.has(mediaType) ? "document" : "other";
}

/** The rest of the part stays. */
export function withFile(part: JsonObject, { mediaType, bytes }: FileContent): JsonObject {
  const { fileData: _camel, file_data: _snake, ...rest } = part;
  return { ...rest, inlineData: { mimeType: mediaType, data: toBase64(bytes) } };
}
