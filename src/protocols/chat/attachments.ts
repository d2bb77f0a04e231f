// What a chat request brings or names besides text: pictures, files, sound and video in its messages.

import { isObject, type JsonObject } from "../../lib/json.ts";
import {
  type Attachment,
  AttachmentWalk,
  type BodyPath,
  type FileContent,
  fileDataUrl,
  NO_ATTACHMENTS,
  titledText,
} from "../attachments.ts";
import { isAddress, mediaTypeOfFile } from "./media.ts";

/** The members count, not the type: some engines look for them whatever a part is called. */
const URL_FIELDS: readonly (readonly [field: string, place: Attachment["place"]])[] = [
  ["image_url", "image"],
  ["audio_url", "other"],
  ["video_url", "other"],
];

export function attachmentsOf({ messages }: JsonObject): readonly Attachment[] {
  if (!Array.isArray(messages)) return NO_ATTACHMENTS;
  let walk: AttachmentWalk | undefined;
  for (let index = 0; index < messages.length; index++) {
    const content: unknown = messages[index]?.content;
    if (!Array.isArray(content)) continue;
    for (let place = 0; place < content.length; place++) {
      const part: unknown = content[place];
      if (!isObject(part) || part.type === "text") continue;
      walk ??= new AttachmentWalk();
      addPart(walk, part, ["messages", index, "content", place]);
    }
  }
  return walk?.found ?? NO_ATTACHMENTS;
}

function addPart(walk: AttachmentWalk, part: JsonObject, at: BodyPath): void {
  for (const [field, place] of URL_FIELDS) {
    const holder = part[field];
    walk.addUrl(at, isObject(holder) ? `${field}.url` : field, place, isObject(holder) ? holder.url : holder);
  }
  const { file } = part;
  if (!isObject(file)) return;
  walk.addId(at, "file.file_id", "document", file.file_id);
  const { file_data: data } = file;
  if (typeof data !== "string") return;
  if (isAddress(data)) walk.addUrl(at, "file.file_data", "document", data);
  else {
    const mediaType = mediaTypeOfFile(file.filename);
    walk.add(at, "file.file_data", { kind: "data", place: "document", value: data, mediaType });
  }
}

/** Of files, chat backends read PDFs; pictures and texts have parts of their own. */
export function withFile({ file: _, ...part }: JsonObject, file: FileContent): JsonObject {
  const { mediaType, filename } = file;
  if (mediaType.startsWith("image/")) return { ...part, type: "image_url", image_url: { url: fileDataUrl(file) } };
  if (mediaType === "text/plain") return { ...part, type: "text", text: titledText(file) };
  return { ...part, type: "file", file: { filename, file_data: fileDataUrl(file) } };
}
