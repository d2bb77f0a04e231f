// What a place for the contents of files offers; which files there are is not its business (catalogue.ts).

import type { Catalogue } from "./catalogue.ts";

/** All of it rejects with the error of the storage, where nothing else is said. */
export interface ContentStorage {
  /** Moves a file that is whole and synced into the storage; when this resolves, a crash does not lose it. */
  keep(id: string, incomingPath: string, mediaType: string): Promise<void>;
  /** One that is not there is no fault. */
  remove(id: string): Promise<void>;
  /** Undefined: the content is not there, or has another size. */
  slice(id: string, bytes: number, start: number, end: number): Promise<Blob | ReadableStream<Uint8Array> | undefined>;
  /**
   * After a crash: removes contents without a row, and rows without content, as far as they were there before
   * `openedAtMs`; what is younger belongs to an upload. `isClosed` ends it early.
   */
  recover(catalogue: Catalogue, openedAtMs: number, isClosed: () => boolean): Promise<Recovered>;
}

export interface Recovered {
  removedContents: number;
  removedRows: number;
}
