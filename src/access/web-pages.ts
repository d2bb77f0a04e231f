// Web pages: what a browser sends on behalf of any page that its user opens, and which pages may ask and read.
//
// A browser says where a page is from (Origin, Sec-Fetch-Site), and under which name it has found this server (Host). A
// page can make its own name lead to this machine (DNS rebinding); its requests still carry that name.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { compileGlob } from "../lib/glob.ts";
import { hostName, isHost, isLocalHost, isLocalOrigin, isOnLoopback, isSameOrigin } from "./hosts.ts";

export interface WebPageSettings {
  /** server.allowed_hosts */
  allowedHosts: readonly string[];
  /** server.cors.allowed_origins */
  allowedOrigins: readonly string[];
  /** server.bind_address */
  boundTo: readonly string[];
  /** True if requests without an API key are refused: then no page can spend more than its user has given it. */
  keysRequired: boolean;
}

/** A request that a page may have sent. */
export interface PageRequest {
  /** The origin whose pages may read the answer; undefined where it is foreign, or not told. */
  reader: string | undefined;
  /** Why it may not use anything that costs; undefined where it may. */
  refusal: string | undefined;
}

export interface WebPageRules {
  /**
   * Undefined where no page is behind the request, as with every SDK. Throws 400 for a Host that names none. `listener`
   * is where the request came in, without a port for a unix socket; `answer` are the headers of its answer.
   */
  judge(
    request: Headers,
    listener: { readonly port?: number | undefined },
    answer: Record<string, string>,
  ): PageRequest | undefined;
}

/** Names under which containers reach the machine that runs them; the domain .internal is reserved for private use. */
const CONTAINER_HOSTS: readonly string[] = ["host.docker.internal", "host.containers.internal"];

const BROKEN_HOST = "The Host header must name one host: a name or an address, with or without a port.";
const FOREIGN_HOST =
  "The gateway does not answer to this Host, so that web pages cannot reach it under a name of their own. " +
  "Its operator can add the name to server.allowed_hosts.";
const FOREIGN_ORIGIN =
  "The gateway does not answer web pages from other origins. " +
  "Its operator can add the origin to server.cors.allowed_origins.";

export function createWebPageRules(settings: WebPageSettings): WebPageRules {
  const { allowedOrigins, keysRequired } = settings;
  const isExpectedHost = hostCheck(settings);
  const isListed = matcher(allowedOrigins);
  // Nearly all requests name the same host.
  let lastHost: string | null = null;
  let isLastExpected = isExpectedHost(null);

  function isExpected(host: string | null): boolean {
    if (host === lastHost) return isLastExpected;
    if (host !== null && !isHost(host)) throw new GatewayError(ERRORS.invalidRequest, BROKEN_HOST);
    lastHost = host;
    isLastExpected = isExpectedHost(host);
    return isLastExpected;
  }

  function mayRead(origin: string, host: string | null): boolean {
    return isSameOrigin(origin, host) || (isLocalOrigin(origin) && isLocalHost(host)) || isListed(origin.toLowerCase());
  }

  return {
    judge(request, listener, answer) {
      const host = request.get("host");
      const isForeignHost = !isExpected(host) && listener.port !== undefined;
      const origin = request.get("origin");
      if (origin !== null || allowedOrigins.length > 0) answer.Vary = "Origin";
      if (isForeignHost) return { reader: undefined, refusal: FOREIGN_HOST };
      if (origin !== null) {
        if (mayRead(origin, host)) return { reader: origin, refusal: undefined };
        return { reader: undefined, refusal: keysRequired ? undefined : FOREIGN_ORIGIN };
      }
      if (keysRequired || request.get("sec-fetch-site") !== "cross-site") return undefined;
      return { reader: undefined, refusal: FOREIGN_ORIGIN };
    },
  };
}

/** Which names a request may call this server by. */
function hostCheck({ allowedHosts, boundTo, keysRequired }: WebPageSettings): (host: string | null) => boolean {
  const isOpenByDefault = allowedHosts.length === 0 && (keysRequired || !isOnLoopback(boundTo));
  if (isOpenByDefault || allowedHosts.includes("*")) return () => true;
  const isNamed = matcher([...allowedHosts, ...boundTo.map(hostName), ...CONTAINER_HOSTS]);
  return (host) => host !== null && (isLocalHost(host) || isNamed(hostName(host)));
}

function matcher(patterns: readonly string[]): (text: string) => boolean {
  const matchers = patterns.map((pattern) => compileGlob(pattern.toLowerCase()));
  return (text) => matchers.some((matches) => matches(text));
}
