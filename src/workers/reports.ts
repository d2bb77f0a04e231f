// What a worker tells of its requests: gathered, and reported each quarter of a second or when the primary asks.

import type { BackendCounters } from "../backends/backend.ts";
import type { Clock } from "../lib/clock.ts";
import { watchEventLoopLag } from "../metrics/event-loop-lag.ts";
import { createReporter, type RequestReporter } from "../pipeline/observe.ts";
import type { SpansInUse } from "../pipeline/request-spans.ts";
import { refusedStory, Story, type StoryEnd, type StoryStart } from "../stats/stories.ts";
import type { Channel } from "./channel.ts";
import type { BackendNumbers, GatewayEvent, PrimaryDesk, ProcessNumbers, Report } from "./messages.ts";

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

type OpenStory = Story & { place: number };

export function createReports({ clock, channel, servers, counters, spans }: ReportsParts) {
  let openRequests = () => 0;
  const lag = watchEventLoopLag(clock.now);
  const wallOffsetMs = clock.wallTime() - clock.now();
  /** In no order. */
  const open: OpenStory[] = [];
  let begun: OpenStory[] = [];
  let ended: Story[] = [];
  let gathered: Pick<Report, "attempts" | "finished" | "turnedAway" | "errors" | "events"> = newGathered();
  const before = new WeakMap<BackendCounters, BackendNumbers & { total: number; failed: number }>();
  const timers = [setInterval(() => report(false), INTERVAL_MS), setInterval(tellLoads, LOADS_MS)];

  function event(told: GatewayEvent): void {
    gathered.events.push(told);
  }

  const stories = {
    begin(start: StoryStart): Story {
      const story = new Story(start, clock.now) as OpenStory;
      story.place = open.push(story) - 1;
      begun.push(story);
      return story;
    },
    refused(start: StoryStart, end: StoryEnd): void {
      isOver(refusedStory(start, end, clock.now));
    },
    finish(story: Story, end: StoryEnd): void {
      story.finish(end);
      const over = story as OpenStory;
      const last = open.pop() as OpenStory;
      if (last !== over) {
        open[over.place] = last;
        last.place = over.place;
      }
      isOver(over);
    },
  };

  function isOver(story: Story): void {
    ended.push(story);
    if (ended.length >= MAX_GATHERED) report(false);
  }

  const reporter: RequestReporter = createReporter(
    {
      attempted(...attempt) {
        gathered.attempts.push(attempt);
      },
      finished(request) {
        const retried = request.retried?.map(({ model, backend }) => ({ model, backend }));
        gathered.finished.push({ ...request, retried });
      },
      turnedAway(caller) {
        gathered.turnedAway.push(caller);
      },
    },
    stories,
    { record: (error) => gathered.errors.push(error) },
    {
      dropped(feature) {
        event({ kind: "dropped", feature });
      },
      refused(status, code) {
        event({ kind: "refused", status, code });
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
    const told = new Set(isWhole ? [...begun, ...ended, ...open] : [...begun, ...ended]);
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    channel.tell("report", {
      ...gathered,
      stories: [...told].map((story) => story.tell(wallOffsetMs)),
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
    gathered = newGathered();
    begun = [];
    ended = [];
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

function newGathered(): Pick<Report, "attempts" | "finished" | "turnedAway" | "errors" | "events"> {
  return { attempts: [], finished: [], turnedAway: [], errors: [], events: [] };
}
