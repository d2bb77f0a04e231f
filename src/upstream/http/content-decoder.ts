// Bodies of backends that compress although they were asked not to.

import type { BodyReceiver } from "../../backends/transport.ts";
import { HttpError } from "./http-error.ts";

type Zlib = typeof import("node:zlib");
type Transform = import("node:stream").Transform;

const CODINGS: Readonly<Record<string, (zlib: Zlib) => Transform>> = {
  gzip: (zlib) => zlib.createGunzip(),
  "x-gzip": (zlib) => zlib.createGunzip(),
  deflate: (zlib) => zlib.createInflate(),
  br: (zlib) => zlib.createBrotliDecompress(),
  zstd: (zlib) => zlib.createZstdDecompress(),
};

/** Where the compressed bytes come from. */
interface DecoderSource {
  pause(): void;
  resume(): void;
  abort(): void;
}

/** Takes what was compressed, and gives what it was to its reader, no faster than that reads. */
export class ContentDecoder implements BodyReceiver {
  /** Undefined once it has ended. */
  #source: DecoderSource | undefined;
  readonly #stream: Transform;
  #reader: BodyReceiver | undefined;
  #isEmpty = true;
  #isOver = false;

  /** @param coding - in lower case. @throws HttpError for one that is not known */
  constructor(coding: string, source: DecoderSource) {
    const create = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined;
    if (create === undefined) throw new HttpError("UnsupportedContentEncoding", "The answer's coding is not known.");
    this.#source = source;
    this.#stream = create(process.getBuiltinModule("node:zlib")); // loaded when it is needed, which is hardly ever
    this.#stream.pause();
    this.#stream.on("data", (piece: Uint8Array) => this.#reader?.received(new Uint8Array(piece)));
    this.#stream.on("drain", () => this.#source?.resume());
    this.#stream.on("end", () => this.#finish());
    this.#stream.on("error", () => this.failed(new HttpError("ZlibError", "The answer's body cannot be decoded.")));
  }

  read(reader: BodyReceiver): void {
    this.#reader = reader;
    this.#stream.resume();
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  received(piece: Uint8Array): void {
    this.#isEmpty = false;
    if (!this.#stream.write(piece)) this.#source?.pause();
  }

  ended(): void {
    this.#source = undefined;
    if (this.#isEmpty) this.#finish();
    else this.#stream.end();
  }

  failed(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source?.abort();
    this.#source = undefined;
    this.#stream.destroy();
    this.#reader?.failed(error);
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream.destroy();
    this.#reader?.ended();
  }
}
