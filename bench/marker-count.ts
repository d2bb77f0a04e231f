// Counts how often a text stands in bytes that come in arbitrary pieces.

const LINE_FEED = 10;

export class MarkerCount {
  count = 0;
  private readonly marker: Buffer;
  private tail: Buffer | undefined;

  /** @param marker - holds no line feed */
  constructor(marker: string) {
    this.marker = Buffer.from(marker);
  }

  reset(): void {
    this.count = 0;
    this.tail = undefined;
  }

  push(bytes: Buffer): void {
    const { marker } = this;
    const seen = this.tail ? Buffer.concat([this.tail, bytes]) : bytes;
    for (let at = seen.indexOf(marker); at >= 0; at = seen.indexOf(marker, at + marker.length)) this.count++;
    // A copy, as the bytes are the socket's. Behind whole lines, the usual case, nothing can have begun.
    this.tail = seen.at(-1) === LINE_FEED ? undefined : Buffer.from(seen.subarray(1 - marker.length));
  }
}
