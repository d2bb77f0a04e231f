// Leads a request to the handler of its path as the runtime's own router does, for requests that come without a listener.

import type { FetchHandler, Served } from "./listener.ts";
import { pathOf } from "./request-target.ts";

interface NativeRoute {
  /** Of each segment: its text, or the name of the parameter that it is. */
  readonly segments: readonly (string | { readonly name: string })[];
  readonly handle: FetchHandler;
}

/** @param served - with routes as the runtime takes them */
export function routePaths({ routes = {}, fetch, error }: Served): FetchHandler {
  const exact = new Map<string, FetchHandler>();
  const wide = new Map<number, NativeRoute[]>();
  for (const [path, handle] of Object.entries(routes)) {
    if (!path.includes(":")) exact.set(path, handle);
    else {
      const segments = segmentsOf(path).map((text) => (text.startsWith(":") ? { name: text.slice(1) } : text));
      wide.set(segments.length, [...(wide.get(segments.length) ?? []), { segments, handle }]);
    }
  }
  // Plain text is preferred to a parameter, from the left.
  for (const list of wide.values()) list.sort(compareRoutes);

  function handlerOf(request: Request): FetchHandler {
    const path = pathOf(request.url);
    const known = exact.get(path);
    if (known !== undefined) return known;
    const texts = segmentsOf(path).map(decoded);
    const found = wide.get(texts.length)?.find(({ segments }) => fitsSegments(segments, texts));
    if (found === undefined) return fetch;
    const params = Object.fromEntries(
      found.segments.flatMap((segment, index) => (typeof segment === "string" ? [] : [[segment.name, texts[index]]])),
    );
    Object.defineProperty(request, "params", { value: params, configurable: true });
    return found.handle;
  }

  return async (request, server) => {
    try {
      return await handlerOf(request)(request, server);
    } catch (thrown) {
      if (error === undefined) throw thrown;
      return error(thrown);
    }
  };
}

function segmentsOf(path: string): string[] {
  return path.slice(1).split("/");
}

function fitsSegments(segments: NativeRoute["segments"], texts: readonly string[]): boolean {
  return segments.every((segment, index) => (typeof segment === "string" ? segment === texts[index] : texts[index]));
}

function compareRoutes({ segments }: NativeRoute, other: NativeRoute): number {
  for (const [index, segment] of segments.entries()) {
    const isPlain = typeof segment === "string";
    if (isPlain !== (typeof other.segments[index] === "string")) return isPlain ? -1 : 1;
  }
  return 0;
}

/** What cannot be decoded is refused where the target is read. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
