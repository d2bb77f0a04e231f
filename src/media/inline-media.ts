// Files behind URLs -> base64 inside the request, for backends that fetch nothing themselves.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ContentPart, DocumentPart, ImagePart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { pathTo } from "../lib/json-path.ts";
import { isDataUrl, readDataUrl } from "./data-url.ts";
import type { FetchExternal } from "./fetch-external.ts";
import { type AcceptedMedia, checkBase64Media, refused } from "./media-types.ts";

interface InlineOptions {
  /** The parts that the target cannot hold as URLs; both when left out. */
  kinds?: readonly (ImagePart | DocumentPart)["type"][];
  /** URLs that the target reads by itself, e.g. those of its own vendor's files. */
  keeps?: (url: string) => boolean;
}

interface InlineParts extends InlineOptions {
  fetchExternal: FetchExternal;
  signal?: AbortSignal;
}

type MediaPart = ImagePart | DocumentPart;
type UrlPart = MediaPart & { source: { kind: "url" } };

/** Most different URLs of one request, and most bytes of all their files together. */
const MAX_URLS = 20;
const MAX_TOTAL_BYTES = 48 * 1024 * 1024;

const ALL_KINDS: readonly MediaPart["type"][] = ["image", "document"];

/** True if a part has to be replaced. */
export function needsInlining(request: GenerationRequest, options: InlineOptions = {}): boolean {
  return request.messages.some(({ parts }) => parts.some((part) => hasUrl(part, options)));
}

/**
 * The request with base64 where URLs were; the same object when there is nothing to do. `origin` stays as the client
 * sent it. Throws GatewayError 400 that names the client's field.
 */
export async function inlineMedia(request: GenerationRequest, tools: InlineParts): Promise<GenerationRequest> {
  if (!needsInlining(request, tools)) return request;
  const wanted = urlParts(request, tools);
  if (wanted.size > MAX_URLS) {
    throw new GatewayError(ERRORS.invalidRequest, `The request names more than ${MAX_URLS} files by URL.`);
  }
  // A failure ends the others: nothing is fetched for a request that is refused.
  const abort = new AbortController();
  const signal = tools.signal === undefined ? abort.signal : AbortSignal.any([abort.signal, tools.signal]);
  const budget = { bytesLeft: MAX_TOTAL_BYTES };
  const sources = new Map<string, Base64Source>();
  try {
    const pending = [...wanted].map(async ([key, part]) => {
      sources.set(key, await load(request, part, { ...tools, signal }, budget));
    });
    await Promise.all(pending);
  } finally {
    abort.abort();
  }
  const messages = request.messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => replaced(part, sources, tools)),
  }));
  return { ...request, messages };
}

type Base64Source = Extract<MediaPart["source"], { kind: "base64" }>;

function isUrlPart(part: ContentPart, { kinds = ALL_KINDS, keeps }: InlineOptions): part is UrlPart {
  if ((part.type !== "image" && part.type !== "document") || part.source.kind !== "url") return false;
  return kinds.includes(part.type) && keeps?.(part.source.url) !== true;
}

function hasUrl(part: ContentPart, options: InlineOptions): boolean {
  if (part.type === "tool-result") return part.parts.some((inner) => isUrlPart(inner, options));
  return isUrlPart(part, options);
}

/** Each file once, though several parts may name it. */
function urlParts(request: GenerationRequest, options: InlineOptions): Map<string, UrlPart> {
  const found = new Map<string, UrlPart>();
  for (const { parts } of request.messages) {
    for (const part of parts) {
      for (const inner of part.type === "tool-result" ? part.parts : [part]) {
        if (isUrlPart(inner, options)) found.set(keyOf(inner), inner);
      }
    }
  }
  return found;
}

/** An image and a document of one URL are checked by different rules. */
function keyOf(part: UrlPart): string {
  return `${part.type} ${part.source.url}`;
}

async function load(
  request: GenerationRequest,
  part: UrlPart,
  tools: InlineParts,
  budget: { bytesLeft: number },
): Promise<Base64Source> {
  const { url } = part.source;
  const param = pathTo(request.origin.body, (value) => value === url) ?? "messages";
  const accepted: AcceptedMedia = part.type === "image" ? { kinds: ["image"] } : { plainText: true };
  const spend = (bytes: number) => {
    budget.bytesLeft -= bytes;
    if (budget.bytesLeft < 0) throw refused(param, "the files of the request are too large together.");
  };
  if (isDataUrl(url)) {
    const data = readDataUrl(url, param);
    const mediaType = checkBase64Media(data, param, accepted);
    spend(data.decodedBytes);
    return { kind: "base64", mediaType, data: data.base64 };
  }
  const { signal } = tools;
  const wanted = { url, param, accepted, onBytes: spend, ...(signal !== undefined && { signal }) };
  const file = await tools.fetchExternal(wanted);
  const { buffer, byteOffset, length } = file.bytes;
  return {
    kind: "base64",
    mediaType: file.mediaType,
    data: Buffer.from(buffer, byteOffset, length).toString("base64"),
  };
}

function replaced(part: ContentPart, sources: ReadonlyMap<string, Base64Source>, options: InlineOptions): ContentPart {
  if (part.type === "tool-result") {
    if (!hasUrl(part, options)) return part;
    const parts = part.parts.map((inner) => replaced(inner, sources, options) as typeof inner);
    return { ...part, parts };
  }
  if (!isUrlPart(part, options)) return part;
  const source = sources.get(keyOf(part));
  return source === undefined ? part : { ...part, source };
}
