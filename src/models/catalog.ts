// The model list of each backend: asked, kept for a while, and renewed with one request at a time.

import type { Backend } from "../backends/backend.ts";
import { callDeadline, controlHeaders, createPacer, failureText, statusText } from "../backends/control-request.ts";
import type { ModelList } from "../backends/kind.ts";
import type { Transport } from "../backends/transport.ts";
import { readWholeBody } from "../backends/whole-body.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Intake, Intakes } from "../generation/intake.ts";
import type { Clock } from "../lib/clock.ts";
import { formatDuration } from "../lib/duration.ts";
import { isObject } from "../lib/json.ts";
import type { Logger } from "../logging/logger.ts";
import { askIntakes, type ToldIntakes, toldOf } from "./ask-intake.ts";
import { type ListedModel, type ModelRecord, readModelList } from "./list.ts";

/**
 * `fresh`: use it. `stale`: use it and renew it in the background. `expired`: renew it before it is used. A list whose
 * last renewal failed is never `expired`, so that one silent backend does not slow down every caller.
 */
type Freshness = "fresh" | "stale" | "expired";

export interface ModelCatalog {
  /** Begins with the configured models, or with none. */
  add(name: string): void;
  /** Forgets the list, and ends a question under way. */
  remove(name: string): void;
  /** New settings; what is known stays. */
  apply(settings: CatalogSettings): void;
  list(name: string): readonly ListedModel[];
  freshness(name: string): Freshness;
  /** True if another question may bring something new after this age. */
  isOlderThan(name: string, ageMs: number): boolean;
  /** True if the backend has neither answered nor failed to. */
  isCold(name: string): boolean;
  /** Asks the backend now, or joins the question under way; never rejects. */
  renew(name: string): Promise<void>;
  /** Number of changes of lists so far. */
  readonly revision: number;
  stop(): Promise<void>;
}

type CatalogSettings = Pick<Settings, "routing" | "health_checks">;

interface ModelCatalogParts {
  backend: (name: string) => Backend;
  settings: CatalogSettings;
  transport: Transport;
  clock: Clock;
  log: Logger;
  /** Called with the backend's answer, even if its models are configured; undefined after a failure. */
  onAnswer: (
    name: string,
    answer: readonly ModelRecord[] | undefined,
    /** Aborts when the backend is removed, and its name may stand for another one. */
    removed: AbortSignal,
  ) => Promise<void> | void;
  /** Called with the intakes of its models, by the names of the list. */
  onIntakes?: (name: string, intakes: Intakes) => void;
}

/** A list that came, or words for why none came. */
type ListAnswer = { models: ModelRecord[] } | { failure: string };

const MAX_BODY_BYTES = 16 * 1024 * 1024;
const MAX_MODELS = 10_000;
const MAX_PAGES = 50;
/** However often a backend failed to answer, a caller that misses a model may have it asked again after this time. */
const FAILURE_RETRY_MS = 5_000;

interface CatalogSlot {
  models: readonly ListedModel[];
  /** Intakes that the backend reports outside of its list. */
  intakes: ToldIntakes;
  /** Clock time of the last answer, and of the last failure since then. */
  answeredMs: number | undefined;
  failedMs: number | undefined;
  emptyAnswers: number;
  failures: number;
  failure: string | undefined;
  running: Promise<void> | undefined;
  stopping: AbortController;
}

export function createModelCatalog(options: ModelCatalogParts): ModelCatalog {
  const { clock, log } = options;
  let { settings } = options;
  const pacer = createPacer();
  const slots = new Map<string, CatalogSlot>();
  let revision = 0;

  function backoffMs(times: number): number {
    const cache = settings.routing.model_list_cache;
    return Math.min(cache.empty_ttl_max, cache.empty_ttl * 2 ** (times - 1));
  }

  function freshness(name: string): Freshness {
    const slot = slots.get(name);
    if (slot === undefined || options.backend(name).configuredModels !== undefined) return "fresh";
    const cache = settings.routing.model_list_cache;
    const nowMs = clock.now();
    if (slot.failedMs !== undefined) return nowMs - slot.failedMs < backoffMs(slot.failures) ? "fresh" : "stale";
    if (slot.answeredMs === undefined) return "expired";
    const ageMs = nowMs - slot.answeredMs;
    if (slot.emptyAnswers > 0) return ageMs < backoffMs(slot.emptyAnswers) ? "fresh" : "expired";
    if (ageMs < cache.ttl * cache.soft_ttl_ratio) return "fresh";
    return ageMs < cache.ttl ? "stale" : "expired";
  }

  async function ask(name: string, slot: CatalogSlot): Promise<void> {
    const { signal } = slot.stopping;
    await pacer.enter();
    if (signal.aborted) return;
    const backend = options.backend(name);
    const timeoutMs = backend.settings.health_check.timeout ?? settings.health_checks.timeout;
    const answer = await askBackend(backend, options.transport, timeoutMs, signal);
    if (signal.aborted) return;
    if ("failure" in answer) {
      slot.failedMs = clock.now();
      slot.failures++;
      // One line per kind of failure; the same line every few seconds would bury all others.
      if (slot.failure !== answer.failure && backend.configuredModels === undefined) {
        log.warn({ backend: name, reason: answer.failure }, `model list of ${name}: ${answer.failure}`);
      }
      slot.failure = answer.failure;
      return await options.onAnswer(name, undefined, signal);
    }
    slot.failedMs = undefined;
    slot.failures = 0;
    slot.failure = undefined;
    slot.emptyAnswers = answer.models.length === 0 ? slot.emptyAnswers + 1 : 0;
    if (backend.configuredModels === undefined) keep(name, slot, answer.models);
    slot.answeredMs = clock.now();
    await options.onAnswer(name, answer.models, signal);
    if (signal.aborted) return;
    const asked = options.backend(name); // its kind may have been recognised
    const asking = { backend: asked, transport: options.transport, timeoutMs, stop: signal };
    slot.intakes = await askIntakes(asking, answer.models, slot.intakes);
    if (!signal.aborted) options.onIntakes?.(name, intakesOf(asked, answer.models, slot.intakes));
  }

  function keep(name: string, slot: CatalogSlot, answered: ModelRecord[]): void {
    if (answered.length > MAX_MODELS) {
      log.warn({ backend: name, models: answered.length }, `model list of ${name}: cut to ${MAX_MODELS} models`);
    }
    const known = new Map(slot.models.map((model) => [model.id, model.created]));
    const nowSeconds = Math.floor(clock.wallTime() / 1000);
    const models = answered.slice(0, MAX_MODELS).map(({ id, created, ownedBy }) => {
      // The time that was said first stays: some engines say the time of the question.
      return { id, created: known.get(id) ?? created ?? nowSeconds, ownedBy };
    });
    if (slot.answeredMs !== undefined && Bun.deepEquals(models, slot.models, true)) return;
    slot.models = models;
    revision++;
    log.info({ backend: name, models: models.length }, `backend ${name} lists ${models.length} models`);
  }

  return {
    add(name) {
      const configured = options.backend(name).configuredModels ?? [];
      const created = Math.floor(clock.wallTime() / 1000);
      slots.set(name, {
        models: configured.map((id) => ({ id, created, ownedBy: undefined })),
        intakes: new Map(),
        answeredMs: undefined,
        failedMs: undefined,
        emptyAnswers: 0,
        failures: 0,
        failure: undefined,
        running: undefined,
        stopping: new AbortController(),
      });
    },
    remove(name) {
      slots.get(name)?.stopping.abort();
      slots.delete(name);
      revision++;
    },
    apply(next) {
      settings = next;
    },
    list: (name) => slots.get(name)?.models ?? [],
    freshness,
    isOlderThan(name, ageMs) {
      const slot = slots.get(name);
      if (slot === undefined || options.backend(name).configuredModels !== undefined) return false;
      const nowMs = clock.now();
      if (slot.failedMs !== undefined) return nowMs - slot.failedMs >= Math.max(ageMs, FAILURE_RETRY_MS);
      return slot.answeredMs === undefined || nowMs - slot.answeredMs >= ageMs;
    },
    isCold: (name) => freshness(name) === "expired" && slots.get(name)?.answeredMs === undefined,
    async renew(name) {
      const slot = slots.get(name);
      if (slot === undefined || slot.stopping.signal.aborted) return;
      slot.running ??= ask(name, slot).finally(() => {
        slot.running = undefined;
      });
      await slot.running;
    },
    get revision() {
      return revision;
    },
    async stop() {
      for (const { stopping } of slots.values()) stopping.abort();
      pacer.close();
      await Promise.all([...slots.values()].map((slot) => slot.running));
    },
  };
}

/** By the names under which the backend's models are asked for: an engine of one model may be configured with any name. */
function intakesOf({ configuredModels }: Backend, listed: readonly ModelRecord[], told: ToldIntakes): Intakes {
  const known = new Map<string, Intake>();
  const [only] = listed.length === 1 ? listed : [];
  for (const id of configuredModels ?? listed.map((model) => model.id)) {
    const record = listed.find((model) => model.id === id) ?? only;
    const intake = record && toldOf(told, record);
    if (intake !== undefined) known.set(id, intake);
  }
  return known;
}

/** All pages of a backend's list. The deadline covers all of them together. */
async function askBackend(
  backend: Backend,
  transport: Transport,
  timeoutMs: number,
  stop: AbortSignal,
): Promise<ListAnswer> {
  let list = backend.kind.modelList;
  if (list === undefined) return { models: [] };
  const deadline = callDeadline(timeoutMs, stop);
  try {
    const models = new Map<string, ModelRecord>();
    let path: string | undefined = firstPage(list);
    for (let page = 0; path !== undefined && page < MAX_PAGES && models.size <= MAX_MODELS; page++) {
      const request = { method: "GET", headers: controlHeaders(backend, false) };
      const call = deadline.watch(transport(keeperOf(list, backend), path, request));
      const head = await call.answer;
      const body = await readWholeBody(head, MAX_BODY_BYTES);
      if (body === undefined) {
        call.abort();
        return { failure: "the answer is longer than 16 MiB" };
      }
      if (head.status === 404 && page === 0 && list.otherPath !== undefined) {
        path = list.otherPath;
        continue;
      }
      if (head.status !== 200) return { failure: statusText(backend, head.status) };
      const answer = parseJson(body);
      const records = readModelList(answer);
      if (records === undefined) return { failure: "the answer is not a model list" };
      for (const record of records) if (!models.has(record.id)) models.set(record.id, record);
      path = nextPage(list, answer);
      if (path !== undefined || list.also === undefined) continue;
      list = list.also;
      path = firstPage(list);
    }
    return { models: [...models.values()] };
  } catch (error) {
    return { failure: deadline.expired ? `no answer within ${formatDuration(timeoutMs)}` : failureText(error) };
  } finally {
    deadline.close();
  }
}

/** Who has the list, with the credential of the backend. */
function keeperOf({ rootOf }: ModelList, backend: Backend): Backend {
  return rootOf === undefined ? backend : { ...backend, rootUrl: rootOf(backend.rootUrl) };
}

function firstPage({ path, pages }: ModelList): string {
  return pages === undefined ? path : `${path}?${pages.query}`;
}

function nextPage(list: ModelList, answer: unknown): string | undefined {
  const { pages } = list;
  if (pages === undefined || !isObject(answer)) return undefined;
  const cursor = answer[pages.cursor];
  if (typeof cursor !== "string" || cursor === "") return undefined;
  if (pages.more !== undefined && answer[pages.more] !== true) return undefined;
  return `${firstPage(list)}&${pages.parameter}=${encodeURIComponent(cursor)}`;
}

/** undefined for what is not JSON, which is then no model list either. */
function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
