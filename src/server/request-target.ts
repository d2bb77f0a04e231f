// What a request asks for, read from its target as the client wrote it. Nothing else looks at targets.
//
// The runtime matches its own routes on the target as it came, but `request.url` shows a rewritten one: dot segments are
// resolved, and "\" has become "/". Who routes by that serves /v1/../admin/config to a client whom a proxy in front lets
// ask for nothing but /v1/. So every path of the route table is a route of the runtime's, and a target that matches none
// of them is never served.

import type { BunRequest } from "bun";
import type { FetchHandler, Served, Server } from "./listener.ts";
import { arrangePaths, fits, readPath, type Shape, segmentName, verbOf, withoutVerb } from "./path-pattern.ts";
import { answerForUnopenedFile } from "./unopened-file.ts";

export interface RequestTarget {
  /** The path of the route table that it names; undefined when it names none. */
  readonly route: string | undefined;
  /** Values of the parameters of that path, decoded, slashes included for a {name...}. */
  readonly parameters: Readonly<Record<string, string>>;
  /** For messages and the log; rewritten by the runtime where `flaw` says that the target is not in order. */
  readonly path: string;
  /** Why it is refused, whatever it leads to. */
  readonly flaw: string | undefined;
}

export type TargetHandler = (request: Request, server: Server, target: RequestTarget) => Promise<Response>;

const NO_PARAMETERS: RequestTarget["parameters"] = Object.freeze({});

/** Some paths with their handler. */
export interface Surface {
  /** With {name} and {name...}, see path-pattern.ts. */
  readonly paths: readonly string[];
  /** Asked for with each request: another one may take its place. */
  handle: TargetHandler;
}

/** The first surface answers what leads nowhere. */
export function serveTargets(first: Surface, ...others: readonly Surface[]): Required<Served> {
  const surfaces = [first, ...others];
  const paths = surfaces.flatMap((surface) => surface.paths);
  const surfaceOf = new Map(surfaces.flatMap((surface) => surface.paths.map((path) => [path, surface] as const)));
  const routes: NonNullable<Served["routes"]> = {};
  const isServed = createServedCheck(paths);
  const unmatched: FetchHandler = (request, server) =>
    first.handle(request, server, readUnmatched(request.url, isServed));
  for (const [native, arranged] of arrangePaths(paths)) {
    routes[native] = arranged.reduceRight<FetchHandler>((otherwise, { path, shape }) => {
      const handle = toNative(path, shape, surfaceOf.get(path) as Surface);
      const verb = verbOf(shape.at(-1));
      return verb === undefined ? handle : withVerb(verb, segmentName(shape.length - 1), handle, otherwise);
    }, unmatched);
  }
  return {
    routes,
    fetch: unmatched,
    error: answerForUnopenedFile,
  };
}

/** The same surface for requests that come before it is ready: they wait. */
export function behind(ready: Promise<unknown>, { paths, handle }: Surface): Surface {
  return { paths, handle: (request, server, target) => ready.then(() => handle(request, server, target)) };
}

function toNative(path: string, shape: Shape, surface: Surface): FetchHandler {
  if (shape.every((segment) => typeof segment === "string")) {
    const target: RequestTarget = { route: path, parameters: NO_PARAMETERS, path, flaw: undefined };
    return (request, server) => surface.handle(request, server, target);
  }
  return (request, server) => {
    const { params } = request as BunRequest & { params: Record<string, string> };
    return surface.handle(request, server, readParameters(path, shape, params, request.url));
  };
}

/** @param last - the name of the segment that has the verb at its end */
function withVerb(verb: string, last: string, handle: FetchHandler, otherwise: FetchHandler): FetchHandler {
  return (request, server) => {
    const { params } = request as BunRequest & { params: Record<string, string> };
    const isNamed = withoutVerb(params[last] as string, verb) !== undefined;
    return isNamed ? handle(request, server) : otherwise(request, server);
  };
}

const REWRITTEN = "The path must not contain dot segments, backslashes, control characters or '#'.";
const NOT_DECODABLE = "The path must be percent-encoded validly, and once.";
const ENCODED = /%[0-9a-f]{2}/i;
const ENCODED_BYTES = /%([0-9a-f]{2})/gi;

/** Segments that are decoded: a backslash is a separator for some servers, and may stand in the id of a model. */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTER = /[\x00-\x1f\x7f]/;

/** False for a name by which nothing could be asked for, as the last parameter of a path either. */
export const fitsIntoPath = (name: string) => !DOT_SEGMENT.test(name) && !CONTROL_CHARACTER.test(name);

/** `params`: what the client wrote for the segments of the shape that are parameters; `url` what the runtime has made of it. */
function readParameters(route: string, shape: Shape, params: Record<string, string>, url: string): RequestTarget {
  const path = pathOf(url);
  const parameters: Record<string, string> = {};
  let written = "";
  for (const [index, segment] of shape.entries()) {
    const text = typeof segment === "string" ? segment : (params[segmentName(index)] as string);
    written += `/${text}`;
    if (typeof segment === "string") continue;
    const value = withoutVerb(text, segment.verb) as string;
    const before = parameters[segment.name];
    parameters[segment.name] = before === undefined ? value : `${before}/${value}`;
  }
  return { route, parameters, path, flaw: flawOfWritten(written, path) };
}

/** `written` is what the client wrote, decoded. */
function flawOfWritten(written: string, path: string): string | undefined {
  const decoded = decode(path);
  if (decoded === undefined) return NOT_DECODABLE;
  const isOdd =
    decoded !== written || path.includes("#") || DOT_SEGMENT.test(written) || CONTROL_CHARACTER.test(written);
  return isOdd ? REWRITTEN : undefined;
}

/** A target that names no path of the table. `isServed` knows the targets that would. */
export function readUnmatched(url: string, isServed: (path: string) => boolean): RequestTarget {
  const path = pathOf(url);
  return { route: undefined, parameters: NO_PARAMETERS, path, flaw: flawOfUnmatched() };

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

/** Returns a check: true if a target with exactly this path names a path of the table. */
export function createServedCheck(paths: readonly string[]): (path: string) => boolean {
  const exact = new Set(paths);
  const patterns = paths.filter((path) => path.includes("{")).map(readPath);
  return (path) => exact.has(path) || patterns.some((pattern) => fits(pattern, path));
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
