// A new file that is written in large pieces; errors of the disk reject.

import { type FileHandle, open } from "node:fs/promises";

const PIECE_BYTES = 256 * 1024;

export class BufferedFile {
  readonly #file: FileHandle;
  #pieces: Uint8Array[] = [];
  #buffered = 0;
  #written = 0;

  /** Another file at the path gives way. */
  static async create(path: string): Promise<BufferedFile> {
    return new BufferedFile(await open(path, "w", 0o600));
  }

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Bytes that were appended. */
  get size(): number {
    return this.#written + this.#buffered;
  }

  /** To be awaited before the next one; keeps the bytes themselves. */
  append(bytes: Uint8Array): Promise<void> | undefined {
    this.#pieces.push(bytes);
    this.#buffered += bytes.byteLength;
    return this.#buffered < PIECE_BYTES ? undefined : this.#flush();
  }

  /** Afterwards a power cut loses nothing of it. */
  async finish(): Promise<void> {
    await this.#flush();
    await this.#file.sync();
  }

  async close(): Promise<void> {
    this.#pieces = [];
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#buffered = 0;
    await writeAll(this.#file, bytes, this.#written);
    this.#written += bytes.byteLength;
  }
}

/** Another attempt writes over what a failed one has left. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let offset = 0; offset < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, offset, bytes.byteLength - offset, position + offset);
    offset += bytesWritten;
  }
}
