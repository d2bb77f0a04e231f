// Looks for requests, those in memory and those on disk, each of them once. A search on disk goes from the newest to the
// oldest in short steps between which other requests have their turn, and ends when it has taken too long.

import type { Clock } from "../lib/clock.ts";
import { otherWork } from "../lib/other-work.ts";
import { StorageError } from "../lib/resilient-database.ts";
import { createSerial } from "../lib/serial.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { Stories } from "../stats/stories.ts";
import type { Chunk } from "./chunk.ts";
import { type ColumnName, microseconds, readerOf, type Value } from "./columns.ts";
import type { RequestLog } from "./log.ts";
import type { ChunkEntry } from "./store.ts";

/** True of a request if at least one of the columns passes the test. */
export interface Condition {
  columns: readonly ColumnName[];
  test(value: Value): boolean;
}

interface RequestQuery {
  conditions: readonly Condition[];
  /** When they came, in milliseconds since 1970: inclusive, exclusive. */
  sinceMs?: number | undefined;
  untilMs?: number | undefined;
  /** Turns false when the client has left. */
  isWanted?(): boolean;
}

/** "time": the newest first; "duration": the longest first. */
export const SORTS = ["time", "duration"] as const;
export type Sort = (typeof SORTS)[number];

/** Where a request stands in a list; of those that came in the same moment, that with the higher id goes first. */
interface SearchPosition {
  durationUs: number;
  cameUs: number;
  id: string;
}

/** The last request of a page. */
export interface Mark extends SearchPosition {
  /** Number of matches up to this one, itself included. */
  passed: number;
}

interface PageQuery extends RequestQuery {
  sort: Sort;
  limit: number;
  /** Only requests behind this mark. */
  behind?: Mark | undefined;
}

interface Searched {
  /** So many fit, of all that was searched, earlier pages included. */
  total: number;
  /** Requests before this time were not searched, for want of time; undefined if all were. */
  searchedSinceMs: number | undefined;
}

interface FoundPage extends Searched {
  stories: RequestRecord[];
  /** Set if there may be more. */
  next: Mark | undefined;
}

export interface Group {
  /** Values of the requested columns, in their order. */
  values: Value[];
  count: number;
  firstMs: number;
  lastMs: number;
  /** Own id of the newest request. */
  exampleId: string;
}

interface Groups extends Searched {
  /** The largest first. */
  groups: Group[];
  /** Requests that fit and are in none of these. */
  omitted: number;
}

/** A search, and one that has found a full page and goes on only to count. */
const SEARCH_MS = 2_000;
const COUNT_MS = 100;
const ENOUGH = 10_000;
/** Time after which other work gets its turn. */
const STEP_MS = 5;
const MOST_GROUPS = 10_000;
/** One after the other: side by side they would take their steps in one turn. */
const MOST_WAITING = 64;
/** Requests with the same id of a client are looked for so near. */
const NEAR_MS = 15 * 60_000;
const OTHERS_MS = 200;

/** A match, of which a story is made only when needed. */
interface FoundRequest {
  cameUs: number;
  value(name: ColumnName): Value;
  story(): RequestRecord;
}

interface Listed {
  place: SearchPosition;
  story: RequestRecord;
}

/** Why a search ends before everything was searched. `restLastUs`: what is left has come by then. */
type IsEnough = (restLastUs: number) => boolean;

/** The part that was not searched: all requests before a moment. */
interface Rest {
  beforeUs: number;
  /** The disk cannot be read. */
  isLost: boolean;
}

interface RequestSearchParts {
  stories: Stories;
  /** Undefined: there are those in memory only. */
  log: Pick<RequestLog, "store" | "flush"> | undefined;
  clock: Clock;
}

export type RequestSearch = ReturnType<typeof createRequestSearch>;

// Long because these functions share what is searched.
export function createRequestSearch({ stories, log, clock }: RequestSearchParts) {
  const { now } = clock;
  const serial = createSerial(MOST_WAITING);

  function inMemory(story: RequestRecord): FoundRequest {
    return { cameUs: microseconds(stories.startedAt(story)), value: readerOf(story), story: () => story };
  }

  /** Returns the part that was not searched. */
  async function scan(
    query: RequestQuery,
    visit: (found: FoundRequest) => void,
    isEnough: IsEnough,
    limitMs = SEARCH_MS,
  ): Promise<Rest | undefined> {
    const startedMs = now();
    log?.flush();
    const kept = [...stories.newestFirst()];
    for (const story of kept) {
      const found = inMemory(story);
      if (isWithin(query, found.cameUs) && matches(query.conditions, found.value)) visit(found);
    }
    if (log === undefined) return undefined;
    const held = new Set(kept.map(({ id }) => id));
    const { store } = log;
    let restLastUs = Number.MAX_SAFE_INTEGER;
    let stepEndMs = now() + STEP_MS;
    let entry: ChunkEntry | undefined;
    try {
      for (let page = entriesBehind(undefined); page.length > 0; page = entriesBehind(entry)) {
        for (entry of page) {
          restLastUs = entry.last;
          if (isEnough(restLastUs) || query.isWanted?.() === false || now() - startedMs > limitMs) {
            return { beforeUs: restLastUs + 1, isLost: false };
          }
          if (now() > stepEndMs) {
            await otherWork();
            stepEndMs = now() + STEP_MS;
          }
          const chunk = store.chunk(entry.id);
          if (chunk !== undefined) visitChunk(chunk, query, held, visit);
        }
      }
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      return { beforeUs: Math.min(restLastUs, oldestUs(kept)), isLost: true };
    }
    return undefined;

    function entriesBehind(behind: ChunkEntry | undefined): ChunkEntry[] {
      const { sinceMs = 0, untilMs = Number.MAX_SAFE_INTEGER / 1000 } = query;
      return store.entries(Math.floor(sinceMs * 1000), Math.floor(untilMs * 1000), behind);
    }
  }

  function visitChunk(
    chunk: Chunk,
    query: RequestQuery,
    held: ReadonlySet<string>,
    visit: (found: FoundRequest) => void,
  ) {
    const open: Condition[] = [];
    for (const condition of query.conditions) {
      if (!condition.columns.every((name) => chunk.isConstant(name))) open.push(condition);
      else if (!matches([condition], (name) => chunk.value(name, 0))) return;
    }
    let at = 0;
    const value = (name: ColumnName) => chunk.value(name, at);
    for (; at < chunk.count; at++) {
      const cameUs = chunk.cameUs(at);
      if (!isWithin(query, cameUs) || !matches(open, value) || held.has(value("id") as string)) continue;
      const index = at;
      visit({ cameUs, value, story: () => stories.revive(chunk.told(index)) });
    }
  }

  function oldestUs(kept: readonly RequestRecord[]): number {
    const oldest = kept.at(-1);
    return microseconds(oldest === undefined ? clock.wallTime() : stories.startedAt(oldest));
  }

  async function page({ sort, limit, behind, ...query }: PageQuery): Promise<FoundPage> {
    const startedMs = now();
    const list: Listed[] = [];
    const passed = behind?.passed ?? 0;
    let total = passed;
    const isFull = () => list.length > limit;
    // Pages by time begin where the one before has ended.
    if (behind !== undefined && sort === "time") {
      query.untilMs = Math.min(query.untilMs ?? Number.POSITIVE_INFINITY, (behind.cameUs + 1) / 1000);
    }
    const rest = await scan(
      query,
      ({ cameUs, value, story }) => {
        const place = { cameUs, durationUs: value("durationUs") as number, id: value("id") as string };
        if (behind !== undefined && compare(sort, place, behind) <= 0) return;
        total++;
        const last = list.at(-1);
        if (isFull() && last !== undefined && compare(sort, place, last.place) > 0) return;
        list.splice(
          positionOf(list, (other) => compare(sort, other.place, place) < 0),
          0,
          { place, story: story() },
        );
        if (list.length > limit + 1) list.pop();
      },
      (restLastUs) => {
        const isDone = sort === "time" && isFull() && (list.at(-1)?.place.cameUs ?? 0) > restLastUs;
        return isDone && (total >= ENOUGH || now() - startedMs > COUNT_MS);
      },
    );
    // Something of the rest may stand between those that came before it begins: they are for the next page.
    const canGoOn = rest !== undefined && sort === "time" && !rest.isLost;
    const sure = canGoOn ? list.filter(({ place }) => place.cameUs >= rest.beforeUs) : list;
    const shown = sure.slice(0, limit);
    const last = sure.length > limit ? shown.at(-1)?.place : undefined;
    const next = last ?? (canGoOn ? { durationUs: 0, cameUs: rest.beforeUs, id: "" } : undefined);
    return {
      stories: shown.map(({ story }) => story),
      total,
      next: next && { ...next, passed: passed + shown.length },
      searchedSinceMs: inMilliseconds(rest),
    };
  }

  async function groups(query: RequestQuery, by: readonly ColumnName[], limit: number): Promise<Groups> {
    const found = new Map<string, Group>();
    let total = 0;
    const rest = await scan(
      query,
      ({ cameUs, value }) => {
        total++;
        const values = by.map(value);
        const key = JSON.stringify(values);
        const group = found.get(key);
        if (group === undefined) {
          if (found.size >= MOST_GROUPS) return;
          const exampleId = value("id") as string;
          found.set(key, { values, count: 1, firstMs: cameUs / 1000, lastMs: cameUs / 1000, exampleId });
          return;
        }
        group.count++;
        group.firstMs = Math.min(group.firstMs, cameUs / 1000);
        if (cameUs / 1000 <= group.lastMs) return;
        group.lastMs = cameUs / 1000;
        group.exampleId = value("id") as string;
      },
      () => false,
    );
    const sorted = [...found.values()].sort((a, b) => b.count - a.count || b.lastMs - a.lastMs).slice(0, limit);
    const omitted = total - sorted.reduce((sum, { count }) => sum + count, 0);
    return { groups: sorted, total, omitted, searchedSinceMs: inMilliseconds(rest) };
  }

  /** From disk, by the gateway's own id; undefined as well while the disk cannot be read. */
  function onDisk(id: string): RequestRecord | undefined {
    try {
      log?.flush();
      const told = log?.store.find(id);
      return told && stories.revive(told);
    } catch (error) {
      if (error instanceof StorageError) return undefined;
      throw error;
    }
  }

  /** By either id, with its steps where they are kept. The gateway's own goes first: a client may have chosen it. */
  async function find(id: string): Promise<RequestRecord | undefined> {
    const kept = stories.find(id);
    if (kept?.id === id) return kept.isOutlined ? (onDisk(id) ?? kept) : kept;
    const own = onDisk(id);
    if (own !== undefined) return own;
    if (kept !== undefined) return kept.isOutlined ? (onDisk(kept.id) ?? kept) : kept;
    const conditions = [{ columns: ["requestId"] as const, test: (value: Value) => value === id }];
    const newest: { id: string; cameUs: number } = { id: "", cameUs: 0 };
    const see = ({ cameUs, value }: FoundRequest) => {
      if (cameUs > newest.cameUs) Object.assign(newest, { cameUs, id: value("id") });
    };
    await scan({ conditions }, see, (restLastUs) => newest.cameUs > restLastUs);
    return newest.id === "" ? undefined : onDisk(newest.id);
  }

  /**
   * A request of a key, by the gateway's own id; by the client's among those in memory. For clients: it reads one row at most, and
   * another key that chooses the same id for its requests hides none.
   */
  function findOf(keyId: string | undefined, id: string): RequestRecord | undefined {
    const own = stories.find(id);
    const found = own?.id === id ? own : onDisk(id);
    if (found !== undefined) return found.keyId === keyId ? found : undefined;
    return stories.newestOf(keyId, id);
  }

  /** Own ids of further requests with the same id of a client: those in memory, and on disk those that came about then. */
  async function others(story: RequestRecord, limit: number): Promise<string[]> {
    const conditions = [{ columns: ["requestId"] as const, test: (value: Value) => value === story.requestId }];
    const aroundMs = stories.startedAt(story);
    const found: { id: string; cameUs: number }[] = [];
    const add = ({ cameUs, value }: FoundRequest) => {
      const id = value("id") as string;
      if (id !== story.id) found.push({ id, cameUs });
    };
    const near = { conditions, sinceMs: aroundMs - NEAR_MS, untilMs: aroundMs + NEAR_MS };
    await scan(near, add, () => found.length >= limit, OTHERS_MS);
    return found
      .sort((a, b) => b.cameUs - a.cameUs)
      .slice(0, limit)
      .map(({ id }) => id);
  }

  return {
    /** Each undefined when too many searches wait already. */
    page: (query: PageQuery) => serial.run(() => page(query)),
    groups: (query: RequestQuery, by: readonly ColumnName[], limit: number) =>
      serial.run(() => groups(query, by, limit)),
    find: (id: string) => serial.run(() => find(id)),
    findOf,
    others: (story: RequestRecord, limit: number) => serial.run(() => others(story, limit)),
  };
}

function matches(conditions: readonly Condition[], value: (name: ColumnName) => Value): boolean {
  return conditions.every(({ columns, test }) => columns.some((name) => test(value(name))));
}

function isWithin({ sinceMs = 0, untilMs = Number.POSITIVE_INFINITY }: RequestQuery, cameUs: number): boolean {
  return cameUs >= sinceMs * 1000 && cameUs < untilMs * 1000;
}

/** Below zero: a goes first. */
function compare(sort: Sort, a: SearchPosition, b: SearchPosition): number {
  const byDuration = sort === "duration" ? b.durationUs - a.durationUs : 0;
  return byDuration || b.cameUs - a.cameUs || compareIds(b.id, a.id);
}

/** They end in a number, which grows. */
function compareIds(a: string, b: string): number {
  return a.length - b.length || (a === b ? 0 : a < b ? -1 : 1);
}

/** Of the first one behind which a new one belongs; the list is in order. */
function positionOf<Entry>(list: readonly Entry[], isBefore: (entry: Entry) => boolean): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(list[middle] as Entry)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function inMilliseconds(rest: Rest | undefined): number | undefined {
  return rest && rest.beforeUs / 1000;
}
