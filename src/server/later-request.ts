// A request that a part of the gateway makes for a caller who asked for it earlier: without a connection, and without a secret.

import type { CallerReference } from "../access/caller-reference.ts";
import type { VendorTurn } from "../batches/vendor/vendor-turn.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { Server } from "./listener.ts";

export interface LaterRequest {
  creator: CallerReference;
  /** The class of the request in the queue. */
  queueClass: string;
  /** A vendor's own batch may answer it, or has. */
  vendorTurn: VendorTurn | undefined;
  /** The answer is over, and everything is known of it; the record lets go of its usage afterwards. */
  over(record: RequestRecord): void;
}

/** The server, for code that asks it for the address of the client. */
export function withoutListener(address: string | undefined): Server {
  return {
    requestIP: () => (address === undefined ? null : { address, port: 0, family: "IPv4" }),
    timeout() {},
  } as unknown as Server;
}

/** Milliseconds of the Retry-After that the gateway itself writes, in seconds. */
export function retryAfterOf(headers: Headers): number | undefined {
  const seconds = headers.get("retry-after");
  return seconds !== null && /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}
