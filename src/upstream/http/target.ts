// Where the requests to a backend go: worked out once, with the lines that all their heads have.

import type { ConnectionOptions } from "node:tls";
import type { Backend } from "../../backends/backend.ts";
import type { BackendTls } from "../backend-tls.ts";
import { unsendable } from "./http-error.ts";

export type Address = { readonly unix: string } | HostAddress;

export interface HostAddress {
  readonly hostname: string;
  readonly port: number;
  readonly tls?: ConnectionOptions;
}

/** Paths whose written form is remembered; more than a backend is usually asked for. */
const MAX_PATHS = 32;
const NOT_IN_PATHS = /[^\x20-\x7e\x80-\uffff]/;

/** As URLs have them: all other host names have letters, and no colon. */
const ADDRESS = /^[\d.]+$|:/;

/** The protocol that is offered, with its length before it (RFC 7301, section 3.1). */
const HTTP11: Readonly<Uint8Array> = Buffer.from("\x08http/1.1");

export class Target {
  /** The same for all backends that share connections. */
  readonly origin: string;
  readonly address: Address;
  readonly hostLine: string;
  /** For credentials in the address, as fetch sends them; else "". */
  readonly authorizationLine: string;
  readonly #tls: BackendTls | undefined;
  readonly #root: URL;
  readonly #paths = new Map<string, string>();

  constructor({ rootUrl, socketPath }: Pick<Backend, "rootUrl" | "socketPath">, tls: BackendTls | undefined) {
    const url = new URL(rootUrl);
    this.#root = url;
    this.#tls = tls;
    this.address = socketPath === undefined ? addressOf(url, tls) : { unix: socketPath };
    this.origin = JSON.stringify([url.protocol, this.address]);
    this.hostLine = `host: ${url.host}\r\n`;
    this.authorizationLine = authorizationLine(url);
  }

  /** Whether certificates are still checked in this way. */
  isFor(tls: BackendTls | undefined): boolean {
    return this.#tls?.ca === tls?.ca && this.#tls?.serverName === tls?.serverName;
  }

  /** The target of the request line. @throws HttpError if the path has control characters or leads elsewhere */
  path(pathAndQuery: string): string {
    return this.#paths.get(pathAndQuery) ?? this.#resolve(pathAndQuery);
  }

  #resolve(pathAndQuery: string): string {
    const prefix = this.#root.pathname === "/" ? "" : this.#root.pathname;
    const isPath = pathAndQuery.startsWith("/") && !NOT_IN_PATHS.test(pathAndQuery);
    const url = isPath ? URL.parse(this.#root.origin + prefix + pathAndQuery) : null;
    if (url === null || url.host !== this.#root.host) {
      throw unsendable("its path is none");
    }
    const path = url.pathname + url.search;
    if (this.#paths.size >= MAX_PATHS) this.#paths.clear();
    this.#paths.set(pathAndQuery, path);
    return path;
  }
}

function addressOf(url: URL, tls: BackendTls | undefined): Address {
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol !== "https:") return { hostname, port: Number(url.port || 80) };
  // The certificate is compared with the name that is given here, else with the host. Addresses are not asked for by name
  // (RFC 6066, section 3), which the runtime would do if it were not told otherwise.
  const servername = tls?.serverName ?? (ADDRESS.test(hostname) ? "" : hostname);
  const options = { rejectUnauthorized: true, ALPNProtocols: HTTP11, servername };
  return {
    hostname,
    port: Number(url.port || 443),
    tls: tls?.ca === undefined ? options : { ...options, ca: tls.ca },
  };
}

function authorizationLine({ username, password }: URL): string {
  if (username === "" && password === "") return "";
  const credentials = Buffer.from(`${decoded(username)}:${decoded(password)}`).toString("base64");
  return `authorization: Basic ${credentials}\r\n`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a percent sign that stands for itself
  }
}
