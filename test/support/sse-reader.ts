// Reads an event stream byte for byte, with the time of every piece, and splits it into events afterwards.

export interface SseEvent {
  /** Bytes of the event with its blank line, as text. */
  raw: string;
  /** Joined data lines; undefined for a comment. */
  data: string | undefined;
  event: string | undefined;
  /** Milliseconds since reading began, when the last byte of the event arrived. */
  atMs: number;
}

export interface SseReading {
  bytes: Buffer;
  text: string;
  events: SseEvent[];
  /** Data of the events, comments left out. */
  data: string[];
  /** What stands after the last blank line; empty for a stream of whole events. */
  rest: string;
  /** How the body ended: with its last chunk, or by a broken connection. */
  end: "clean" | "broken";
  chunks: { bytes: Uint8Array; atMs: number }[];
}

/** Reads to the end, whatever kind of end it is. */
export async function readSse(response: Response): Promise<SseReading> {
  const startedMs = performance.now();
  const chunks: SseReading["chunks"] = [];
  let end: SseReading["end"] = "clean";
  try {
    for await (const bytes of response.body ?? []) chunks.push({ bytes, atMs: performance.now() - startedMs });
  } catch {
    end = "broken";
  }
  return { ...splitEvents(chunks), end, chunks };
}

/** What is needed of a stream's reader. */
export interface ByteReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
}

/** Reads until the body holds the given text; the reader stays open for more. */
export async function readUntil(reader: ByteReader, text: string): Promise<string> {
  const decoder = new TextDecoder();
  let seen = "";
  while (!seen.includes(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the stream ended before ${JSON.stringify(text)}; it held ${JSON.stringify(seen)}`);
    seen += decoder.decode(value, { stream: true });
  }
  return seen;
}

export function splitSse(text: string): Pick<SseReading, "events" | "data" | "rest"> {
  const { events, data, rest } = splitEvents([{ bytes: Buffer.from(text), atMs: 0 }]);
  return { events, data, rest };
}

function splitEvents(chunks: SseReading["chunks"]): Pick<SseReading, "bytes" | "text" | "events" | "data" | "rest"> {
  const bytes = Buffer.concat(chunks.map((chunk) => chunk.bytes));
  const events: SseEvent[] = [];
  let start = 0;
  for (;;) {
    const newline = bytes.indexOf("\n\n", start);
    const carriage = bytes.indexOf("\r\n\r\n", start);
    if (newline < 0 && carriage < 0) break;
    const isCarriage = newline < 0 || (carriage >= 0 && carriage < newline);
    const end = isCarriage ? carriage + 4 : newline + 2;
    events.push(parseEvent(bytes.toString("utf8", start, end), arrivalMs(chunks, end)));
    start = end;
  }
  const data = events.flatMap((event) => (event.data === undefined ? [] : [event.data]));
  return { bytes, text: bytes.toString("utf8"), events, data, rest: bytes.toString("utf8", start) };
}

function parseEvent(raw: string, atMs: number): SseEvent {
  const lines = raw.split(/\r?\n/).filter((line) => line !== "");
  const values = (field: string): string[] =>
    lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).replace(/^ /, ""));
  const data = values("data");
  return { raw, data: data.length > 0 ? data.join("\n") : undefined, event: values("event")[0], atMs };
}

function arrivalMs(chunks: SseReading["chunks"], length: number): number {
  let seen = 0;
  for (const chunk of chunks) {
    seen += chunk.bytes.length;
    if (seen >= length) return chunk.atMs;
  }
  return Number.NaN;
}
