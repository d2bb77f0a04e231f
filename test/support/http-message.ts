// Parsing of HTTP/1.1 messages from raw bytes, for the scripted backend and the raw client.

export interface HttpHead {
  startLine: string;
  /** In the order and spelling of the wire. */
  rawHeaders: [name: string, value: string][];
  /** Lower-case names; repeated ones are joined by ", ". */
  headers: Record<string, string>;
  /** Bytes of the head, blank line included. */
  length: number;
}

/** The head at the beginning of the bytes, or undefined when its blank line has not arrived. */
export function parseHead(bytes: Buffer): HttpHead | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [startLine = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const rawHeaders = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const headers: Record<string, string> = {};
  for (const [name, value] of rawHeaders) {
    const key = name.toLowerCase();
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
  }
  return { startLine, rawHeaders, headers, length: end + 4 };
}

export interface HttpBody {
  body: Buffer;
  /** Bytes it took on the wire. */
  length: number;
}

/** The body that begins at `offset`, or undefined when it has not arrived whole. */
export function parseBody(bytes: Buffer, offset: number, headers: Record<string, string>): HttpBody | undefined {
  if (headers["transfer-encoding"]?.toLowerCase().includes("chunked")) return parseChunked(bytes, offset);
  const length = Number(headers["content-length"] ?? 0);
  if (bytes.length < offset + length) return undefined;
  return { body: bytes.subarray(offset, offset + length), length };
}

function parseChunked(bytes: Buffer, offset: number): HttpBody | undefined {
  const pieces: Buffer[] = [];
  let position = offset;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", position);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", position, lineEnd), 16);
    const start = lineEnd + 2;
    if (bytes.length < start + size + 2) return undefined;
    position = start + size + 2;
    if (size === 0) return { body: Buffer.concat(pieces), length: position - offset };
    pieces.push(bytes.subarray(start, start + size));
  }
}

/** Whatever of a chunked body has arrived, whole or not; for looking at broken answers. */
export function parsePartialChunked(bytes: Buffer): { body: Buffer; complete: boolean } {
  const pieces: Buffer[] = [];
  let position = 0;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", position);
    if (lineEnd < 0) return { body: Buffer.concat(pieces), complete: false };
    const size = Number.parseInt(bytes.toString("latin1", position, lineEnd), 16);
    const start = lineEnd + 2;
    if (size === 0) return { body: Buffer.concat(pieces), complete: bytes.length >= start + 2 };
    pieces.push(bytes.subarray(start, Math.min(bytes.length, start + size)));
    if (bytes.length < start + size + 2) return { body: Buffer.concat(pieces), complete: false };
    position = start + size + 2;
  }
}
