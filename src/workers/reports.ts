// What a worker tells of its requests: gathered, and reported each quarter of a second or when the primary asks.

import type { BackendCounters } from "../backends/backend.ts";
import type { Clock } from "../lib/clock.ts";
import { watchEventLoopLag } from "../metrics/event-loop-lag.ts";
import { createReporter, type RequestReporter } from "../pipeline/observe.ts";
import type { SpansInUse } from "../pipeline/request-spans.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { Channel } from "./channel.ts";
import type { BackendNumbers, GatewayEvent, Gathered, PrimaryDesk, ProcessNumbers } from "./messages.ts";

const INTERVAL_MS = 250;
/** Others choose backends by what is under way here. */
const LOADS_MS = 100;
/** Whatever has gathered before that leaves at once. */
const MAX_GATHERED = 1_000;

interface ReportsParts {
  clock: Clock;
  channel: Channel<PrimaryDesk>;
  /** Servers that this process asks itself. */
  servers(): Pick<ProcessNumbers, "redis" | "cache" | "tracesUp">;
  /** The counters behind the names that the primary knows, those of backends that drain included. */
  counters(): Iterable<{ slot: number; counters: BackendCounters; forget(): void }>;
  /** Traces go to their receiver from here. */
  spans: SpansInUse;
}

export function createReports({ clock, channel, servers, counters, spans }: ReportsParts) {
  let openRequests = () => 0;
  const lag = watchEventLoopLag(clock.now);
  const wallOffsetMs = clock.wallTime() - clock.now();
  const open = new Set<RequestRecord>();
  let begun: RequestRecord[] = [];
  let gathered: Gathered = { attempts: [], requests: [] };
  let events: GatewayEvent[] = [];
  const before = new WeakMap<BackendCounters, BackendNumbers & { total: number; failed: number }>();
  const timers = [setInterval(() => report(false), INTERVAL_MS), setInterval(tellLoads, LOADS_MS)];

  function event(told: GatewayEvent): void {
    events.push(told);
  }

  const reporter: RequestReporter = createReporter(
    {
      attempted(backend, outcome, failure, durationMs, firstTokenMs) {
        gathered.attempts.push({ backend, outcome, failure, durationMs, firstTokenMs });
      },
      begun(record) {
        open.add(record);
        begun.push(record);
      },
      over(record) {
        open.delete(record);
        gathered.requests.push(record.tell(wallOffsetMs));
        if (gathered.requests.length >= MAX_GATHERED) report(false);
      },
    },
    spans,
  );

  function numbersOfBackends(): BackendNumbers[] {
    const numbers: BackendNumbers[] = [];
    for (const { slot, counters: now, forget } of counters()) {
      const was = before.get(now);
      const { inFlight, totalRequests: total, failedRequests: failed, credentialError, latencyMs, expectedMs } = now;
      const latencyAgeMs = clock.now() - now.latencyAtMs;
      const attempts = total - (was?.total ?? 0);
      const failures = failed - (was?.failed ?? 0);
      const isSame = was?.inFlight === inFlight && was.credentialError === credentialError;
      if (isSame && attempts === 0 && failures === 0) {
        if (inFlight === 0) forget();
        continue;
      }
      const told = { slot, inFlight, attempts, failures, credentialError, latencyMs, expectedMs, latencyAgeMs };
      before.set(now, { ...told, total, failed });
      numbers.push(told);
    }
    return numbers;
  }

  function tellLoads(): void {
    const backends = numbersOfBackends();
    if (backends.length > 0) channel.tell("loads", backends);
  }

  /** `isWhole`: an administrator looks now; requests under way are reported, too. */
  function report(isWhole: boolean): void {
    const running = isWhole ? [...open] : begun.filter((record) => open.has(record));
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    gathered.requests.push(...running.map((record) => record.tell(wallOffsetMs)));
    gathered.requests.sort((first, second) => first.startedAtMs - second.startedAtMs);
    channel.tell("report", {
      gathered: JSON.stringify(gathered),
      events,
      backends: numbersOfBackends(),
      process: {
        openStreams: reporter.openStreams(),
        openRequests: openRequests(),
        lagSeconds: lag.read(),
        residentBytes: memory.rss,
        heapBytes: memory.heapUsed,
        cpuSeconds: (user + system) / 1e6,
        ...servers(),
      },
    });
    channel.flush();
    gathered = { attempts: [], requests: [] };
    events = [];
    begun = [];
  }

  return {
    reporter,
    event,
    report,
    /** How many requests of any kind are open is asked there. */
    watch(requests: () => number): void {
      openRequests = requests;
    },
    stop(): void {
      for (const timer of timers) clearInterval(timer);
      lag.stop();
    },
  };
}
