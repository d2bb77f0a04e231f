// What a request brings or names besides text, told by every client format in the same words.

import { isObject, type JsonObject } from "../lib/json.ts";
import { isDataUrl } from "../media/data-url.ts";

/** Where something stands in a body: the names and indexes that lead there. */
export type BodyPath = readonly (string | number)[];

export interface Attachment {
  /** A data URL or base64, an address, or the id of a file. */
  kind: "data" | "link" | "file-id";
  /** What the place is for; "other": sound and video. */
  place: "image" | "document" | "other";
  value: string;
  /** Of base64 without a URL around it; "" where the client did not say. */
  mediaType?: string;
  /** The part that holds it. */
  at: BodyPath;
  /** The client's own name of the field. */
  param: string;
}

/** The content of a file that a request only named. */
export interface FileContent {
  filename: string;
  /** Proven by the content; one of the types that files may have. */
  mediaType: string;
  bytes: Uint8Array;
}

/** Most requests are text alone: they share this one. */
export const NO_ATTACHMENTS: readonly Attachment[] = [];

/** What was found on a walk, and where the walk is. */
export class AttachmentWalk {
  #found: Attachment[] | undefined;

  get found(): readonly Attachment[] {
    return this.#found ?? NO_ATTACHMENTS;
  }

  /** @param field - behind the part, with dots */
  add(at: BodyPath, field: string, attachment: Pick<Attachment, "kind" | "place" | "value" | "mediaType">): void {
    this.#found ??= [];
    this.#found.push({ ...attachment, at, param: paramAt(at, field) });
  }

  /** A field that holds a data URL or an address; anything else is none of the walk's business. */
  addUrl(at: BodyPath, field: string, place: Attachment["place"], url: unknown): void {
    if (typeof url === "string") this.add(at, field, { kind: isDataUrl(url) ? "data" : "link", place, value: url });
  }

  addId(at: BodyPath, field: string, place: Attachment["place"], id: unknown): void {
    if (typeof id === "string") this.add(at, field, { kind: "file-id", place, value: id });
  }
}

/** input[0].content[1].file_id */
function paramAt(at: BodyPath, field: string): string {
  let param = "";
  for (const step of at) param += typeof step === "number" ? `[${step}]` : param === "" ? step : `.${step}`;
  return `${param}.${field}`;
}

export function toBase64({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("base64");
}

export function fileDataUrl({ mediaType, bytes }: FileContent): string {
  return `data:${mediaType};base64,${toBase64(bytes)}`;
}

/** A text file for those who have no place for one, as text with its name. */
export function titledText({ filename, bytes }: FileContent): string {
  return `${filename}:\n\n${new TextDecoder().decode(bytes)}`;
}

export function partAt(value: JsonObject, at: BodyPath): JsonObject {
  let part: unknown = value;
  for (const step of at) part = (part as Record<string | number, unknown>)[step];
  return part as JsonObject;
}

/** The value with another part in its place; all that does not lead there is shared. */
export function withPart(value: JsonObject, at: BodyPath, part: JsonObject): JsonObject {
  return replaced(value, at, 0, part) as JsonObject;
}

function replaced(value: unknown, at: BodyPath, depth: number, part: JsonObject): unknown {
  const step = at[depth];
  if (step === undefined) return part;
  if (Array.isArray(value)) {
    const copy: unknown[] = [...value];
    copy[step as number] = replaced(value[step as number], at, depth + 1, part);
    return copy;
  }
  if (!isObject(value)) return value;
  return { ...value, [step]: replaced(value[step], at, depth + 1, part) };
}
