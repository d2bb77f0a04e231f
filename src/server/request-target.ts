// What a request asks for, read from its target as the client wrote it. Nothing else looks at targets.
//
// The runtime matches its own routes on the target as it came, but `request.url` shows a rewritten one: dot segments are
// resolved, and "\" has become "/". Who routes by that serves /v1/../admin/config to a client whom a proxy in front lets
// ask for nothing but /v1/. So every path of the route table is a route of the runtime's, and a target that matches none
// of them is never served.

import type { BunRequest } from "bun";
import type { Served, Server } from "./listener.ts";

export interface RequestTarget {
  /** The path of the route table that it names; undefined when it names none. */
  readonly route: string | undefined;
  /** The decoded rest of the path, slashes included, for routes that end in "/*", else "". */
  readonly parameter: string;
  /** For messages and the log; rewritten by the runtime where `flaw` says that the target is not in order. */
  readonly path: string;
  /** Why it is refused, whatever it leads to. */
  readonly flaw: string | undefined;
}

export type TargetHandler = (request: Request, server: Server, target: RequestTarget) => Promise<Response>;

/** A "/*" stands for so many segments; the runtime shows the client's own spelling of single segments only. */
const MOST_SEGMENTS = 16;

/** What answers at some of the paths. */
export interface Surface {
  /** Exact, or ending in "/*", which stands for one segment or several. */
  readonly paths: readonly string[];
  readonly handle: TargetHandler;
}

/** The first surface answers what leads nowhere. */
export function serveTargets(first: Surface, ...others: readonly Surface[]): Required<Served> {
  const routes: NonNullable<Served["routes"]> = {};
  const paths = [first, ...others].flatMap((surface) => surface.paths);
  for (const surface of [first, ...others]) addRoutes(surface, routes);
  const isServed = createServedCheck(paths);
  return { routes, fetch: (request, server) => first.handle(request, server, readUnmatched(request.url, isServed)) };
}

function addRoutes({ paths, handle }: Surface, routes: NonNullable<Served["routes"]>): void {
  for (const route of paths) {
    if (!route.endsWith("/*")) {
      const target: RequestTarget = { route, parameter: "", path: route, flaw: undefined };
      routes[route] = (request, server) => handle(request, server, target);
      continue;
    }
    for (let count = 1; count <= MOST_SEGMENTS; count++) {
      const names = Array.from({ length: count }, (_, index) => `segment${index + 1}`);
      const pattern = route.slice(0, -1) + names.map((name) => `:${name}`).join("/");
      routes[pattern] = (request, server) => {
        const { params } = request as BunRequest & { params: Record<string, string> };
        return handle(request, server, readParameter(route, names.map((name) => params[name]).join("/"), request.url));
      };
    }
  }
}

const REWRITTEN = "The path must not contain dot segments, backslashes, control characters or '#'.";
const NOT_DECODABLE = "The path must be percent-encoded validly, and once.";
const ENCODED = /%[0-9a-f]{2}/i;
const ENCODED_BYTES = /%([0-9a-f]{2})/gi;

/** Segments that are decoded: a backslash is a separator for some servers, and may stand in the id of a model. */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTER = /[\x00-\x1f\x7f]/;

/** `parameter` is what the client wrote, decoded; `url` what the runtime has made of it. */
export function readParameter(route: string, parameter: string, url: string): RequestTarget {
  const path = pathOf(url);
  return { route, parameter, path, flaw: flawOfParameter() };

  function flawOfParameter(): string | undefined {
    const decoded = decode(path);
    if (decoded === undefined) return NOT_DECODABLE;
    const isUnchanged = decoded === route.slice(0, -1) + parameter;
    if (!isUnchanged || path.includes("#") || DOT_SEGMENT.test(parameter) || CONTROL_CHARACTER.test(parameter)) {
      return REWRITTEN;
    }
    return undefined;
  }
}

/** A target that names no path of the table. `isServed` knows the targets that would. */
export function readUnmatched(url: string, isServed: (path: string) => boolean): RequestTarget {
  const path = pathOf(url);
  return { route: undefined, parameter: "", path, flaw: flawOfUnmatched() };

  function flawOfUnmatched(): string | undefined {
    if (!path.startsWith("/")) return "The request must name a path that begins with '/'.";
    const plain = decodeAll(path);
    if (plain === undefined) return NOT_DECODABLE;
    if (path.includes("#") || plain.includes("\\") || DOT_SEGMENT.test(plain) || CONTROL_CHARACTER.test(plain)) {
      return REWRITTEN;
    }
    if (plain.includes("//")) return "The path must not contain empty segments ('//').";
    // It leads to a path that is served, and is not that path: written another way, or rewritten by the runtime.
    if (isServed(plain)) return "The path must be written plainly, without dot segments and needless percent-encoding.";
    return undefined;
  }
}

/** Whether a target that is just this path names a path of the table. */
export function createServedCheck(paths: readonly string[]): (path: string) => boolean {
  const exact = new Set(paths);
  const prefixes = paths.filter((path) => path.endsWith("/*")).map((path) => path.slice(0, -1));
  return (path) =>
    exact.has(path) ||
    prefixes.some((prefix) => {
      if (!path.startsWith(prefix)) return false;
      const segments = path.slice(prefix.length).split("/");
      return segments.length <= MOST_SEGMENTS && !segments.includes("");
    });
}

/** Servers on the way may decode again, each for itself; an honest path is encoded once. */
const MOST_ENCODINGS = 5;

/** As a server reads it that decodes whatever can be; undefined for what is not valid, or encoded too often. */
function decodeAll(path: string): string | undefined {
  let plain = decode(path);
  for (let round = 1; plain !== undefined && ENCODED.test(plain); round++) {
    if (round === MOST_ENCODINGS) return undefined;
    plain = plain.replaceAll(ENCODED_BYTES, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  }
  return plain;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The path of a URL as the runtime gives it, without query. For a Host that is none, the runtime gives the path alone. */
export function pathOf(url: string): string {
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);
  const query = url.indexOf("?", Math.max(start, 0));
  const path = query < 0 ? url.slice(start) : url.slice(start, query);
  return start < 0 ? url : path;
}
