// The content of input messages and tool outputs: parts of the wire and parts of the neutral model.

import type { ContentPart, DocumentPart, ImagePart, MediaSource, TextPart } from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { filled, nonEmptyText, objectOf, objectsOf, textOf } from "../reading.ts";
import { decodeCitation } from "./citations.ts";
import { type EncodedFile, imageUrlOf, parseDataUrl, toDataUrl } from "./wire.ts";

type InputPart = TextPart | ImagePart | DocumentPart;

/** For content that check-input.ts has checked. `param` names it in a refusal. */
export function decodeContent(content: unknown, param: string): ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return objectsOf(content).map((part, index) => decodePart(part, `${param}[${index}]`));
}

export function decodeOutputContent(content: unknown, param: string): InputPart[] {
  const parts = decodeContent(content, param);
  return parts.map((part, index) => {
    if (part.type === "text" || part.type === "image" || part.type === "document") return part;
    throw invalidField(`${param}[${index}].type`, "the output of a tool holds texts, images and files.");
  });
}

function decodePart(part: JsonObject, param: string): ContentPart {
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      return decodeText(part);
    case "refusal":
      return { type: "refusal", text: textOf(part.refusal) };
    case "input_image":
    case "image_url":
      refuseFileId(part, param);
      return decodeImage(part);
    case "input_file":
      refuseFileId(part, param);
      return decodeFile(part);
    case "input_audio":
      return decodeAudio(part, param);
    default:
      // Left out, the model would answer something else than what was asked.
      throw invalidField(`${param}.type`, `the backend of this model cannot read ${JSON.stringify(part.type)}.`);
  }
}

function refuseFileId({ file_id: id }: JsonObject, param: string): void {
  if (!isPresent(id)) return;
  throw invalidField(
    `${param}.file_id`,
    "the file is not known here, and the request is translated; send the content itself as a base64 data URL, or a URL.",
  );
}

function decodeText(part: JsonObject): TextPart {
  const citations = objectsOf(part.annotations).map(decodeCitation);
  return compact({ type: "text", text: textOf(part.text), citations: filled(citations) });
}

function decodeImage(part: JsonObject): ImagePart {
  const url = imageUrlOf(part) ?? "";
  return compact({
    type: "image",
    source: sourceOf(parseDataUrl(url), url),
    detail: nonEmptyText(part.detail) ?? nonEmptyText(objectOf(part.image_url).detail),
  });
}

function decodeFile(part: JsonObject): DocumentPart | ImagePart {
  const given = parseDataUrl(textOf(part.file_data));
  if (given?.mediaType.startsWith("image/")) return { type: "image", source: { kind: "base64", ...given } };
  return compact({
    type: "document",
    source: sourceOf(given, textOf(part.file_url)),
    title: nonEmptyText(part.filename),
  });
}

function sourceOf(given: EncodedFile | undefined, url: string): MediaSource {
  return given === undefined ? { kind: "url", url } : { kind: "base64", ...given };
}

const AUDIO_TYPES: Readonly<Record<string, string | undefined>> = { mp3: "audio/mpeg", wav: "audio/wav" };

function decodeAudio(part: JsonObject, param: string): ContentPart {
  const { input_audio: audio } = part;
  const mediaType = AUDIO_TYPES[textOf(objectOf(audio).format)];
  if (!isObject(audio) || typeof audio.data !== "string" || mediaType === undefined) {
    throw invalidField(`${param}.input_audio`, 'expected base64 data and the format "mp3" or "wav".');
  }
  return { type: "audio", source: { kind: "base64", mediaType, data: audio.data } };
}

export function encodeInputPart(part: InputPart, dropped: DropList): JsonObject {
  if (part.cache !== undefined) dropped.add("cache_control");
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "image":
      return encodeImage(part);
    case "document":
      return encodeDocument(part, dropped);
  }
}

function encodeImage({ source, detail }: ImagePart): JsonObject {
  if (source.kind === "file") throw foreignFile();
  const url = source.kind === "url" ? source.url : toDataUrl(source.mediaType, source.data);
  return { type: "input_image", image_url: url, detail: detail ?? "auto" };
}

const FILE_NAMES: Readonly<Record<string, string | undefined>> = { "application/pdf": "document.pdf" };

function encodeDocument({ source, title, context, citations }: DocumentPart, dropped: DropList): JsonObject {
  if (context !== undefined) dropped.add("context of documents");
  if (citations === true) dropped.add("citations of documents");
  switch (source.kind) {
    case "file":
      throw foreignFile();
    case "url":
      return { type: "input_file", file_url: source.url };
    case "base64": {
      // Plain text is no file for most backends, but every one of them reads text.
      if (source.mediaType.startsWith("text/")) {
        const text = Buffer.from(source.data, "base64").toString("utf8");
        return { type: "input_text", text: title === undefined ? text : `${title}:\n\n${text}` };
      }
      const filename = title ?? FILE_NAMES[source.mediaType] ?? "document";
      return { type: "input_file", filename, file_data: toDataUrl(source.mediaType, source.data) };
    }
  }
}

/** Files are held by one vendor; their ids mean nothing to another. */
function foreignFile(): Error {
  return invalidField(
    "messages",
    "file_id: the file is not known to the backend of this model; send its content instead.",
  );
}
