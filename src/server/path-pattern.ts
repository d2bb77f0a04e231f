// Paths as endpoints declare them: {name} stands for one segment, {name...} for one or several, and the last of them may have
// a verb behind it, as in {name...}:verb; and which of two paths is meant by a target that fits both.

/** A segment of a path: a fixed text or a parameter. */
type Segment = string | { readonly name: string; readonly verb?: string | undefined };

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

const PARAMETER = /^\{(\w+)(?:\.\.\.)?\}(?::(\w+))?$/;
/** Without parameters: what has one spelling only, and no meaning of its own to the runtime. */
const PLAIN = /^(?:\/[\w.~-]*)*$/;

/** Throws for a text that is no path of an endpoint. */
export function readPath(path: string): PathPattern {
  const texts = path.slice(1).split("/");
  const segments = texts.map(readSegment);
  const names = segments.flatMap((segment) => (isText(segment) ? [] : [segment.name]));
  const rest = texts.findIndex(isSeveral);
  const hasVerbWithin = segments.slice(0, -1).some((segment) => verbOf(segment) !== undefined);
  const isOdd = !path.startsWith("/") || hasVerbWithin || !PLAIN.test(`/${segments.filter(isText).join("/")}`);
  if (isOdd || new Set(names).size < names.length || texts.findLastIndex(isSeveral) !== rest) {
    throw new Error(`${path} is no path of an endpoint`);
  }
  return { path, segments, rest };
}

function readSegment(text: string): Segment {
  const [, name, verb] = PARAMETER.exec(text) ?? [];
  return name === undefined ? text : { name, verb };
}

/** Of the last segment of a target. */
export function verbOf(segment: Segment | undefined): string | undefined {
  return isText(segment) ? undefined : segment?.verb;
}

/** The text of a segment without the verb; undefined where it has another one, or nothing before it. */
export function withoutVerb(text: string, verb: string | undefined): string | undefined {
  if (verb === undefined) return text;
  const end = text.length - verb.length - 1;
  return end > 0 && text.endsWith(`:${verb}`) ? text.slice(0, end) : undefined;
}

const SEVERAL = /\.\.\.\}(?::\w+)?$/;
const isSeveral = (text: string): boolean => SEVERAL.test(text);

/** Undefined where the path cannot have so many segments. */
function shapeOf({ segments, rest }: PathPattern, count: number): Shape | undefined {
  const more = count - segments.length;
  if (more === 0) return segments;
  if (rest < 0 || more < 0 || more + segments.length - rest > MOST_SEGMENTS) return undefined;
  const { name } = segments[rest] as Exclude<Segment, string>;
  return [...segments.slice(0, rest), ...Array<Segment>(more).fill({ name }), ...segments.slice(rest)];
}

/** True if a target with exactly this text names the path. */
export function fits(pattern: PathPattern, text: string): boolean {
  const segments = text.slice(1).split("/");
  const shape = shapeOf(pattern, segments.length);
  if (shape === undefined) return false;
  return shape.every((segment, index) =>
    isText(segment) ? segment === segments[index] : withoutVerb(segments[index] as string, segment.verb),
  );
}

/** Routes for the runtime, each with the paths that it stands for: those with a verb come first. */
type Arrangement = ReadonlyMap<string, readonly Arranged[]>;

interface Arranged {
  readonly path: string;
  readonly shape: Shape;
}

/** Of two paths that a target fits, the more specific one gets it; throws where neither is. */
export function arrangePaths(paths: readonly string[]): Arrangement {
  const wide = readWidePaths(paths);
  const arranged = new Map<string, (Arranged & { pattern?: PathPattern })[]>();
  for (const path of paths) if (!isWide(path)) arranged.set(path, [{ path, shape: [path] }]);
  for (const pattern of wide) {
    const { path, segments } = pattern;
    for (let count = segments.length; ; count++) {
      const shape = shapeOf(pattern, count);
      if (shape === undefined) break;
      // Between different routes the runtime itself prefers plain text to a parameter, from the left.
      const native = `/${shape.map((segment, index) => (isText(segment) ? segment : `:${segmentName(index)}`)).join("/")}`;
      const verb = verbOf(shape.at(-1));
      const known = arranged.get(native) ?? [];
      const rival = known.find((each) => verbOf(each.shape.at(-1)) === verb);
      if (rival?.pattern !== undefined && !isWithin(pattern, rival.pattern)) continue;
      const others = known.filter((each) => each !== rival);
      arranged.set(
        native,
        verb === undefined ? [...others, { path, shape, pattern }] : [{ path, shape, pattern }, ...others],
      );
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
  if (!haveOneEnd(one.segments.at(-1), other.segments.at(-1))) return false;
  return pairs(one, other).some(([shape, rival]) =>
    rival?.every((segment, index) => segment === shape[index] || !(isText(segment) && isText(shape[index]))),
  );
}

/** False where no text can be the last segment of both: no plain text has a verb. */
function haveOneEnd(one: Segment | undefined, other: Segment | undefined): boolean {
  const [verb, otherVerb] = [verbOf(one), verbOf(other)];
  if (verb === otherVerb) return true;
  return verb === undefined ? !isText(one) : otherVerb === undefined && !isText(other);
}

/** True if every target that fits `one` fits `other` too. */
function isWithin(one: PathPattern, other: PathPattern): boolean {
  return pairs(one, other).every(([shape, wider]) =>
    wider?.every((segment, index) => segment === shape[index] || isWider(segment, shape[index])),
  );
}

function isWider(segment: Segment, than: Segment | undefined): boolean {
  return !isText(segment) && (segment.verb === undefined || segment.verb === verbOf(than));
}

function isText(segment: Segment | undefined): segment is string {
  return typeof segment === "string";
}
