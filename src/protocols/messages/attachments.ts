// What a Messages request brings or names besides text: pictures and documents in its instructions, turns and results of
// tools.

import { isObject, type JsonObject } from "../../lib/json.ts";
import {
  type Attachment,
  AttachmentWalk,
  type BodyPath,
  type FileContent,
  NO_ATTACHMENTS,
  toBase64,
} from "../attachments.ts";
import { invalidField } from "../fields.ts";

/** Results of tools hold blocks, and a document among them blocks again; deeper, the format has none. */
const MAX_DEPTH = 3;

export function attachmentsOf({ system, messages }: JsonObject): readonly Attachment[] {
  let walk = Array.isArray(system) ? addBlocks(undefined, system, ["system"], 1) : undefined;
  if (!Array.isArray(messages)) return walk?.found ?? NO_ATTACHMENTS;
  for (let index = 0; index < messages.length; index++) {
    const content: unknown = messages[index]?.content;
    if (Array.isArray(content)) walk = addBlocks(walk, content, ["messages", index, "content"], 1);
  }
  return walk?.found ?? NO_ATTACHMENTS;
}

function addBlocks(
  walk: AttachmentWalk | undefined,
  blocks: readonly unknown[],
  path: BodyPath,
  depth: number,
): AttachmentWalk | undefined {
  let found = walk;
  for (let place = 0; place < blocks.length; place++) {
    const block = blocks[place];
    if (!isObject(block) || block.type === "text") continue;
    const { source, content } = block;
    if (isObject(source)) {
      found ??= new AttachmentWalk();
      addSource(found, source, [...path, place], block.type === "image" ? "image" : "document");
      if (Array.isArray(source.content) && depth < MAX_DEPTH) {
        found = addBlocks(found, source.content, [...path, place, "source", "content"], depth + 1);
      }
    }
    if (block.type === "tool_result" && Array.isArray(content) && depth < MAX_DEPTH) {
      found = addBlocks(found, content, [...path, place, "content"], depth + 1);
    }
  }
  return found;
}

function addSource(walk: AttachmentWalk, source: JsonObject, at: BodyPath, place: Attachment["place"]): void {
  const { type, url, data, media_type: declared, file_id: id } = source;
  if (type === "url") walk.addUrl(at, "source.url", place, url);
  else if (type === "file") walk.addId(at, "source.file_id", place, id);
  else if (type === "base64" && typeof data === "string") {
    const mediaType = typeof declared === "string" ? declared : "";
    walk.add(at, "source.data", { kind: "data", place, value: data, mediaType });
  }
}

/** The rest of the block stays: its title, its context, whether it is cited and cached. */
export function withFile(block: JsonObject, file: FileContent, param: string): JsonObject {
  const { mediaType, bytes } = file;
  const isImage = mediaType.startsWith("image/");
  if (isImage !== (block.type === "image")) {
    const fitting = isImage ? "image" : "document";
    throw invalidField(param, `the file is of type ${mediaType}; name it in a block of type "${fitting}".`);
  }
  const source =
    mediaType === "text/plain"
      ? { type: "text", media_type: mediaType, data: new TextDecoder().decode(bytes) }
      : { type: "base64", media_type: mediaType, data: toBase64(bytes) };
  return { ...block, source };
}
