// Method and path -> route. Own matching instead of the runtime's, so that 404, 405 with Allow, HEAD and decoded path
// parameters behave the same everywhere.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";

export interface Route<Handler> {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Exact, or ending in "/*": then the rest of the path is the parameter, decoded, slashes included. */
  path: string;
  handler: Handler;
}

export interface RouteMatch<Handler> {
  handler: Handler;
  /** The rest of the path for a route that ends in "/*", else "". */
  parameter: string;
}

export interface RouteTable<Handler> {
  /** Throws 404, 405 with Allow, or 400 for a parameter that is not decodable. */
  match(method: string, path: string): RouteMatch<Handler>;
}

export function createRouteTable<Handler>(routes: readonly Route<Handler>[]): RouteTable<Handler> {
  const exact = new Map<string, Map<string, Handler>>();
  const prefixes = new Map<string, Map<string, Handler>>();
  for (const { method, path, handler } of routes) {
    const [table, key] = path.endsWith("/*") ? [prefixes, path.slice(0, -1)] : [exact, path];
    const methods = table.get(key) ?? new Map<string, Handler>();
    methods.set(method, handler);
    table.set(key, methods);
  }

  function find(path: string): { methods: Map<string, Handler>; rest: string } | undefined {
    const methods = exact.get(path);
    if (methods !== undefined) return { methods, rest: "" };
    for (const [prefix, candidates] of prefixes) {
      if (path.startsWith(prefix) && path.length > prefix.length) {
        return { methods: candidates, rest: path.slice(prefix.length) };
      }
    }
    return undefined;
  }

  return {
    match(method, path) {
      const found = find(path);
      if (found === undefined) {
        const near = nearest(path, exact.keys());
        const hint = near === undefined ? "" : ` Did you mean ${near}?`;
        throw new GatewayError(ERRORS.routeNotFound, `There is nothing at ${printable(path)}.${hint}`);
      }
      const handler = found.methods.get(method === "HEAD" ? "GET" : method);
      if (handler === undefined) {
        const allowed = [...found.methods.keys()].flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
        throw new GatewayError(
          ERRORS.methodNotAllowed,
          `${printable(path)} does not take ${method}; allowed: ${allowed.join(", ")}.`,
          {
            headers: { Allow: allowed.join(", ") },
          },
        );
      }
      return { handler, parameter: found.rest === "" ? "" : decodeParameter(found.rest) };
    },
  };
}

function decodeParameter(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new GatewayError(ERRORS.invalidRequest, "The path is not validly percent-encoded.", { cause });
  }
}

function printable(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}

/** The path of an absolute URL as the runtime gives it, without query. */
export function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  if (start < 0) return "/";
  const query = url.indexOf("?", start);
  return query < 0 ? url.slice(start) : url.slice(start, query);
}
