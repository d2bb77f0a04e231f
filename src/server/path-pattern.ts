// Paths as endpoints declare them: {name} stands for one segment, {name...} for one or several; and which of two paths is
// meant by a target that fits both.

/** Of a path: a text that stands for itself, or a parameter. */
type Segment = string | { readonly name: string };

/** A path with as many segments as a target has. */
export type Shape = readonly Segment[];

/** A path by the number of segments, as many as it may have. */
export type PathPattern = ReadonlyMap<number, Shape>;

/** The names of the parameters of a path. */
export type ParameterOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Plain}...` ? Plain : Name) | ParameterOf<Rest>
  : never;

/** Of a {name...} and what follows it: the runtime shows the client's own spelling of single segments only. */
const MOST_SEGMENTS = 16;

const PARAMETER = /^\{(\w+)(?:\.\.\.)?\}$/;
const REST = /\.\.\.\}$/;
/** What has one spelling only, and no meaning of its own to the runtime. */
const PLAIN = /^[\w.~-]*$/;

/** Throws for what is no path. */
export function readPath(path: string): PathPattern {
  const segments = path.slice(1).split("/");
  const shape = segments.map(readSegment);
  const names = segments.filter((segment) => PARAMETER.test(segment));
  const rests = segments.filter((segment) => REST.test(segment));
  const isPlain = shape.every((segment) => typeof segment !== "string" || PLAIN.test(segment));
  if (!path.startsWith("/") || !isPlain || new Set(names).size < names.length || rests.length > 1) {
    throw new Error(`${path} is no path of an endpoint`);
  }
  const rest = segments.findIndex((segment) => REST.test(segment));
  if (rest < 0) return new Map([[shape.length, shape]]);
  const behind = shape.slice(rest + 1);
  return new Map(
    Array.from({ length: MOST_SEGMENTS - behind.length }, (_, more) => {
      const several = Array<Segment>(more + 1).fill(shape[rest] as Segment);
      return [shape.length + more, [...shape.slice(0, rest), ...several, ...behind]];
    }),
  );
}

function readSegment(segment: string): Segment {
  const name = PARAMETER.exec(segment)?.[1];
  return name === undefined ? segment : { name };
}

/** Whether a target that is just this text names the path. */
export function fits(pattern: PathPattern, text: string): boolean {
  const segments = text.slice(1).split("/");
  const shape = pattern.get(segments.length);
  if (shape === undefined) return false;
  return shape.every((segment, index) => (isText(segment) ? segment === segments[index] : segments[index] !== ""));
}

/** What the runtime is to match, and which of the paths it then is. */
export type Arrangement = ReadonlyMap<string, { readonly path: string; readonly shape: Shape }>;

/**
 * Of two paths that a target fits, the more specific one gets it; throws where neither is. The runtime itself prefers plain
 * text to a parameter, from the left.
 */
export function arrangePaths(paths: readonly string[]): Arrangement {
  /** Those with parameters: a path without one is more specific than any other. */
  const wide = new Map<string, PathPattern>();
  const arranged = new Map<string, { path: string; shape: Shape; pattern: PathPattern }>();
  for (const path of paths) {
    const pattern = readPath(path);
    for (const [rival, other] of path.includes("{") ? wide : []) {
      if (!overlap(pattern, other) || isWithin(pattern, other) !== isWithin(other, pattern)) continue;
      throw new Error(`a target may name ${rival} as well as ${path}`);
    }
    if (path.includes("{")) wide.set(path, pattern);
    for (const shape of pattern.values()) {
      const native = `/${shape.map((segment, index) => (isText(segment) ? segment : `:${segmentName(index)}`)).join("/")}`;
      const known = arranged.get(native);
      if (known?.path === path) throw new Error(`${path} is there twice`);
      if (known === undefined || isWithin(pattern, known.pattern)) arranged.set(native, { path, shape, pattern });
    }
  }
  return arranged;
}

/** What a segment that is a parameter is called in the runtime's routes. */
export function segmentName(index: number): string {
  return `segment${index}`;
}

function overlap(one: PathPattern, other: PathPattern): boolean {
  return one.entries().some(([count, shape]) =>
    other.get(count)?.every((segment, index) => {
      const own = shape[index] as Segment;
      return segment === own || !isText(segment) || !isText(own);
    }),
  );
}

/** Whether every target that fits the one fits the other, but for very long ones, where a {name...} may end. */
function isWithin(one: PathPattern, other: PathPattern): boolean {
  return one.entries().every(([count, shape]) => {
    const wider = other.get(count);
    return count > MOST_SEGMENTS || wider?.every((segment, index) => segment === shape[index] || !isText(segment));
  });
}

function isText(segment: Segment): segment is string {
  return typeof segment === "string";
}
