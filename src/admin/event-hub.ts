// The live events of GET /admin/events: gathered for a moment, put into words once, and sent to everyone who listens.
// Without a listener there is no work at all.

import { replacedFields } from "../config/change/diff.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Administrator } from "../server/endpoint.ts";
import type { Happenings, HappeningsListener } from "../stats/happenings.ts";
import type { Stories } from "../stats/stories.ts";
import { createEventListener, type EventListener } from "./event-listener.ts";
import { RequestBatch } from "./request-batch.ts";

interface EventHubParts {
  happenings: Happenings;
  stories: Pick<Stories, "startedAt">;
  store: Pick<ConfigStore, "subscribe">;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
  maxListeners?: number;
  heartbeatMs?: number;
}

const MAX_LISTENERS = 256;
/** A first event is sent so soon, and what follows it so much later, together. */
const FIRST_MS = 20;
const INTERVAL_MS = 500;
/** Less than what proxies and the runtime take for a dead connection. */
const HEARTBEAT_MS = 15_000;
/** Time after which a browser reconnects. */
const RETRY_MS = 2_000;
/** Changes of backends, budgets and routes that are sent together; of more of them only the number is. */
const MAX_CHANGES = 256;

const encoder = new TextEncoder();
const GREETING = encoder.encode(`retry: ${RETRY_MS}\n: events of Signalbox\n\n`);

const CHANGES = ["health", "circuit", "budget", "route"] as const;
type ChangeEvent = (typeof CHANGES)[number];

const NONE_LEFT: Readonly<Record<ChangeEvent, number>> = { health: 0, circuit: 0, budget: 0, route: 0 };

// Long because these functions share what is gathered and who listens.
export function createEventHub(parts: EventHubParts) {
  const { happenings, stories, store, clock, log, maxListeners = MAX_LISTENERS, heartbeatMs = HEARTBEAT_MS } = parts;
  const listeners = new Map<EventListener, Pick<Administrator, "isStillIn">>();
  const batch = new RequestBatch(stories);
  let changes: { event: ChangeEvent; data: object }[] = [];
  let left = { ...NONE_LEFT };
  let versions: object[] = [];
  let lastId = 0;
  let flushedMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  let heartbeat: Timer | undefined;
  let unsubscribe: (() => void) | undefined;

  /** Soon, but not sooner after the last time than the interval. */
  function flushSoon(): void {
    timer ??= setTimeout(flush, Math.max(FIRST_MS, flushedMs + INTERVAL_MS - clock.now()));
  }

  function toText(event: string, data: object): string {
    return `id: ${++lastId}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  }

  /** All events as one piece, which is the same for everyone. */
  function flush(): void {
    timer = undefined;
    const nowMs = clock.now();
    let text = "";
    for (const version of versions) text += toText("config", version);
    for (const { event, data } of changes) text += toText(event, data);
    for (const event of CHANGES) {
      if (left[event] > 0) text += toText(event, { at: at(), omitted: left[event] });
    }
    if (!batch.isEmpty) text += toText("request", { at: at(), ...batch.take(nowMs - flushedMs) });
    flushedMs = nowMs;
    [changes, versions, left] = [[], [], { ...NONE_LEFT }];
    if (text !== "") send(encoder.encode(text));
  }

  function send(bytes: Uint8Array): void {
    for (const listener of [...listeners.keys()]) listener.send(bytes);
  }

  function at(): string {
    return new Date(clock.wallTime()).toISOString();
  }

  /** Ends the streams of administrators who would not be let in any more. */
  function checkAccess(): void {
    for (const [listener, administrator] of [...listeners]) if (!administrator.isStillIn()) listener.end();
  }

  function changed(event: ChangeEvent, change: object): void {
    if (changes.length < MAX_CHANGES) changes.push({ event, data: { at: at(), ...change } });
    else left[event]++;
    flushSoon();
  }

  const hears: HappeningsListener = {
    requestEnded(story) {
      batch.add(story);
      flushSoon();
    },
    healthChanged({ backend, from, to, reason }) {
      changed("health", { backend, from, to, reason: reason ?? null });
    },
    circuitChanged({ backend, from, to }) {
      changed("circuit", { backend, from, to });
    },
    budgetCrossed({ subject, ...change }) {
      changed("budget", { ...change, subject: subject === "" ? null : subject });
    },
    routeRolledBack(change) {
      changed("route", change);
    },
    accessChanged: checkAccess,
    closing() {
      for (const listener of [...listeners.keys()]) listener.end();
    },
  };

  function begin(): void {
    flushedMs = clock.now() - INTERVAL_MS;
    happenings.listen(hears);
    heartbeat = setInterval(() => {
      checkAccess();
      send(encoder.encode(`event: heartbeat\ndata: ${JSON.stringify({ at: at() })}\n\n`));
    }, heartbeatMs);
    unsubscribe = store.subscribe(({ version }, { version: previous_version }, fields) => {
      if (version === previous_version) return []; // files that it names were read again
      const sections = [...new Set(fields.map(({ section }) => section))];
      versions.push({ at: at(), version, previous_version, sections, replaced: replacedFields(fields) });
      flushSoon();
      // When all parts have followed the change.
      queueMicrotask(checkAccess);
      return [];
    });
  }

  function stop(): void {
    happenings.listen(undefined);
    unsubscribe?.();
    clearInterval(heartbeat);
    clearTimeout(timer);
    timer = undefined;
    batch.clear();
    [changes, versions, left] = [[], [], { ...NONE_LEFT }];
  }

  return {
    get size(): number {
      return listeners.size;
    },
    /** The body of an answer; throws 503 where there are too many already. */
    listen(administrator: Pick<Administrator, "isStillIn">): ReadableStream {
      if (happenings.isClosing) throw unavailable("The gateway is shutting down.");
      if (listeners.size >= maxListeners) {
        throw unavailable(`There are ${maxListeners} listeners already, which is the most: close one of them.`);
      }
      const listener = createEventListener(GREETING, (isDropped) => {
        listeners.delete(listener);
        if (isDropped)
          log.warn({ listeners: listeners.size }, "a listener of /admin/events fell behind and was dropped");
        if (listeners.size === 0) stop();
      });
      if (listeners.size === 0) begin();
      listeners.set(listener, administrator);
      return listener.body;
    },
  };
}

function unavailable(message: string): GatewayError {
  return new GatewayError(ERRORS.eventsUnavailable, message, { headers: { "Retry-After": "10" } });
}
