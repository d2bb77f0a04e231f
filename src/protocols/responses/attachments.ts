// What a Responses request brings or names besides text: pictures and files in its messages and in outputs of tools.

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
import { invalidField } from "../fields.ts";

const MEMBERS = ["content", "output"] as const;

const TEXTS: ReadonlySet<unknown> = new Set(["input_text", "output_text", "text", "refusal"]);

export function attachmentsOf({ input }: JsonObject): readonly Attachment[] {
  if (!Array.isArray(input)) return NO_ATTACHMENTS;
  let walk: AttachmentWalk | undefined;
  for (let index = 0; index < input.length; index++) {
    const item: unknown = input[index];
    if (!isObject(item)) continue;
    for (const member of MEMBERS) {
      const parts = item[member];
      // The screenshot of a computer is one part, not a list.
      if (isObject(parts)) {
        walk ??= new AttachmentWalk();
        addPart(walk, parts, ["input", index, member]);
      }
      if (!Array.isArray(parts)) continue;
      for (let place = 0; place < parts.length; place++) {
        const part: unknown = parts[place];
        if (!isObject(part) || TEXTS.has(part.type)) continue;
        walk ??= new AttachmentWalk();
        addPart(walk, part, ["input", index, member, place]);
      }
    }
  }
  return walk?.found ?? NO_ATTACHMENTS;
}

function addPart(walk: AttachmentWalk, part: JsonObject, at: BodyPath): void {
  const { type, file_id: id, file_data: data, file_url: url, image_url: image } = part;
  walk.addId(at, "file_id", type === "input_file" ? "document" : "image", id);
  // Anything but a data URL was refused when the request was read.
  walk.addUrl(at, "file_data", "document", data);
  walk.addUrl(at, "file_url", "document", url);
  walk.addUrl(at, isObject(image) ? "image_url.url" : "image_url", "image", isObject(image) ? image.url : image);
}

/** Where any file may stand, a picture and a text become parts of their own, which every backend reads. */
export function withFile({ file_id: _, ...part }: JsonObject, file: FileContent, param: string): JsonObject {
  const { mediaType, filename } = file;
  const isImage = mediaType.startsWith("image/");
  if (part.type !== "input_file") {
    if (isImage) return { ...part, image_url: fileDataUrl(file) };
    throw invalidField(param, `the file is of type ${mediaType}, and no picture; name it in an input_file.`);
  }
  if (isImage) return { type: "input_image", image_url: fileDataUrl(file), detail: "auto" };
  if (mediaType === "text/plain") return { type: "input_text", text: titledText(file) };
  return { ...part, filename, file_data: fileDataUrl(file) };
}
