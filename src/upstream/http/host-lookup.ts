// Addresses of hosts, kept for a while: node:net asks the system for each connection, which may ask a server.

import type { LookupFunction } from "node:net";
import { BoundedMap } from "../../lib/bounded-map.ts";

/** More than there are backends. */
const MAX_HOSTS = 1_000;
/** As long as fetch keeps them. */
const KEPT_MS = 30_000;

type Addresses = Awaited<ReturnType<typeof addressesOf>>;

/** For the option `lookup` of node:net, which asks for all addresses. */
export function createHostLookup(now: () => number): LookupFunction {
  const known = new BoundedMap<Promise<Addresses>>({
    maxEntries: MAX_HOSTS,
    maxBytes: Number.POSITIVE_INFINITY,
    ttlMs: KEPT_MS,
    now,
  });

  async function ask(host: string): Promise<Addresses> {
    try {
      return await addressesOf(host);
    } catch (error) {
      known.delete(host);
      throw error;
    }
  }

  return (host, _options, done) => {
    let asked = known.get(host);
    if (asked === undefined) {
      asked = ask(host);
      known.set(host, asked, 0);
    }
    asked.then(
      (addresses) => done(null, addresses),
      (error) => done(error, []),
    );
  };
}

/** Systems do not always list both addresses of their own (RFC 6761, section 6.3). */
const OWN = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

async function addressesOf(host: string) {
  if (host === "localhost") return OWN;
  return await process.getBuiltinModule("node:dns/promises").lookup(host, { all: true });
}
