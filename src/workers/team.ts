// The workers of a primary: started, told what changes, replaced when they die or grow too large, drained at the end.

import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { RestartReason } from "../admin/parts.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { KvNews } from "../kv-index/kv-teller.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import type { CacheStatistics } from "../response-cache/cache.ts";
import { sumStatistics } from "../response-cache/sum-statistics.ts";
import { createFlights } from "./flights.ts";
import { createStateSource } from "./follow-state.ts";
import { createLoadsTeller } from "./loads.ts";
import { Member } from "./member.ts";
import type { Fixed, ProcessNumbers, State } from "./messages.ts";
import { createPrimaryDesk, type Owners } from "./owners.ts";
import { createSlots } from "./slots.ts";

interface TeamParts {
  size: number;
  command: readonly string[];
  env: Record<string, string | undefined>;
  owners: Owners;
  snapshot(): ConfigSnapshot;
  /** What does not change. */
  fixed: Fixed;
  clock: Clock;
  log: Logger;
}

interface WorkerRow {
  pid: number;
  state: Member["state"];
  startedAtMs: number;
  numbers: ProcessNumbers | undefined;
}

export type Team = ReturnType<typeof createTeam>;

/** The longest wait of an administrator's request for the report of a worker. */
const FLUSH_LIMIT_MS = 250;
/** Between looks at what may have changed without anybody saying so. */
const NEWS_INTERVAL_MS = 50;
/** How old the loads are that workers have from each other. */
const LOADS_INTERVAL_MS = 100;
const MEMORY_INTERVAL_MS = 1_000;
/** A worker that lived so long may be replaced at once when it dies. */
const LIVED_MS = 1_000;
/** A worker that is younger than this would be no smaller the next time. */
const STEADY_MS = 10_000;
/** A worker that is replaced sends its clients away for so long before it closes what is idle. */
const LEAVING_MS = 2_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

export function createTeam({ size, command, env, owners, snapshot, fixed, clock, log }: TeamParts) {
  const { now, wallTime } = clock;
  const deadlines = createDeadlines(now);
  const slots = createSlots(now);
  const flights = createFlights(now);
  const source = createStateSource(owners.fleet, slots, now);
  const members = new Set<Member>();
  /** Those for which another one is being started. */
  const leaving = new Set<Member>();
  /** CPU of those that are gone. */
  let pastCpuSeconds = 0;
  let pastCache: CacheStatistics | undefined;
  const restarts: Record<RestartReason, number> = { crash: 0, hang: 0, memory: 0, request: 0 };
  let failures = 0;
  let lastId = 0;
  let isEnding = false;
  let isNewsPlanned = false;
  let replacing: Promise<unknown> = Promise.resolve();
  const tellLoads = createLoadsTeller(owners.fleet, slots, now);
  const timers = [
    setInterval(tellNews, NEWS_INTERVAL_MS),
    setInterval(() => tellLoads(members), LOADS_INTERVAL_MS),
    setInterval(watchMemory, MEMORY_INTERVAL_MS),
  ];

  function tellNews(): void {
    isNewsPlanned = false;
    const news = source.news();
    if (news !== undefined) tell(news);
  }

  function tellNewsSoon(): void {
    if (isNewsPlanned) return;
    isNewsPlanned = true;
    queueMicrotask(tellNews);
  }

  function tell(state: State): void {
    for (const member of members) member.follow(state);
  }

  function tellKvNews(news: KvNews, from?: Member): void {
    for (const member of members) if (member !== from) member.tell("kvNews", news);
  }

  function roomChanged(backend: string, isFull: boolean): void {
    for (const member of members) member.tell("admission", { kind: "room", backend, isFull });
  }

  function askAll(name: "flush" | "ping"): Promise<unknown> {
    const asked = [...members].filter(({ state }) => state !== "starting");
    return Promise.all(asked.map((member) => member.ask(name, FLUSH_LIMIT_MS)));
  }

  /** Everything that has happened is known here. */
  async function flush(): Promise<void> {
    await askAll("flush");
  }

  function ended(member: Member, isWanted: boolean): void {
    members.delete(member);
    const { cache } = member.desk.numbers() ?? {};
    if (cache !== undefined) pastCache = { ...sumStatistics(cache, pastCache ? [pastCache] : []), connected: true };
    pastCpuSeconds += member.desk.numbers()?.cpuSeconds ?? 0;
    if (isWanted || isEnding || member.state === "starting") return;
    restarts[member.hasHung ? "hang" : "crash"]++;
    if (leaving.has(member)) return;
    failures = wallTime() - member.startedAtMs > LIVED_MS ? 0 : failures + 1;
    void replaceLost();
  }

  async function replaceLost(): Promise<void> {
    for (; ; failures++) {
      if (failures > 0) await Bun.sleep(backoffMs(failures));
      if (isEnding) return;
      const problem = await launch();
      if (problem === undefined || isEnding) return;
      log.error({ reason: problem }, "a worker could not be started");
    }
  }

  /** What keeps a new worker from listening; undefined when it does. */
  async function launch(): Promise<string | undefined> {
    let member: Member | undefined;
    const handOn = (news: KvNews) => tellKvNews(news, member);
    const id = ++lastId;
    const ownSocket = join(dirname(fixed.socket), `worker-${id}.sock`);
    const desk = createPrimaryDesk({
      ...{ owners, slots, flights, ownSocket, handOn, tellNews, now },
      tellAdmission: (message) => member?.tell("admission", message),
      // They hold back nothing that is sent at once.
      allHaveTold: () => askAll("ping"),
      circuitsMoved: tellNewsSoon,
    });
    try {
      member = new Member({ id, command, env, desk, deadlines, now, wallTime, log, ended });
    } catch (error) {
      return `a worker could not be started: ${error instanceof Error ? error.message : String(error)}`;
    }
    members.add(member);
    void member.exited.then(() => rmSync(ownSocket, { force: true }));
    return await member.start({
      ...fixed,
      ...source.present(),
      snapshot: snapshot(),
      kvIndex: owners.kvIndex.image(),
      ownSocket,
    });
  }

  async function replace(member: Member, reason: RestartReason): Promise<boolean> {
    leaving.add(member);
    const problem = await launch();
    leaving.delete(member);
    // It may have died meanwhile, which was counted.
    const isThere = members.has(member);
    if (problem !== undefined) {
      if (isEnding) return false;
      log.error({ reason: problem }, "a worker could not be started; the one that it was to replace stays");
      if (!isThere) void replaceLost();
      return false;
    }
    if (!isThere) return true;
    restarts[reason]++;
    member.drain(snapshot().settings.server.shutdown_timeout, LEAVING_MS);
    return true;
  }

  function watchMemory(): void {
    const limit = snapshot().settings.server.worker_memory_limit;
    if (limit === undefined) return;
    const large = [...members].find((member) => {
      const isSteady = wallTime() - member.startedAtMs > STEADY_MS;
      return isSteady && member.state === "running" && (member.desk.numbers()?.residentBytes ?? 0) > limit;
    });
    if (large === undefined) return;
    replacing = replacing.then(async () => {
      if (isEnding || large.state !== "running" || !members.has(large)) return;
      const bytes = large.desk.numbers()?.residentBytes;
      log.warn(
        { worker: large.pid, bytes, limit },
        "a worker takes more than server.worker_memory_limit: it is replaced",
      );
      await replace(large, "memory");
    });
  }

  return {
    /** What keeps them from listening; undefined when all of them do. */
    async start(): Promise<string | undefined> {
      const problems = await Promise.all(Array.from({ length: size }, launch));
      return problems.find((problem) => problem !== undefined);
    },
    /** Another version of the configuration, or of the files that it names. */
    follow(next: ConfigSnapshot): void {
      tell({ ...source.present(), snapshot: next });
    },
    /** What this process has learnt itself. */
    tellKvNews: (news: KvNews) => tellKvNews(news),
    roomChanged,
    forgetKvCaches(backendName: string | undefined): void {
      for (const member of members) member.forgetKvCaches(backendName);
    },
    flush,
    /** Everything that is known here is in force everywhere. */
    async settled(): Promise<void> {
      tellNews();
      await Promise.all([...members].map(({ followed }) => followed));
    },
    rows: (): WorkerRow[] =>
      [...members].map(({ pid, state, startedAtMs, desk }) => ({ pid, state, startedAtMs, numbers: desk.numbers() })),
    /** Since the start, by reason. */
    restarts: (): Readonly<typeof restarts> => restarts,
    numbers: (): ProcessNumbers[] => [...members].flatMap(({ desk }) => desk.numbers() ?? []),
    /** Of a cache on a server, which each process asks itself. */
    withTheirCounts(own: CacheStatistics): CacheStatistics {
      const present = [...members].map(({ desk }) => desk.numbers()?.cache);
      return sumStatistics(
        own,
        [pastCache, ...present].filter((statistics) => statistics !== undefined),
      );
    },
    pastCpuSeconds: () => pastCpuSeconds,
    /** New ones first, then the old ones drain; resolves with the number that was replaced when the new ones listen. */
    async restart(): Promise<number> {
      const round = replacing.then(async () => {
        const old = [...members].filter(({ state }) => state === "running");
        const replaced = await Promise.all(old.map((member) => replace(member, "request")));
        return replaced.filter(Boolean).length;
      });
      replacing = round.catch(() => {});
      return await round;
    },
    /** Resolves when all of them have ended. */
    async drain(timeoutMs: number): Promise<void> {
      isEnding = true;
      for (const timer of timers) clearInterval(timer);
      const news = setInterval(tellNews, NEWS_INTERVAL_MS);
      const ending = [...members];
      for (const member of ending) member.drain(timeoutMs);
      await Promise.all(ending.map(({ exited }) => exited));
      clearInterval(news);
    },
  };

  function backoffMs(count: number): number {
    return Math.min(FIRST_PAUSE_MS * 2 ** (count - 1), LONGEST_PAUSE_MS);
  }
}
