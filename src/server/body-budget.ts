// The memory that the bodies of all requests may take together, in one process.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A request, as far as the budget is concerned. */
export interface BodyHolder {
  /** Bytes that it has taken from the budget. */
  heldBytes: number;
}

/** A body is read within milliseconds; what holds the budget for long are waiting requests. */
const RETRY_AFTER_SECONDS = "1";

/** An eighth of the budget is kept for requests that hold no more than this: large bodies do not keep all others out. */
const MAX_SMALL_BYTES = 1024 * 1024;
const SHARE_OF_LARGE = 7 / 8;

export class BodyBudget {
  #heldBytes = 0;

  /** The sum over all requests. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Throws 503 when the budget is used up, and 413 when this request alone is too much for it. */
  take(holder: BodyHolder, byteCount: number, limitBytes: number): void {
    const ownBytes = holder.heldBytes + byteCount;
    const usableBytes = ownBytes > MAX_SMALL_BYTES ? limitBytes * SHARE_OF_LARGE : limitBytes;
    if (ownBytes > usableBytes) {
      throw new GatewayError(
        ERRORS.payloadTooLarge,
        `The request body takes more memory than large bodies may have together (server.max_buffered_bodies: ${limitBytes}).`,
      );
    }
    if (this.#heldBytes + byteCount > usableBytes) {
      throw new GatewayError(
        ERRORS.bodiesExhausted,
        "The bodies of other requests take all the memory that there is for them (server.max_buffered_bodies); try again.",
        { headers: { "Retry-After": RETRY_AFTER_SECONDS } },
      );
    }
    holder.heldBytes = ownBytes;
    this.#heldBytes += byteCount;
  }

  /** Gives back what the request has taken, but for what it still needs. */
  release(holder: BodyHolder, neededBytes = 0): void {
    const { heldBytes } = holder;
    holder.heldBytes = Math.min(heldBytes, neededBytes);
    this.#heldBytes -= heldBytes - holder.heldBytes;
  }
}
