// Requests as they lie on disk: some hundred of them as one chunk, column by column. Columns compress to a fraction of what
// rows need, are written in one go, and are searched without an object per request. Steps are apart: a search needs none.

import type { Outcome } from "../stats/outcome.ts";
import type { AttemptStep, Story, StoryStep, ToldStory } from "../stats/stories.ts";

/** A request that is over. */
export interface EndedRequest {
  story: Story;
  /** When it came, in microseconds since 1970. */
  cameUs: number;
  /** In the order of the columns. */
  values: readonly Value[];
}

export type Value = string | number | boolean | readonly string[] | null | undefined;

/** What is known of every request, and what it can be searched by. Columns may be added; older chunks are without them. */
const COLUMNS = [
  ...([
    "id",
    "requestId",
    "operation",
    "model",
    "answeredBy",
    "stream",
    "status",
    "failure",
    "outcome",
    "code",
  ] as const),
  // The backend of the last attempt, and of several attempts every one that was asked.
  ...(["endedBy", "backend", "backends", "attempts", "keyId", "userId", "organizationId", "clientAddress"] as const),
  ...(["target", "durationUs", "firstByteUs", "backendUs", "promptTokens", "completionTokens"] as const),
  ...(["cache", "cacheReason"] as const),
];

export type ColumnName = (typeof COLUMNS)[number];

const PLACES = Object.fromEntries(COLUMNS.map((name, place) => [name, place])) as Readonly<Record<ColumnName, number>>;

/** In the order of the columns. One list of properties takes a third of the time that a function for each column would. */
export function valuesOf(story: Story): Value[] {
  const { attempts } = story;
  return [
    story.id,
    story.requestId,
    story.operation,
    story.model,
    story.answeredBy,
    story.stream,
    story.status,
    story.failure,
    story.outcome,
    story.code,
    story.endedBy,
    story.backend,
    attempts > 1 ? story.backends : undefined,
    attempts,
    story.keyId,
    story.userId,
    story.organizationId,
    story.clientAddress,
    story.target,
    microseconds(story.durationMs ?? story.sinceStartMs),
    microseconds(story.firstByteMs),
    microseconds(story.backendMs),
    story.promptTokens,
    story.completionTokens,
    story.cache,
    story.cacheReason,
  ];
}

export function valueIn(values: readonly Value[], name: ColumnName): Value {
  return values[PLACES[name]];
}

/** A column whose values are all the same has one; one without values is left out. */
type Column = readonly Value[];
/** Times are of the first request. */
type Columns = Partial<Record<ColumnName, Column>> & { firstUs: number; afterUs: readonly number[] };

export function microseconds(durationMs: number): number;
export function microseconds(durationMs: number | undefined): number | undefined;
export function microseconds(durationMs: number | undefined): number | undefined {
  return durationMs === undefined ? undefined : small(Math.round(durationMs * 1000));
}

/** The runtime writes numbers that it knows as small integers as JSON in a fraction of the time. */
function small(whole: number): number {
  return Math.abs(whole) < 2 ** 31 ? whole | 0 : whole;
}

export function encodeRows(requests: readonly EndedRequest[]): Uint8Array {
  const firstUs = requests[0]?.cameUs ?? 0;
  const rows = requests.map(({ values }) => values);
  const columns: Record<string, Column | number> = {
    firstUs,
    afterUs: requests.map(({ cameUs }) => small(cameUs - firstUs)),
  };
  for (let place = 0; place < COLUMNS.length; place++) {
    const column = columnOf(rows, place);
    if (column !== undefined) columns[COLUMNS[place] as ColumnName] = column;
  }
  return compress(columns);
}

function columnOf(rows: readonly (readonly Value[])[], place: number): Column | undefined {
  const first = rows[0]?.[place];
  let same = 1;
  while (same < rows.length && (rows[same] as readonly Value[])[place] === first) same++;
  if (same < rows.length) return rows.map((values) => values[place]);
  return first === undefined ? undefined : [first];
}

function inColumn(column: Column | undefined, index: number): Value {
  return column?.[column.length === 1 ? 0 : index] ?? undefined;
}

/** Most requests have one step, an attempt that answered, of which the request itself says nearly all: see plainAttempt(). */
interface WrittenSteps {
  /** In the order of PLAIN. */
  plain: (Column | undefined)[];
  /** Null: one of those. Undefined: all are. */
  further?: (readonly StoryStep[] | null)[] | undefined;
  /** How many more there were of each; undefined: none of any. */
  dropped?: readonly number[] | undefined;
}

/** Of plain attempts. */
const PLAIN = ["atUs", "firstByteUs", "durationUs", "status", "strategy", "scoreMeans"] as const;
const NO_VALUES: readonly Value[] = [];
/** Those that every attempt has. */
const MEMBERS_OF_ATTEMPT = 11;

export function encodeSteps(requests: readonly EndedRequest[]): Uint8Array {
  const plain: (readonly Value[])[] = [];
  let further: WrittenSteps["further"];
  for (let index = 0; index < requests.length; index++) {
    const { story } = requests[index] as EndedRequest;
    const { steps } = story;
    const values = plainAttempt(story, steps);
    plain.push(values ?? NO_VALUES);
    if (values === undefined) further ??= new Array(index).fill(null);
    further?.push(values === undefined ? steps.map(asWritten) : null);
  }
  return compress({
    plain: PLAIN.map((_, place) => columnOf(plain, place)),
    further,
    dropped: requests.some(({ story }) => story.droppedSteps > 0)
      ? requests.map(({ story }) => story.droppedSteps)
      : undefined,
  } satisfies WrittenSteps);
}

/** What the request does not say of its only step; undefined where it has others, or one of which there is more to say. */
function plainAttempt(
  { backend, model, answeredBy }: Story,
  steps: readonly StoryStep[],
): readonly Value[] | undefined {
  const [step] = steps;
  if (steps.length !== 1 || step?.kind !== "attempt" || Object.keys(step).length !== MEMBERS_OF_ATTEMPT)
    return undefined;
  const isSaid = step.backend === backend && step.model === (answeredBy ?? model);
  if (!isSaid || step.candidates !== undefined || step.failure !== undefined) return undefined;
  const { atMs, firstByteMs, durationMs, status, strategy, scoreMeans } = step;
  return [microseconds(atMs), microseconds(firstByteMs), microseconds(durationMs), status, strategy, scoreMeans];
}

/** Microseconds are enough, and their digits are most of what a step needs on disk. */
function asWritten(step: StoryStep): StoryStep {
  const atMs = short(step.atMs) as number;
  if (step.kind !== "attempt") return { ...step, atMs };
  const { durationMs, firstByteMs } = step;
  const written = { ...step, atMs, durationMs: short(durationMs), firstByteMs: short(firstByteMs) };
  if (step.detail !== undefined && isInBackendsWords(step)) delete written.detail;
  return written;
}

/** Backends quote in their errors what they were asked: no content of a request is written. */
function isInBackendsWords({ failure = "" }: AttemptStep): boolean {
  return failure.startsWith("status_") || failure === "told_in_stream";
}

function short(durationMs: number | undefined): number | undefined {
  return durationMs === undefined ? undefined : Math.round(durationMs * 1000) / 1000;
}

/** Those of one request. */
export function decodeSteps(
  body: Uint8Array,
  index: number,
  { backend = "", model, answeredBy = model }: ToldStory,
): Pick<ToldStory, "steps" | "droppedSteps"> {
  const { plain, further, dropped } = decompress(body) as WrittenSteps;
  const droppedSteps = dropped?.[index] ?? 0;
  const steps = further?.[index];
  if (steps != null) return { steps, droppedSteps };
  const value = (name: (typeof PLAIN)[number]) => inColumn(plain[PLAIN.indexOf(name)] ?? undefined, index);
  const step: AttemptStep = {
    kind: "attempt",
    atMs: (value("atUs") as number) / 1000,
    backend,
    model: answeredBy,
    strategy: value("strategy") as string | undefined,
    scoreMeans: value("scoreMeans") as string | undefined,
    candidates: undefined,
    firstByteMs: milliseconds(value("firstByteUs") as number | undefined),
    durationMs: milliseconds(value("durationUs") as number | undefined),
    status: value("status") as number | undefined,
    failure: undefined,
  };
  return { steps: [step], droppedSteps };
}

/** Of its rows only what is asked for becomes an object. */
export class Chunk {
  readonly #columns: Columns;

  constructor(body: Uint8Array) {
    this.#columns = decompress(body) as Columns;
  }

  get count(): number {
    return this.#columns.afterUs.length;
  }

  cameUs(index: number): number {
    return this.#columns.firstUs + (this.#columns.afterUs[index] as number);
  }

  value(name: ColumnName, index: number): Value {
    return inColumn(this.#columns[name], index);
  }

  /** Whether the column says the same of every request. */
  isConstant(name: ColumnName): boolean {
    return (this.#columns[name]?.length ?? 1) === 1;
  }

  indexOf(name: ColumnName, value: Value): number {
    for (let index = 0; index < this.count; index++) if (this.value(name, index) === value) return index;
    return -1;
  }

  /** Without its steps. */
  told(index: number): ToldStory {
    const text = (name: ColumnName) => this.value(name, index) as string | undefined;
    const number = (name: ColumnName) => this.value(name, index) as number | undefined;
    const duration = (name: ColumnName) => milliseconds(number(name));
    const backend = text("backend");
    const attempts = number("attempts") ?? 0;
    const only = backend === undefined || attempts === 0 ? [] : [backend];
    return {
      id: text("id") ?? "",
      requestId: text("requestId") ?? "",
      operation: text("operation") ?? "",
      model: text("model") ?? "",
      stream: this.value("stream", index) === true,
      startedAtMs: this.cameUs(index) / 1000,
      keyId: text("keyId"),
      userId: text("userId"),
      organizationId: text("organizationId"),
      clientAddress: text("clientAddress"),
      target: text("target"),
      status: number("status") ?? 0,
      durationMs: duration("durationUs") ?? 0,
      failure: text("failure"),
      outcome: (text("outcome") ?? "failed") as Outcome,
      code: text("code"),
      endedBy: text("endedBy"),
      backend,
      answeredBy: text("answeredBy"),
      firstByteMs: duration("firstByteUs"),
      backendMs: duration("backendUs"),
      promptTokens: number("promptTokens"),
      completionTokens: number("completionTokens"),
      cache: text("cache") as ToldStory["cache"],
      cacheReason: text("cacheReason"),
      steps: [],
      droppedSteps: 0,
      outline: { attempts, backends: (this.value("backends", index) as readonly string[] | undefined) ?? only },
    };
  }
}

function milliseconds(durationUs: number | undefined): number | undefined {
  return durationUs === undefined ? undefined : durationUs / 1000;
}

/** The least that zstd can do: more takes longer than it saves. */
const LEVEL = 1;

function compress(value: unknown): Uint8Array {
  return Bun.zstdCompressSync(JSON.stringify(value), { level: LEVEL });
}

function decompress(body: Uint8Array): unknown {
  return JSON.parse(Bun.zstdDecompressSync(body).toString());
}
