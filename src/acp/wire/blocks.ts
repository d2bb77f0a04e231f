// Content blocks of a prompt -> parts of a message, in ACP's form and in Signalbox's own.

import type { ContentPart, MediaSource } from "../../generation/content.ts";
import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { firstGiven, optionalText, requiredText } from "../params.ts";
import { invalidParams, shortened } from "../rpc-error.ts";

type Decode = (block: JsonObject, field: string) => ContentPart;

const DECODERS: Readonly<Record<string, Decode>> = {
  text: (block, field) => ({ type: "text", text: requiredText(block, "text", `${field}.text`) }),
  image: (block, field) => ({ type: "image", source: mediaOf(block, field, "image/png") }),
  audio: (block, field) => ({ type: "audio", source: mediaOf(block, field, "audio/wav") }),
  resource_link: linkOf,
  resource: (block, field) => {
    // In Signalbox's own form a resource without a `resource` member is a link.
    if (!isPresent(block.resource)) return linkOf(block, field);
    if (!isObject(block.resource)) throw invalidParams(`${field}.resource must be an object.`);
    return embedded(block.resource, `${field}.resource`);
  },
};

/** The first of these members that a block without a type has gives its type. */
const KEYS: readonly (readonly [string, string])[] = [
  ["text", "text"],
  ["data", "image"],
  ["resource", "resource"],
  ["uri", "resource_link"],
];

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const DATA_URL = /^data:([^;,]*);base64,/;

/** @param field - how the client calls the list */
export function decodePrompt(blocks: unknown, field: string): ContentPart[] {
  if (!Array.isArray(blocks)) throw invalidParams(`${field} must be a list of content blocks.`);
  if (blocks.length === 0) throw invalidParams(`${field} is empty: give at least one content block.`);
  return blocks.map((block: unknown, index) => decodeBlock(block, `${field}[${index}]`));
}

function decodeBlock(block: unknown, field: string): ContentPart {
  if (!isObject(block)) throw invalidParams(`${field} must be a content block, e.g. {"type": "text", "text": "..."}.`);
  const type = optionalText(block, "type", `${field}.type`) ?? typeByKey(block);
  const decode = type !== undefined && Object.hasOwn(DECODERS, type) ? DECODERS[type] : undefined;
  if (decode === undefined) {
    const types = Object.keys(DECODERS).join(", ");
    const found = type === undefined ? "is missing" : `is not known ("${shortened(type)}")`;
    throw invalidParams(`${field}.type ${found}: it must be one of ${types}.`);
  }
  return decode(block, field);
}

function typeByKey(block: JsonObject): string | undefined {
  const type = KEYS.find(([key]) => isPresent(block[key]))?.[1];
  return type === "image" && mediaTypeOf(block)?.startsWith("audio/") ? "audio" : type;
}

function mediaTypeOf(block: JsonObject): string | undefined {
  const value = block.mimeType ?? block.mediaType;
  return typeof value === "string" ? value : undefined;
}

function mediaOf(block: JsonObject, field: string, example: string): MediaSource {
  const name = firstGiven(block, ["mimeType", "mediaType"]) ?? "mimeType";
  const given = optionalText(block, name, `${field}.${name}`);
  const data = optionalText(block, "data", `${field}.data`);
  if (data === undefined || data === "") {
    const url = optionalText(block, "uri", `${field}.uri`);
    if (url !== undefined && /^https?:/.test(url)) {
      return { kind: "url", url, ...(given !== undefined && { mediaType: given }) };
    }
    throw invalidParams(`${field}.data is missing: give the bytes as base64.`);
  }
  const prefix = DATA_URL.exec(data);
  const mediaType = given ?? prefix?.[1];
  if (!mediaType) throw invalidParams(`${field}.mimeType is missing: say what the data is, e.g. "${example}".`);
  return { kind: "base64", mediaType, data: base64(prefix === null ? data : data.slice(prefix[0].length), field) };
}

function base64(data: string, field: string): string {
  if (!BASE64.test(data)) throw invalidParams(`${field}.data must be base64, without spaces.`);
  return data;
}

/** A file's link names its path, which the tools take; the editor's own name for it stands before. */
function linkOf(block: JsonObject, field: string): ContentPart {
  const uri = requiredText(block, "uri", `${field}.uri`);
  const name = optionalText(block, "name", `${field}.name`) ?? nameIn(uri);
  const about = ["title", "description"].flatMap((each) => optionalText(block, each, `${field}.${each}`) ?? []);
  const text = `[@${name}](${pathOf(uri) ?? uri})${about.length === 0 ? "" : ` (${about.join(": ")})`}`;
  return { type: "text", text };
}

/** Content that the editor itself has put into the prompt: a file's text or bytes. */
function embedded(resource: JsonObject, field: string): ContentPart {
  const uri = requiredText(resource, "uri", `${field}.uri`);
  const text = optionalText(resource, "text", `${field}.text`);
  if (text !== undefined) {
    const place = (pathOf(uri) ?? uri).replaceAll('"', "%22");
    return { type: "text", text: `<context ref="${place}">\n${text}\n</context>` };
  }
  const blob = optionalText(resource, "blob", `${field}.blob`);
  if (blob === undefined) throw invalidParams(`${field} must have text or blob.`);
  if (!BASE64.test(blob)) throw invalidParams(`${field}.blob must be base64, without spaces.`);
  const mediaType = mediaTypeOf(resource) ?? "application/octet-stream";
  const source: MediaSource = { kind: "base64", mediaType, data: blob };
  if (mediaType.startsWith("image/")) return { type: "image", source };
  if (mediaType.startsWith("audio/")) return { type: "audio", source };
  return { type: "document", source, title: nameIn(uri) };
}

/** Undefined for what is no file of this machine. */
export function pathOf(uri: string): string | undefined {
  if (!uri.startsWith("file://")) return undefined;
  try {
    return Bun.fileURLToPath(new URL(uri));
  } catch {
    return undefined; // a strange one stays as it is
  }
}

function nameIn(uri: string): string {
  const path = pathOf(uri) ?? uri.replace(/[?#].*$/s, "");
  return path.split("/").findLast((part) => part !== "") ?? uri;
}
