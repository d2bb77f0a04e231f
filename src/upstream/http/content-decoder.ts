// Bodies of backends that compress although they were asked not to.

import type { BodyReceiver } from "../../backends/transport.ts";
import { HttpError } from "./http-error.ts";

type Zlib = typeof import("node:zlib");
type Transform = import("node:stream").Transform;

/** Without zstd, because the runtime takes half of such a body for the whole. */
const CODINGS: Readonly<Record<string, (zlib: Zlib, firstByte: number) => Transform>> = {
  gzip: (zlib) => zlib.createGunzip(),
  "x-gzip": (zlib) => zlib.createGunzip(),
  // Some leave out what it is to be wrapped in, whose first byte ends with the number of the method (RFC 1950, section 2.2).
  deflate: (zlib, firstByte) => (firstByte % 16 === DEFLATE_METHOD ? zlib.createInflate() : zlib.createInflateRaw()),
  br: (zlib) => zlib.createBrotliDecompress(),
};

const DEFLATE_METHOD = 8;

/** Where the compressed bytes come from. */
interface DecoderSource {
  pause(): void;
  resume(): void;
  abort(): void;
}

/** Takes what was compressed, and gives what it was to its reader, no faster than that reads. It begins paused. */
export class ContentDecoder implements BodyReceiver {
  /** Undefined once it has ended. */
  #source: DecoderSource | undefined;
  readonly #reader: BodyReceiver;
  readonly #create: (firstByte: number) => Transform;
  /** From the first byte on. */
  #stream: Transform | undefined;
  #isPaused = true;
  #isOver = false;

  /** @param coding - in lower case. @throws HttpError for one that is not known */
  constructor(coding: string, source: DecoderSource, reader: BodyReceiver) {
    const create = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined;
    if (create === undefined) throw new HttpError("UnsupportedContentEncoding", "The answer's coding is not known.");
    this.#source = source;
    this.#reader = reader;
    this.#create = (firstByte) => create(process.getBuiltinModule("node:zlib"), firstByte); // hardly ever needed
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream?.pause();
    this.#source?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#stream?.resume();
    if (this.#stream?.writableNeedDrain !== true) this.#source?.resume();
  }

  received(piece: Uint8Array): void {
    this.#stream ??= this.#open(piece[0] as number);
    if (!this.#stream.write(piece)) this.#source?.pause();
  }

  ended(): void {
    this.#source = undefined;
    if (this.#stream === undefined) this.#finish();
    else this.#stream.end();
  }

  failed(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source?.abort();
    this.#source = undefined;
    this.#stream?.destroy();
    this.#reader.failed(error);
  }

  #open(firstByte: number): Transform {
    const stream = this.#create(firstByte);
    stream.on("data", (piece: Uint8Array) => this.#reader.received(new Uint8Array(piece)));
    stream.on("drain", () => {
      if (!this.#isPaused) this.#source?.resume();
    });
    stream.on("end", () => this.#finish());
    stream.on("error", () => this.failed(new HttpError("ZlibError", "The answer's body cannot be decoded.")));
    return stream;
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream?.destroy();
    this.#reader.ended();
  }
}
