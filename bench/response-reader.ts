// Reads one HTTP answer after another from raw socket bytes: strict enough that a broken answer cannot pass unnoticed.

const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_FEED = 10;

type State = "head" | "body" | "chunk-size" | "chunk-data" | "chunk-end" | "trailer" | "complete";

export class ResponseReader {
  /** Payload bytes of the running answer, transfer encoding removed. */
  payload = 0;
  private state: State = "head";
  private pending: Buffer | undefined;
  private left = 0;
  private line = "";
  private readonly seen: (payload: Buffer) => void;

  /** @param seen - gets the payload as it comes; the bytes are valid during the call only */
  constructor(seen: (payload: Buffer) => void) {
    this.seen = seen;
  }

  get complete(): boolean {
    return this.state === "complete";
  }

  /** Forget the last answer and await the next one. */
  reset(): void {
    this.payload = 0;
    this.state = "head";
    this.pending = undefined;
    this.line = "";
  }

  /** Takes bytes as they came. Throws at anything but a whole 200. */
  push(data: Buffer): void {
    let position = 0;
    if (this.state === "head") {
      const seen = this.pending ? Buffer.concat([this.pending, data]) : data;
      const end = seen.indexOf(HEAD_END);
      if (end < 0) {
        this.pending = Buffer.from(seen);
        return;
      }
      position = end + HEAD_END.length - (seen.length - data.length);
      this.pending = undefined;
      this.readHead(seen.toString("latin1", 0, end), data.toString("utf8", position, position + 200));
    }
    while (position < data.length) position = this.step(data, position);
  }

  private readHead(head: string, bodyStart: string): void {
    if (!head.startsWith("HTTP/1.1 200")) {
      throw new Error(`answered ${head.slice(0, head.indexOf("\r\n"))}: ${bodyStart}`);
    }
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) {
      this.left = Number(length);
      this.state = this.left > 0 ? "body" : "complete";
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.state = "chunk-size";
    } else {
      throw new Error("answered without content-length or chunked encoding");
    }
  }

  private step(data: Buffer, position: number): number {
    switch (this.state) {
      case "body":
      case "chunk-data": {
        const taken = Math.min(this.left, data.length - position);
        this.payload += taken;
        this.seen(data.subarray(position, position + taken));
        this.left -= taken;
        if (this.left === 0) this.state = this.state === "body" ? "complete" : "chunk-end";
        return position + taken;
      }
      case "chunk-size":
      case "chunk-end":
      case "trailer":
        return this.readLine(data, position);
      default:
        throw new Error("bytes after the end of the answer");
    }
  }

  /** The lines of the chunked encoding: sizes, the empty line after each chunk, and the end. */
  private readLine(data: Buffer, position: number): number {
    const end = data.indexOf(LINE_FEED, position);
    if (end < 0) {
      this.line += data.toString("latin1", position);
      return data.length;
    }
    const line = (this.line + data.toString("latin1", position, end)).trim();
    this.line = "";
    if (this.state === "chunk-end") {
      if (line !== "") throw new Error("a chunk is longer than its size says");
      this.state = "chunk-size";
    } else if (this.state === "chunk-size") {
      this.left = Number.parseInt(line, 16);
      if (Number.isNaN(this.left)) throw new Error(`a chunk has the size ${JSON.stringify(line)}`);
      this.state = this.left > 0 ? "chunk-data" : "trailer";
    } else if (line === "") {
      this.state = "complete";
    }
    return end + 1;
  }
}
