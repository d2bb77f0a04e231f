// Paths as endpoints declare them: {name} stands for one segment, {name...} for one or several; and which of two paths is
// meant by a target that fits both.

/** A segment of a path: a fixed text or a parameter. */
type Segment = string | { readonly name: string };

/** A path with as many segments as a target has. */
export type Shape = readonly Segment[];

interface PathPattern {
  readonly path: string;
  readonly segments: Shape;
  /** Which of them may stand for several; -1: none. */
  readonly rest: number;
}

/** The names of the parameters of a path. */
export type ParameterOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Plain}...` ? Plain : Name) | ParameterOf<Rest>
  : never;

/** Of a {name...} and what follows it: the runtime shows the client's own spelling of single segments only. */
const MOST_SEGMENTS = 16;

const PARAMETER = /^\{(\w+)(?:\.\.\.)?\}$/;
/** Without parameters: what has one spelling only, and no meaning of its own to the runtime. */
const PLAIN = /^(?:\/[\w.~-]*)*$/;

/** Throws for a text that is no path of an endpoint. */
export function readPath(path: string): PathPattern {
  const texts = path.slice(1).split("/");
  const segments = texts.map(readSegment);
  const names = segments.flatMap((segment) => (isText(segment) ? [] : [segment.name]));
  const rest = texts.findIndex(isSeveral);
  const isOdd = !path.startsWith("/") || !PLAIN.test(`/${segments.filter(isText).join("/")}`);
  if (isOdd || new Set(names).size < names.length || texts.findLastIndex(isSeveral) !== rest) {
    throw new Error(`${path} is no path of an endpoint`);
  }
  return { path, segments, rest };
}

function readSegment(text: string): Segment {
  const name = PARAMETER.exec(text)?.[1];
  return name === undefined ? text : { name };
}

const isSeveral = (text: string): boolean => text.endsWith("...}");

/** Undefined where the path cannot have so many segments. */
function shapeOf({ segments, rest }: PathPattern, count: number): Shape | undefined {
  const more = count - segments.length;
  if (more === 0) return segments;
  if (rest < 0 || more < 0 || more + segments.length - rest > MOST_SEGMENTS) return undefined;
  return [...segments.slice(0, rest), ...Array<Segment>(more).fill(segments[rest] as Segment), ...segments.slice(rest)];
}

/** True if a target with exactly this text names the path. */
export function fits(pattern: PathPattern, text: string): boolean {
  const segments = text.slice(1).split("/");
  const shape = shapeOf(pattern, segments.length);
  if (shape === undefined) return false;
  return shape.every((segment, index) => (isText(segment) ? segment === segments[index] : segments[index] !== ""));
}

/** Routes for the runtime, each with the path that it stands for. */
type Arrangement = ReadonlyMap<string, { readonly path: string; readonly shape: Shape }>;

/** Of two paths that a target fits, the more specific one gets it; throws where neither is. */
export function arrangePaths(paths: readonly string[]): Arrangement {
  const wide = readWidePaths(paths);
  const arranged = new Map<string, { path: string; shape: Shape; pattern?: PathPattern }>();
  for (const path of paths) if (!isWide(path)) arranged.set(path, { path, shape: [path] });
  for (const pattern of wide) {
    const { path, segments } = pattern;
    for (let count = segments.length; ; count++) {
      const shape = shapeOf(pattern, count);
      if (shape === undefined) break;
      // Between different routes the runtime itself prefers plain text to a parameter, from the left.
      const native = `/${shape.map((segment, index) => (isText(segment) ? segment : `:${segmentName(index)}`)).join("/")}`;
      const known = arranged.get(native);
      if (known?.pattern === undefined || isWithin(pattern, known.pattern))
        arranged.set(native, { path, shape, pattern });
    }
  }
  return arranged;
}

/** Name of a parameter's segment in the runtime's routes. */
export function segmentName(index: number): string {
  return `segment${index}`;
}

const isWide = (path: string): boolean => path.includes("{");

/**
 * Those with parameters; the others are more specific than any of them. Throws where a target may name two of them, and
 * neither is more specific than the other.
 */
export function readWidePaths(paths: readonly string[]): PathPattern[] {
  if (new Set(paths).size < paths.length) throw new Error("a path is there twice");
  const plain = paths.filter((path) => !isWide(path)).join("");
  if (!PLAIN.test(plain)) throw new Error(`no paths of endpoints: ${plain}`);
  const wide = paths.filter(isWide).map(readPath);
  for (const [index, one] of wide.entries()) {
    for (const other of wide.slice(0, index)) {
      if (!overlap(one, other) || isWithin(one, other) !== isWithin(other, one)) continue;
      throw new Error(`a target may name ${other.path} as well as ${one.path}`);
    }
  }
  return wide;
}

/** The shapes of the one, each with the other's for as many segments; longer ones differ in nothing that these do not. */
function pairs(one: PathPattern, other: PathPattern): [Shape, Shape | undefined][] {
  const counts = Array.from({ length: other.segments.length + 1 }, (_, more) => one.segments.length + more);
  return counts.flatMap((count): [Shape, Shape | undefined][] => {
    const shape = shapeOf(one, count);
    return shape === undefined ? [] : [[shape, shapeOf(other, count)]];
  });
}

function overlap(one: PathPattern, other: PathPattern): boolean {
  const apart = one.segments.findIndex((segment, index) => segment !== other.segments[index]);
  if (isText(one.segments[apart]) && isText(other.segments[apart])) return false;
  return pairs(one, other).some(([shape, rival]) =>
    rival?.every((segment, index) => segment === shape[index] || !(isText(segment) && isText(shape[index]))),
  );
}

/** True if every target that fits `one` fits `other` too. */
function isWithin(one: PathPattern, other: PathPattern): boolean {
  return pairs(one, other).every(([shape, wider]) =>
    wider?.every((segment, index) => segment === shape[index] || !isText(segment)),
  );
}

function isText(segment: Segment | undefined): segment is string {
  return typeof segment === "string";
}
