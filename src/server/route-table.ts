// Method and target -> what answers; and what is said when nothing does: 400, 404 with the nearest path, 405 with Allow.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";
import type { RequestTarget } from "./request-target.ts";

export interface Route<Handler> {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Exact, or ending in "/*": then the rest of the path is the parameter, decoded, slashes included. */
  path: string;
  handler: Handler;
}

export interface RouteTable<Handler> {
  /** Every path of the routes, once. */
  readonly paths: readonly string[];
  /** Throws 400 for a target that is not in order, 404, or 405 with Allow. */
  match(method: string, target: RequestTarget): Handler;
  /** What a target answers by method; empty for one that is not in order or leads nowhere. */
  at(target: RequestTarget): ReadonlyMap<string, Handler>;
}

export interface Surroundings {
  /** Beginnings of paths that clients know from other servers. */
  notBuilt?: readonly string[];
  /** Paths of another table, which a client may have meant. */
  elsewhere?: readonly string[];
}

export function createRouteTable<Handler>(
  routes: readonly Route<Handler>[],
  { notBuilt = [], elsewhere = [] }: Surroundings = {},
): RouteTable<Handler> {
  const byPath = new Map<string, Map<string, Handler>>();
  for (const { method, path, handler } of routes) {
    const methods = byPath.get(path) ?? new Map<string, Handler>();
    methods.set(method, handler);
    byPath.set(path, methods);
  }
  const nothing: ReadonlyMap<string, Handler> = new Map();
  const paths = [...byPath.keys()];
  const exact = [...paths, ...elsewhere].filter((path) => !path.endsWith("/*"));

  function notFound(path: string): GatewayError {
    const isKnown = notBuilt.some((beginning) => path === beginning || path.startsWith(`${beginning}/`));
    if (isKnown) return new GatewayError(ERRORS.routeNotFound, `${printable(path)} is not in this release.`);
    const near = nearest(path, exact);
    const hint = near === undefined ? "" : ` Did you mean ${near}?`;
    return new GatewayError(ERRORS.routeNotFound, `There is nothing at ${printable(path)}.${hint}`);
  }

  return {
    paths,
    match(method, { route, path, flaw }) {
      if (flaw !== undefined) throw new GatewayError(ERRORS.invalidRequest, flaw);
      const methods = route === undefined ? undefined : byPath.get(route);
      if (methods === undefined) throw notFound(path);
      const handler = methods.get(method === "HEAD" ? "GET" : method);
      if (handler === undefined) {
        const allowed = allowedMethods(methods).join(", ");
        const message = `${printable(path)} does not take ${method}; allowed: ${allowed}.`;
        throw new GatewayError(ERRORS.methodNotAllowed, message, { headers: { Allow: allowed } });
      }
      return handler;
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
