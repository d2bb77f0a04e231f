// What a place for the contents of files offers; which files there are is not its business (catalogue.ts).

import type { BucketList } from "./bucket-list.ts";

/** A file that has arrived as a whole and is synced, but is known nowhere yet. */
export interface Arrived {
  id: string;
  path: string;
  bytes: number;
  sha256: string;
}

/** All of it rejects with the error of the storage, where nothing else is said. */
export interface ContentStorage {
  /** The storage cannot be searched for contents without a row: the list notes which there may be. */
  readonly notesLeftovers: boolean;
  /** The list of files that stands beside the contents, for all gateways that use them. */
  readonly list?: BucketList;
  /** Moves the file into the storage; when this resolves, a crash does not lose it. */
  keep(arrived: Arrived, mediaType: string): Promise<void>;
  /** One that is not there is no fault. */
  remove(id: string): Promise<void>;
  /** Undefined: the content is not there, or has another size. */
  slice(id: string, bytes: number, start: number, end: number): Promise<Blob | ReadableStream<Uint8Array> | undefined>;
  /**
   * After a crash: removes contents without a row, and rows without content, as far as they were there before
   * `openedAtMs` or are among the `leftovers` of that moment; what is younger belongs to an upload. `isClosed` ends it
   * early.
   */
  recover(crash: Crash): Promise<Recovered>;
}

export interface Crash {
  openedAtMs: number;
  leftovers: readonly string[];
  isClosed(): boolean;
}

export interface Recovered {
  removedContents: number;
  removedRows: number;
}
