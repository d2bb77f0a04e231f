// Uploads while they arrive: each a file of its own in a folder for such, hashed on the way, and gone unless it is finished.

import { close, fsync, open, unlink, write } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Arrived } from "./content-storage.ts";
import type { FileFacts, IncomingFile, StoredFile, UploadLimits } from "./file-store.ts";
import { storageTrouble } from "./storage-trouble.ts";

const openFile = promisify(open);
const closeFile = promisify(close);
const removeFile = promisify(unlink);
const syncFile = promisify(fsync);
const writeFile: (
  descriptor: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
) => Promise<{ bytesWritten: number }> = promisify(write);

interface SpoolParts {
  folder: string;
  newId(): string;
  /** Bytes of the files that are stored. */
  storedBytes(): number;
  /** Afterwards nothing of it lies at its path; `listed` is called in the moment in which it begins to count as stored. */
  store(arrived: Arrived, facts: FileFacts, limits: UploadLimits, listed: () => void): Promise<StoredFile>;
  /** An upload has come to its end, whatever that was. */
  ended(): void;
}

/** Shared by the uploads of one store. */
interface Spool extends SpoolParts {
  /** Bytes of all uploads under way. */
  arriving: number;
}

/** The returned function begins an upload. */
export function createSpool(parts: SpoolParts): (limits: UploadLimits) => IncomingFile {
  const spool: Spool = { ...parts, arriving: 0 };
  return (limits) => new SpooledFile(spool, limits);
}

class SpooledFile implements IncomingFile {
  readonly #spool: Spool;
  readonly #limits: UploadLimits;
  readonly #id: string;
  readonly #path: string;
  readonly #hash = new Bun.CryptoHasher("sha256");
  /** Everything that is to happen with the file happens in this order. */
  #last: Promise<unknown> = Promise.resolve();
  #descriptor: number | undefined;
  #bytes = 0;
  #failure: GatewayError | undefined;
  #state: "arriving" | "finishing" | "over" = "arriving";

  constructor(spool: Spool, limits: UploadLimits) {
    this.#spool = spool;
    this.#limits = limits;
    this.#id = spool.newId();
    this.#path = join(spool.folder, this.#id);
  }

  /** Waits for the disk, so that a quick client cannot fill the memory, and no other request waits with it. */
  write(piece: Uint8Array): Promise<void> {
    return this.#inOrder(async () => {
      this.#checkOpen();
      this.#bytes += piece.byteLength;
      this.#spool.arriving += piece.byteLength;
      this.#checkLimits();
      this.#hash.update(piece);
      const descriptor = await this.#opened();
      for (let offset = 0; offset < piece.byteLength; ) {
        const { bytesWritten } = await writeFile(descriptor, piece, offset, piece.byteLength - offset);
        offset += bytesWritten;
      }
    });
  }

  finish(facts: FileFacts): Promise<StoredFile> {
    return this.#inOrder(async () => {
      this.#checkOpen();
      this.#state = "finishing";
      await syncFile(await this.#opened());
      await this.#closed();
      const arrived = { id: this.#id, path: this.#path, bytes: this.#bytes, sha256: this.#hash.digest("hex") };
      return await this.#spool.store(arrived, facts, this.#limits, () => this.#end());
    });
  }

  discard(): void {
    if (this.#state !== "arriving") return;
    this.#end();
    this.#last = this.#last.then(() => this.#removed());
  }

  /** A step that fails leaves nothing of the file. */
  #inOrder<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(step).catch(async (error) => {
      this.#failure ??= storageTrouble(error);
      this.#end();
      await this.#removed();
      throw this.#failure;
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  #checkOpen(): void {
    if (this.#state !== "arriving") throw this.#failure ?? new Error("the upload is over already");
  }

  #checkLimits(): void {
    const { maxFileBytes, maxTotalBytes } = this.#limits;
    if (this.#bytes > maxFileBytes) {
      throw tooLarge(`The file is larger than ${maxFileBytes} bytes, which files.max_file_size allows.`);
    }
    if (maxTotalBytes > 0 && this.#spool.storedBytes() + this.#spool.arriving > maxTotalBytes) {
      throw noRoom(maxTotalBytes);
    }
  }

  async #opened(): Promise<number> {
    this.#descriptor ??= await openFile(this.#path, "wx", 0o600);
    return this.#descriptor;
  }

  async #closed(): Promise<void> {
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    if (descriptor !== undefined) await closeFile(descriptor);
  }

  #end(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#spool.arriving -= this.#bytes;
    this.#spool.ended();
  }

  async #removed(): Promise<void> {
    await this.#closed().catch(() => {}); // what was written does not count any more
    // It may never have come to a file; where the disk takes no change the next start removes it.
    await removeFile(this.#path).catch(() => {});
  }
}

export function noRoom(maxTotalBytes: number): GatewayError {
  const message =
    `There is no room for the file: all files together may have ${maxTotalBytes} bytes (files.max_total_size). ` +
    "Delete files that are no longer needed.";
  return tooLarge(message);
}

function tooLarge(message: string): GatewayError {
  return new GatewayError(ERRORS.payloadTooLarge, message, { param: "file" });
}
