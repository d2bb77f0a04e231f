// The content of a stored file as an answer: all of it, the range that was asked for, or that the client has it already
// (RFC 9110, 13 and 14). Files are strangers' bytes: no browser may show one as a page of the gateway's.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileStore, StoredFile } from "../files/file-store.ts";
import type { Call } from "../server/endpoint.ts";

/** Where a range begins, and behind which byte it ends. */
interface ByteRange {
  start: number;
  end: number;
}

export async function contentAnswer(
  { request, headers: common }: Pick<Call, "request" | "headers">,
  store: Pick<FileStore, "content">,
  file: StoredFile,
): Promise<Response> {
  const asked = request.headers;
  const tag = `"${file.sha256}"`;
  const headers: Record<string, string> = {
    ...common,
    ETag: tag,
    "Accept-Ranges": "bytes",
    "Cache-Control": "private",
  };
  if (namesTag(asked.get("if-none-match"), tag)) return new Response(null, { status: 304, headers });
  headers["Content-Type"] = file.mediaType;
  headers["Content-Disposition"] = disposition(file.filename);
  headers["X-Content-Type-Options"] = "nosniff";
  headers["Content-Security-Policy"] = "default-src 'none'; sandbox";
  if (request.method === "HEAD") {
    headers["Content-Length"] = String(file.bytes);
    return new Response(null, { headers });
  }
  const range = rangeOf(asked, tag, file.bytes, headers);
  if (range === undefined) {
    const content = await store.content(file, 0, file.bytes);
    if (!(content instanceof Blob)) headers["Content-Length"] = String(file.bytes);
    return new Response(asked.has("range") ? unranged(content) : content, { headers });
  }
  headers["Content-Range"] = `bytes ${range.start}-${range.end - 1}/${file.bytes}`;
  const content = await store.content(file, range.start, range.end);
  if (!(content instanceof Blob)) headers["Content-Length"] = String(range.end - range.start);
  return new Response(content, { status: 206, headers });
}

/** Undefined: everything is to be sent. Throws 416 for a range of which the file has nothing. */
function rangeOf(asked: Headers, tag: string, bytes: number, headers: Record<string, string>): ByteRange | undefined {
  const text = asked.get("range");
  if (text === null) return undefined;
  // A time, or the tag of other bytes, or a weak one, means: only what is the same may be continued.
  const condition = asked.get("if-range");
  if (condition !== null && condition.trim() !== tag) return undefined;
  const range = readRange(text, bytes);
  if (range !== "unsatisfiable") return range;
  const message = `The range lies behind the end of the file, which has ${bytes} bytes.`;
  const { "Accept-Ranges": ranges = "bytes" } = headers;
  throw new GatewayError(ERRORS.rangeNotSatisfiable, message, {
    headers: { "Content-Range": `bytes */${bytes}`, "Accept-Ranges": ranges },
  });
}

/** Undefined for what is no range, or several: a server may send the whole then, which every client must expect. */
export function readRange(text: string, bytes: number): ByteRange | "unsatisfiable" | undefined {
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(text.trim());
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return undefined;
    const start = Math.max(0, bytes - Number(last));
    return start < bytes ? { start, end: bytes } : "unsatisfiable";
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  if (start >= bytes) return "unsatisfiable";
  return { start, end: last === "" ? bytes : Math.min(bytes, Number(last) + 1) };
}

/** True if a list of entity tags has this one. Weak tags are good enough for bytes that the client has. */
function namesTag(list: string | null, tag: string): boolean {
  if (list === null) return false;
  if (list.trim() === "*") return true;
  return list.split(",").some((entry) => entry.trim().replace(/^W\//, "") === tag);
}

/** The runtime takes a range out of a whole file by itself, also where If-Range forbids it: it must not see a file. */
function unranged(content: Blob | ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = (content instanceof Blob ? content.stream() : content).getReader();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Characters that turn the order of others around, which lets "exe.png" be shown of "gnp.exe", and ends of lines. */
const MISLEADING = /[\u202a-\u202e\u2066-\u2069\u2028\u2029]/g;

/** RFC 6266: a name that every client can read, and beside it the true one (RFC 8187) where it is another. */
export function disposition(given: string): string {
  const filename = given.replace(MISLEADING, "_");
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/gu, "_");
  const named = `attachment; filename="${plain}"`;
  return plain === filename ? named : `${named}; filename*=UTF-8''${percentEncoded(filename)}`;
}

/** Lone surrogates are replaced: they have no encoding. */
function percentEncoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/['()*]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}
