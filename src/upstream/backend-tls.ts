// How backends have to prove who they are over TLS, as the configuration wants it at the moment.

import type { Backend } from "../backends/backend.ts";
import { isPem } from "../config/values/pem.ts";

/** What differs from the usual: the system's authorities, and the host name of the address. */
export interface BackendTls {
  /** PEM text of the authorities that count instead of the system's. */
  ca?: string | undefined;
  /** Asked for (SNI), and looked for in the certificate. */
  serverName?: string | undefined;
}

/** To be asked when a connection is opened, because the answer changes with the files; undefined: the usual. */
export type TlsOf = (backend: Backend) => BackendTls | undefined;

/** `filesNow`: texts of the files with authorities, by the names that the configuration gives them. */
export function createTlsOf(filesNow: () => ReadonlyMap<string, string>): TlsOf {
  return ({ settings: { tls } }) => tls && { ca: tls.ca && textOf(tls.ca, filesNow()), serverName: tls.server_name };
}

/**
 * A backend that was removed meanwhile may name a file that is no longer kept. A name is no certificate, so no server is
 * trusted by it; without any text the system's authorities would be.
 */
function textOf(ca: string, files: ReadonlyMap<string, string>): string {
  return isPem(ca) ? ca : (files.get(ca) ?? ca);
}
