// Method and target -> the endpoint; and what is said when there is none: 400, 404 with the nearest path, 405 with Allow.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";
import type { Endpoint } from "./endpoint.ts";
import { readWidePaths } from "./path-pattern.ts";
import type { RequestTarget } from "./request-target.ts";

export interface RouteTable<Entry> {
  readonly endpoints: readonly Entry[];
  /** Every path of the endpoints, once. */
  readonly paths: readonly string[];
  /** Throws 400 for a target that is not in order, 404, or 405 with Allow. */
  match(method: string, target: RequestTarget): Entry;
  /** Entries of a target by method; empty for one that is malformed or leads nowhere. */
  at(target: RequestTarget): ReadonlyMap<string, Entry>;
}

interface RouteSurroundings {
  /** Beginnings of paths that clients know from other servers, with what is said of them; the first one that fits counts. */
  notBuilt?: readonly (string | readonly [beginning: string, reason: string])[];
  /** Paths of another table, which a client may have meant. */
  elsewhere?: readonly string[];
}

/** Throws for endpoints of which one hides another. */
export function createRouteTable<Entry extends Pick<Endpoint, "method" | "path">>(
  endpoints: readonly Entry[],
  { notBuilt = [], elsewhere = [] }: RouteSurroundings = {},
): RouteTable<Entry> {
  const byPath = new Map<string, Map<string, Entry>>();
  for (const endpoint of endpoints) {
    const { method, path } = endpoint;
    const methods = byPath.get(path) ?? new Map<string, Entry>();
    if (methods.has(method)) throw new Error(`${method} ${path} is declared twice`);
    methods.set(method, endpoint);
    byPath.set(path, methods);
  }
  const nothing: ReadonlyMap<string, Entry> = new Map();
  const paths = [...byPath.keys()];
  readWidePaths(paths);
  const exact = [...paths, ...elsewhere].filter((path) => !path.includes("{"));

  function notFound(path: string): GatewayError {
    for (const entry of notBuilt) {
      const [beginning, reason] = typeof entry === "string" ? [entry, "is not in this release."] : entry;
      if (path !== beginning && !path.startsWith(`${beginning}/`)) continue;
      return new GatewayError(ERRORS.routeNotFound, `${printable(path)} ${reason}`);
    }
    const near = nearest(path, exact);
    const hint = near === undefined ? "" : ` Did you mean ${near}?`;
    return new GatewayError(ERRORS.routeNotFound, `There is nothing at ${printable(path)}.${hint}`);
  }

  return {
    endpoints,
    paths,
    match(method, { route, path, flaw }) {
      if (flaw !== undefined) throw new GatewayError(ERRORS.invalidRequest, flaw);
      const methods = route === undefined ? undefined : byPath.get(route);
      if (methods === undefined) throw notFound(path);
      const endpoint = methods.get(method === "HEAD" ? "GET" : method);
      if (endpoint === undefined) {
        const allowed = allowedMethods(methods).join(", ");
        const message = `${printable(path)} does not take ${method}; allowed: ${allowed}.`;
        throw new GatewayError(ERRORS.methodNotAllowed, message, { headers: { Allow: allowed } });
      }
      return endpoint;
    },
    at({ route, flaw }) {
      return (flaw === undefined && route !== undefined && byPath.get(route)) || nothing;
    },
  };
}

/** HEAD is allowed wherever GET is. */
export function allowedMethods(methods: ReadonlyMap<string, unknown>): string[] {
  return [...methods.keys()].flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
}

function printable(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
