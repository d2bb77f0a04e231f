// What the workers ask their primary to do, done by the owners of the states; and what they report, put to the rest.

import type { Admission } from "../admission/admission.ts";
import { createAdmissionDesk, type FromOwner } from "../admission/remote-admission.ts";
import type { BackendCounters } from "../backends/backend.ts";
import { NOTHING } from "../budgets/amounts.ts";
import type { Budgets, Reservation } from "../budgets/budgets.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { KvIndexImage } from "../kv-index/kv-index.ts";
import type { KvNews } from "../kv-index/kv-teller.ts";
import type { GatewayEvents } from "../metrics/gateway-events.ts";
import type { RecordSink } from "../pipeline/observe.ts";
import type { createResponseStore } from "../pipeline/response-store.ts";
import type { MemoryLimiter } from "../rate-limit/limiter.ts";
import type { RecordingSink } from "../recording/recording.ts";
import type { RequestKey, ResponseCache } from "../response-cache/cache.ts";
import type { Permit } from "../routing/circuits.ts";
import type { RequestRecord, ToldRecord } from "../stats/request-record.ts";
import type { Stories } from "../stats/stories.ts";
import type { Flights } from "./flights.ts";
import type { BackendNumbers, GatewayEvent, Gathered, PrimaryDesk, ProcessNumbers, Report } from "./messages.ts";
import type { Slots } from "./slots.ts";

/** Those of a gateway. */
export interface Owners {
  fleet: Fleet;
  limiter(): MemoryLimiter;
  budgets(): Budgets;
  /** Undefined while no request waits for slots. */
  admission(): Admission | undefined;
  /** What no server keeps for all; undefined while the cache is off. */
  answers(): ResponseCache | undefined;
  kvIndex: { heard(news: KvNews): void; image(): KvIndexImage | undefined };
  responses: ReturnType<typeof createResponseStore>;
  /** Where requests are counted. */
  books: RecordSink;
  stories: Stories;
  events: GatewayEvents;
  recordings: RecordingSink;
  /** A worker has stored a file. */
  fileStored(): void;
}

interface DeskParts {
  owners: Owners;
  slots: Slots;
  /** Reports of all workers up to now have come. */
  allHaveTold(): Promise<unknown>;
  flights: Flights;
  ownSocket: string;
  /** The worker hears of the queue. */
  tellAdmission(message: FromOwner): void;
  /** The other workers hear of it. */
  handOn(news: KvNews): void;
  /** Circuits may have changed. */
  circuitsMoved(): void;
  /** What the workers have to know is sent before anything else. */
  tellNews(): void;
  now(): number;
}

/** Why a request is over whose process has ended. */
const PROCESS_LOST = "process_lost";
/** What a client saw whose connection broke. */
const LOST_STATUS = 502;

export type WorkerDeskOfPrimary = ReturnType<typeof createPrimaryDesk>;

/** One for each worker: it knows what of the common numbers is this worker's. */
export function createPrimaryDesk(parts: DeskParts) {
  const { owners, slots, flights, ownSocket, allHaveTold, handOn, tellAdmission, circuitsMoved, tellNews, now } = parts;
  const { fleet, responses, stories } = owners;
  const admission = createAdmissionDesk(owners.admission, tellAdmission);
  const leases = new Map<number, Permit>();
  const reservations = new Map<number, Reservation>();
  /** Requests that are under way, by their own ids. */
  const running = new Map<string, RequestRecord>();
  const inFlight = new Map<BackendCounters, number>();
  let numbers: ProcessNumbers | undefined;
  let isGone = false;

  function count({ slot, ...told }: BackendNumbers): void {
    const counters = slots.countersOf(slot);
    if (counters === undefined) return;
    counters.totalRequests += told.attempts;
    counters.failedRequests += told.failures;
    if (told.attempts > 0) counters.credentialError = told.credentialError;
    if (told.expectedMs !== undefined && now() - told.latencyAgeMs > counters.latencyAtMs) {
      counters.latencyMs = told.latencyMs;
      counters.expectedMs = told.expectedMs;
      counters.latencyAtMs = now() - told.latencyAgeMs;
    }
    setInFlight(counters, told.inFlight);
  }

  function setInFlight(counters: BackendCounters, next: number): void {
    const before = inFlight.get(counters) ?? 0;
    if (next === 0) inFlight.delete(counters);
    else inFlight.set(counters, next);
    if (next === before) return;
    counters.inFlight += next - before;
    if (counters.inFlight === 0) counters.onIdle?.();
    else if (next > before) fleet.foundInFlight(counters);
  }

  function happened(event: GatewayEvent): void {
    if (event.kind === "rateLimited") owners.events.rateLimited(event.scope);
    else if (event.kind === "redisUnanswered") owners.events.redisUnanswered(event.use);
    else if (event.kind === "queueWaited") owners.events.queueWaited(event.className, event.durationMs);
    else if (event.kind === "queueShed") owners.events.queueShed(event.className, event.reason);
    else if (event.kind === "hookCalled") {
      const { hook, event: name, verdict, durationMs, times } = event;
      owners.events.hookCalled(hook, name, verdict, durationMs, times);
    } else if (event.kind === "hookRestarted") owners.events.hookRestarted(event.hook, event.cause);
    else if (event.kind === "recorded") owners.events.recorded(event.result, event.times);
    else if (event.kind === "otlpExported") owners.events.otlpExported(event.signal, event.isOk, event.times);
    else if (event.kind === "otlpDropped") owners.events.otlpDropped(event.spans);
    else {
      owners.events.fileUploaded(event.result);
      owners.fileStored();
    }
  }

  function follow(told: ToldRecord): void {
    const record = stories.follow(running.get(told.id), told);
    if (record.isOver) isOver(record);
    else running.set(told.id, record);
  }

  function isOver(record: RequestRecord): void {
    running.delete(record.id);
    owners.books.over(record);
    record.settle();
  }

  function knownOf(owner: string, ids: readonly string[]) {
    return ids.map((id) => {
      const known = { response: responses.find(owner, id), item: responses.findItem(owner, id) };
      return { id, ...known, owner: responses.ownerOf(id) };
    });
  }

  const desk = {
    report(report: Report) {
      numbers = report.process;
      const { attempts, requests } = JSON.parse(report.gathered) as Gathered;
      for (const { backend, outcome, failure, durationMs, firstTokenMs } of attempts) {
        owners.books.attempted(backend, outcome, failure, durationMs, firstTokenMs);
      }
      for (const event of report.events) happened(event);
      for (const told of requests) follow(told);
      for (const told of report.backends) count(told);
    },
    loads(backends) {
      for (const told of backends) count(told);
    },
    kvNews(news) {
      owners.kvIndex.heard(news);
      handOn(news);
    },
    suspect: (name) => fleet.suspect(name),
    firstChecks: () => fleet.firstChecks.then(tellNews),
    refreshModels: () => fleet.refreshModels().then(tellNews),
    async listModels() {
      const models = await fleet.models.list();
      tellNews();
      return models;
    },
    async findModel(id) {
      const found = await fleet.models.find(id);
      tellNews();
      return found;
    },
    clock: now,
    outcome({ name, admittedMs, outcome, endedMs }) {
      fleet.circuits.report(name, admittedMs, outcome, endedMs);
      circuitsMoved();
    },
    successes: (name, count) => fleet.circuits.reportEarlier(name, count),
    lease(name, lease, inPanic) {
      const permit = fleet.circuits.acquire(name, inPanic);
      circuitsMoved();
      if (permit !== undefined) leases.set(lease, permit);
      return permit !== undefined;
    },
    settle(lease, outcome) {
      const permit = leases.get(lease);
      if (permit === undefined) return; // it was not granted
      permit.settle(outcome);
      leases.delete(lease);
      circuitsMoved();
    },
    take: (query) => ({ decision: owners.limiter().take(query) }),
    takeForGuess: (query) => ({ decision: owners.limiter().takeForGuess(query) }),
    putBack: (query) => owners.limiter().putBack(query),
    takeBackend(name) {
      const limiter = owners.limiter();
      return { refusal: limiter.takeBackend(name) ? undefined : limiter.backendRefusal([name]) };
    },
    async reserveSpending(id, spender, bound) {
      const reserved = await owners.budgets().reserve(spender, bound);
      if (reserved.refusal !== undefined) return { refusal: reserved.refusal };
      const { reservation } = reserved;
      if (isGone) reservation?.settle(NOTHING);
      else if (reservation !== undefined) reservations.set(id, reservation);
      return { quota: reservation?.quota };
    },
    budgetQuota: async (spender) => await owners.budgets().quotaOf(spender),
    budgetStandings: async (caller) => await owners.budgets().standings(caller),
    settleSpending(id, spent) {
      reservations.get(id)?.settle(spent);
      reservations.delete(id);
    },
    admission: admission.heard,
    keepRecordings: (recordings) => owners.recordings.keep(recordings).catch(() => 0), // the log says it
    cached: (asked) => owners.answers()?.get(keyOf(asked), asked.model) as never,
    cache: (asked, answer, ttlMs) => void owners.answers()?.put(keyOf(asked), answer, ttlMs),
    async known(owner, ids) {
      const known = knownOf(owner, ids);
      if (known.every(({ response, item }) => response !== undefined || item !== undefined)) return known;
      // The worker that has it may not have told yet.
      await allHaveTold();
      return knownOf(owner, ids);
    },
    lead: flights.lead,
    landed: flights.landed,
    async renewResponse(owner, id) {
      if (responses.renew(owner, id)) return true;
      await allHaveTold();
      return responses.renew(owner, id);
    },
    keepResponse: (owner, id, items) => responses.keep(owner, id, items),
    keepBackend(owner, id, name) {
      if (responses.find(owner, id) === undefined) responses.keepBackend(owner, id, name);
    },
    noteItems: (owner, ids) => responses.noteItems(owner, ids),
  } satisfies PrimaryDesk;

  return {
    desk,
    /** Its part of what is in flight. */
    inFlightAt: (counters: BackendCounters) => inFlight.get(counters) ?? 0,
    /** Undefined until it has reported. */
    numbers: () => numbers,
    /** The worker is gone: what it had is over. */
    gone(): void {
      isGone = true;
      for (const counters of [...inFlight.keys()]) setInFlight(counters, 0);
      for (const permit of leases.values()) permit.settle("neutral");
      leases.clear();
      admission.gone();
      for (const reservation of reservations.values()) reservation.settle(NOTHING);
      reservations.clear();
      flights.gone(ownSocket);
      for (const record of [...running.values()]) {
        record.failure = PROCESS_LOST;
        record.finish(LOST_STATUS, "failed", record.sinceStartMs);
        isOver(record);
      }
      circuitsMoved();
    },
  };
}

function keyOf({ question, form, otherForm, sketch }: Parameters<PrimaryDesk["cached"]>[0]): RequestKey {
  return { question, form, otherForm, sketch: () => sketch };
}
