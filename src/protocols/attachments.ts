// What a request brings or names besides text, told by every client format in the same words.

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
