// A wire format as the registry lists it: what of it there is.

import type { BackendProtocol, ClientProtocol, PassThrough } from "./protocol.ts";
import type { StreamJoin } from "./stream-join.ts";

export interface Format {
  /** Clients may speak it. */
  client?: ClientProtocol;
  /** Backends are spoken to in it, whatever their clients speak. */
  backend?: BackendProtocol;
  passing: PassThrough;
  /** How two of its streams become one; left out where they cannot. */
  join?: StreamJoin;
}
