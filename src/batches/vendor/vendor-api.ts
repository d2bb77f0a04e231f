// What the batches ask of the vendors behind backends (src/vendor-batches): to take a group of lines as a batch of theirs, and to
// answer it.

import type { VendorAddress } from "./vendor-turn.ts";

/** Lines that a vendor gets as one batch. */
export interface VendorGroup extends VendorAddress {
  /** No other group has it; 1 to 50 letters, digits, '_' and '-'. The ids of the lines begin with it. */
  name: string;
  lines: number;
}

/** Bytes of a line: its place in the batch, a tabulator, and the body of the request without line ends. */
export type SpooledLine = Uint8Array;

/** Called when they are sent, so that the lines of one group at a time are in memory. */
type ReadLines = () => Promise<readonly SpooledLine[]>;

export interface VendorResult {
  position: number;
  /** Undefined: the vendor has none, because its batch has expired, was cancelled, or could not ask the model. */
  answer: { status: number; body: Uint8Array } | undefined;
}

/** The vendor does not take the batch, or does not have it any more: it is not asked for it again. */
export class VendorRefusal extends Error {
  /** It is the gateway's credential that the vendor does not accept. */
  readonly isOfCredential: boolean;

  constructor(message: string, isOfCredential = false) {
    super(message);
    this.isOfCredential = isOfCredential;
  }
}

/** The vendor cannot be asked at the moment: another time it will answer. */
export class VendorTrouble extends Error {
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** What upload() and create() have given. */
export interface KeptAtVendor {
  uploaded?: string | undefined;
  id?: string | undefined;
}

/** Everything rejects with a VendorRefusal or a VendorTrouble, or with the reason of the signal. */
export interface VendorBatchApi {
  /** Uploads the lines; what it resolves to is given to create(). Nothing is begun by it. */
  upload(group: VendorGroup, lines: ReadLines, signal: AbortSignal): Promise<string>;
  /** The vendor's id of the batch, which has begun. After a VendorTrouble it may have begun all the same. */
  create(group: VendorGroup, uploaded: string, lines: ReadLines, signal: AbortSignal): Promise<string>;
  /**
   * The batch that an earlier create() has begun, whose answer was lost; undefined: there is none. A vendor that cannot name its
   * batches is asked until none of those that it may be is under way.
   * @param sinceMs - a Unix time before the batch was created
   */
  find(group: VendorGroup, sinceMs: number, signal: AbortSignal): Promise<string | undefined>;
  /** Whether the batch is over. */
  isOver(group: VendorGroup, id: string, signal: AbortSignal): Promise<boolean>;
  /** In any order; a line that has no result does not come. */
  results(group: VendorGroup, id: string, signal: AbortSignal): AsyncIterable<VendorResult>;
  cancel(group: VendorGroup, id: string, signal: AbortSignal): Promise<void>;
  /** What the vendor keeps of the group is not needed any more. */
  forget(group: VendorGroup, kept: KeptAtVendor, signal: AbortSignal): Promise<void>;
}
