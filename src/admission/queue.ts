// The owner of the slots at backends and of the order in which requests get them. One queue for each group of backends that
// serve the same models; a slot that is free goes to the request that is next, wherever it waits.

import type { AdmissionSettings } from "../config/sections/admission.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { type Linked, RecencyList } from "../lib/recency-list.ts";
import { AdaptiveLimit, type SentAs } from "./adaptive-limit.ts";
import type {
  Admission,
  AdmissionView,
  BackendSlot,
  Granted,
  QueuePlace,
  Shed,
  ShedReason,
  SlotEnd,
  SlotQuery,
} from "./admission.ts";
import { DrainRate } from "./drain-rate.ts";
import { type FairItem, type FairNode, FairTree } from "./fair-tree.ts";

interface QueueParts {
  settings: AdmissionSettings;
  /** Clock milliseconds. */
  now(): number;
  deadlines: Deadlines;
  /** A backend has become full, or has room again; for processes that ask this one. */
  roomChanged?: ((backend: string, isFull: boolean) => void) | undefined;
}

/** The slots of one backend. */
interface SlotsAt {
  readonly backend: string;
  inFlight: number;
  tokens: number;
  max: number;
  maxTokens: number;
  /** Undefined where the number is configured. */
  adaptive: AdaptiveLimit | undefined;
  /** The request that is next does not fit beside those in flight: it must not be overtaken by smaller ones for ever. */
  isHeld: boolean;
  wasFull: boolean;
  /** No longer configured: it is forgotten when its last request ends. */
  isRemoved: boolean;
  /** Turn of the group that was served last. */
  turn: number;
}

interface QueueGroup {
  readonly name: string;
  readonly tree: FairTree<Queued>;
  /** Takeovers, which are served before all others. */
  readonly first: Queued[];
  readonly drain: DrainRate;
  /**
   * When its turn is at each backend that it shares with other groups, in weighted tokens: start-time fair queueing (Goyal, Vin and
   * Cheng, SIGCOMM 1996).
   */
  readonly turns: Map<string, number>;
}

/** What is expected of the next input of a tenant is the mean of its first ones, and later mostly that of the last ten. */
const INPUTS_REMEMBERED = 10;

interface Queued extends FairItem, Deadline {
  readonly ask: SlotQuery;
  readonly group: QueueGroup;
  readonly leaf: FairNode<Queued>;
  readonly tokens: number;
  backends: readonly string[];
  settle: ((granted: Granted) => void) | undefined;
}

type TokenWeights = AdmissionSettings["token_weights"];

/** A tenth of a second: how old the counts of running streams may be when the next request is chosen. */
const STREAMS_LOOK_MS = 100;
const MOST_GROUPS = 256;
const LEAST_RETRY_AFTER_MS = 1_000;
const MOST_RETRY_AFTER_MS = 3_600_000;
/** Requests that the view names. */
export const SHOWN_WAITING = 200;

export class AdmissionQueue implements Admission {
  readonly takesLater = false;
  #settings: AdmissionSettings;
  readonly #parts: QueueParts;
  readonly #slots = new Map<string, SlotsAt>();
  readonly #groups = new Map<string, QueueGroup>();
  readonly #running = new RecencyList<OwnSlot>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: QueueParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
  }

  /** @param backends - names of all that are configured: what is known of others is forgotten */
  follow(settings: AdmissionSettings, backends: readonly string[]): void {
    this.#settings = settings;
    const known = new Set(backends);
    for (const [name, slots] of this.#slots) {
      slots.isRemoved = !known.has(name);
      if (slots.isRemoved && slots.inFlight === 0) this.#slots.delete(name);
      else this.#bound(slots);
    }
    if (!settings.enabled) this.#letAllGo();
    for (const slots of [...this.#slots.values()]) this.#dispatch(slots);
  }

  hasRoom(backend: string, tokens: number): boolean {
    const slots = this.#slots.get(backend);
    return slots === undefined || (!slots.isHeld && fits(slots, tokens));
  }

  take(backend: string, ask: SlotQuery): BackendSlot | undefined {
    const slots = this.#slotsOf(backend);
    if (slots.isHeld || !fits(slots, tokensOf(ask))) return undefined;
    const group = this.#groupOf(ask.group);
    return this.#give(slots, group, group.tree.leaf(ask.class, ask.tenant), ask);
  }

  /** A slot whether there is room or not: another owner gave it. */
  hold(backend: string, ask: SlotQuery): BackendSlot {
    const group = this.#groupOf(ask.group);
    return this.#give(this.#slotsOf(backend), group, group.tree.leaf(ask.class, ask.tenant), ask);
  }

  wait(ask: SlotQuery, backends: readonly string[]): QueuePlace {
    const { promise, resolve } = Promise.withResolvers<Granted>();
    const nowMs = this.#parts.now();
    const group = this.#groupOf(ask.group);
    const leaf = group.tree.leaf(ask.class, ask.tenant);
    const waiter: Queued = {
      ask,
      group,
      leaf,
      backends,
      tokens: tokensOf(ask),
      order: nowMs - ask.ageMs,
      cost: this.#costOf(ask, leaf),
      deadlineMs: nowMs + ask.patienceMs,
      expire: () => this.#shed(waiter, "waited_too_long"),
      settle: resolve,
    };
    const shed = this.#refusalOf(waiter);
    if (shed !== undefined) return { granted: Promise.resolve({ shed }), mayUse() {}, leave() {} };
    if (isIdle(group)) group.drain.begin(nowMs);
    if (ask.goesFirst) group.first.push(waiter);
    else group.tree.add(leaf, waiter);
    if (Number.isFinite(waiter.deadlineMs)) this.#parts.deadlines.add(waiter);
    this.#offer(waiter, backends);
    return {
      granted: promise,
      mayUse: (names) => {
        if (waiter.settle !== undefined) this.#offer(waiter, names);
      },
      leave: () => {
        if (waiter.settle !== undefined) this.#end(waiter);
        else void promise.then(({ slot }) => slot?.ended(undefined));
      },
    };
  }

  view(): AdmissionView {
    const nowMs = this.#parts.now();
    const waiters = this.#waiters();
    const { classes } = this.#settings.queue;
    return {
      waiting: waiters
        .toSorted((one, other) => one.order - other.order)
        .slice(0, SHOWN_WAITING)
        .map(({ ask, order }) => ({
          ...{ model: ask.model, class: ask.class, tenant: ask.tenant },
          waitedMs: nowMs - order,
        })),
      groups: [...this.#groups.values()]
        .filter((group) => !isIdle(group))
        .map(({ name, tree, first, drain }) => ({
          backends: name.split("\n"),
          models: [...new Set(waiters.filter(({ group }) => group.name === name).map(({ ask }) => ask.model))],
          waiting: tree.waiting + first.length,
          perSecond: drain.countPerSecond(nowMs),
        })),
      models: countModels(waiters),
      classes: Object.entries(classes).map(([name, { weight }]) => ({
        ...{ class: name, weight },
        waiting: waiters.reduce((count, { ask }) => count + (ask.class === name ? 1 : 0), 0),
      })),
      backends: [...this.#slots.values()].map((slots) => ({
        ...{ backend: slots.backend, inFlight: slots.inFlight, tokens: slots.tokens },
        limit: finite(limitOf(slots)),
        maxTokens: finite(slots.maxTokens),
      })),
    };
  }

  // Slots.

  #slotsOf(backend: string): SlotsAt {
    return getOrMake(this.#slots, backend, () => {
      const slots: SlotsAt = {
        ...{ backend, inFlight: 0, tokens: 0, max: 0, maxTokens: 0, adaptive: undefined },
        ...{ isHeld: false, wasFull: false, isRemoved: false, turn: 0 },
      };
      this.#bound(slots);
      return slots;
    });
  }

  /** Sets the bounds that the configuration names. */
  #bound(slots: SlotsAt): void {
    const { per_backend, backends, gateways } = this.#settings;
    const { max_concurrent, max_tokens_in_flight } = { ...per_backend, ...backends[slots.backend] };
    slots.adaptive = max_concurrent === "auto" ? (slots.adaptive ?? new AdaptiveLimit()) : undefined;
    slots.max = typeof max_concurrent === "number" ? shareOf(max_concurrent, gateways) : Number.POSITIVE_INFINITY;
    slots.maxTokens =
      max_tokens_in_flight === undefined ? Number.POSITIVE_INFINITY : shareOf(max_tokens_in_flight, gateways);
  }

  #give(slots: SlotsAt, group: QueueGroup, leaf: FairNode<Queued>, ask: SlotQuery): BackendSlot {
    const slot = new OwnSlot(this, slots, group, leaf, ask, this.#settings.token_weights);
    slots.inFlight++;
    slots.tokens += tokensOf(ask);
    slot.sent = slot.adaptive?.begin(slots.inFlight, this.#parts.now());
    group.tree.answering(leaf, 1);
    this.#running.add(slot);
    this.#tellRoom(slots);
    return slot;
  }

  /** Only for the slot itself: it is free again. */
  takeBack(slot: OwnSlot, end: SlotEnd | undefined): void {
    const { slots, group, leaf, ask } = slot;
    this.#running.remove(slot);
    slot.adaptive?.ended(slot.sent as SentAs, end, slots.inFlight, this.#parts.now());
    if (end?.inputTokens !== undefined) this.#learnInput(leaf, ask, end.inputTokens, end.cachedTokens ?? 0);
    slots.inFlight--;
    slots.tokens -= tokensOf(ask);
    group.tree.answering(leaf, -1);
    if (slots.isRemoved && slots.inFlight === 0) this.#slots.delete(slots.backend);
    else this.#dispatch(slots);
  }

  /** The gateway's estimate knows neither the backend's tokenizer nor its cache. */
  #learnInput(leaf: FairNode<Queued>, { inputTokens }: SlotQuery, actual: number, cached: number): void {
    const { token_weights } = this.#settings;
    const expected = inputTokens * token_weights.input;
    if (expected <= 0) return;
    leaf.inputsSeen = Math.min(leaf.inputsSeen + 1, INPUTS_REMEMBERED);
    leaf.inputFactor += (inputCost(token_weights, actual, cached) / expected - leaf.inputFactor) / leaf.inputsSeen;
  }

  #tellRoom(slots: SlotsAt): void {
    const isFull = slots.isHeld || !fits(slots, 0) || slots.tokens >= slots.maxTokens;
    if (isFull === slots.wasFull) return;
    slots.wasFull = isFull;
    this.#parts.roomChanged?.(slots.backend, isFull);
  }

  // The queues.

  #groupOf(name: string): QueueGroup {
    if (this.#groups.size >= MOST_GROUPS && !this.#groups.has(name)) {
      for (const [other, group] of this.#groups) {
        if (group.tree.root.inFlight === 0 && isIdle(group)) this.#groups.delete(other);
      }
    }
    return getOrMake(this.#groups, name, () => ({
      ...{ name, first: [], drain: new DrainRate(), turns: new Map() },
      tree: new FairTree<Queued>((className) => this.#weightOf(className)),
    }));
  }

  #weightOf(className: string): number {
    return this.#settings.queue.classes[className]?.weight ?? 1;
  }

  #costOf(ask: SlotQuery, leaf: FairNode<Queued>): number {
    const { token_weights } = this.#settings;
    return expectedInputCost(token_weights, ask, leaf) + ask.outputTokens * token_weights.output;
  }

  /** Why a request need not begin to wait. One that is refused for room may be another one, which has more than its share. */
  #refusalOf(waiter: Queued): Shed | undefined {
    const { group, leaf, ask } = waiter;
    if (ask.goesFirst) return undefined;
    const { tree } = group;
    const waitMs = this.#expectedWaitMs(waiter);
    if (waitMs > ask.patienceMs) return this.#shedOf(group, "too_late", waitMs - ask.patienceMs);
    if (tree.waiting < this.#settings.queue.max_waiting) return undefined;
    const largest = tree.largest();
    if (largest === undefined || !tree.isSmaller(leaf, largest)) return this.#shedOf(group, "queue_full", waitMs);
    this.#shed(largest.items.at(-1) as Queued, "queue_full");
    return undefined;
  }

  /** Behind the requests of the same tenant, at its share of the rate at which the queue empties; 0 while that is unknown. */
  #expectedWaitMs({ group: { tree, drain }, leaf }: Queued): number {
    const rate = drain.costPerMs(this.#parts.now());
    if (rate === undefined || leaf.waitingCost === 0) return 0;
    return Math.min(leaf.waitingCost / (rate * tree.shareOf(leaf)), tree.root.waitingCost / rate);
  }

  #shedOf({ tree, first }: QueueGroup, reason: ShedReason, retryAfterMs: number): Shed {
    const bounded = Math.min(Math.max(retryAfterMs, LEAST_RETRY_AFTER_MS), MOST_RETRY_AFTER_MS);
    return { reason, retryAfterMs: bounded, waiting: tree.waiting + first.length };
  }

  #shed(waiter: Queued, reason: ShedReason): void {
    const { settle, group } = waiter;
    const shed = this.#shedOf(group, reason, this.#expectedWaitMs(waiter));
    this.#end(waiter);
    settle?.({ shed });
  }

  /** It no longer waits. */
  #end(waiter: Queued): void {
    const { group, leaf, ask } = waiter;
    waiter.settle = undefined;
    this.#parts.deadlines.remove(waiter);
    if (ask.goesFirst) group.first.splice(group.first.indexOf(waiter), 1);
    else group.tree.remove(leaf, waiter);
    if (isIdle(group)) group.drain.end(this.#parts.now());
    this.#release(waiter.backends);
  }

  /** Room may have been kept for a request that does not need it any more. */
  #release(backends: readonly string[]): void {
    for (const name of backends) {
      const slots = this.#slots.get(name);
      if (slots?.isHeld) this.#dispatch(slots);
    }
  }

  /** Where it may be served from now on. */
  #offer(waiter: Queued, backends: readonly string[]): void {
    const before = waiter.backends;
    waiter.backends = backends;
    this.#release(before);
    for (const name of backends) {
      if (waiter.settle === undefined) return;
      this.#dispatch(this.#slotsOf(name));
    }
  }

  /** Gives what is free at a backend to the requests that are next. */
  #dispatch(slots: SlotsAt): void {
    slots.isHeld = false;
    while (slots.inFlight < limitOf(slots)) {
      const waiter = this.#nextAt(slots);
      if (waiter === undefined) break;
      slots.isHeld = !fits(slots, waiter.tokens);
      if (slots.isHeld) break;
      const { settle, group, leaf, ask } = waiter;
      const slot = this.#give(slots, group, leaf, ask);
      slots.turn = turnOf(group, slots);
      group.turns.set(slots.backend, slots.turn + waiter.cost / this.#weightOf(ask.class));
      group.drain.served(waiter.cost, this.#parts.now());
      this.#end(waiter);
      settle?.({ slot });
    }
    this.#tellRoom(slots);
  }

  #nextAt(slots: SlotsAt): Queued | undefined {
    let next: Queued | undefined;
    let nextTurn = 0;
    const may = ({ backends }: Queued) => backends.includes(slots.backend);
    for (const group of this.#groups.values()) {
      const first = group.first.find(may);
      if (first !== undefined) return first;
      if (group.tree.waiting === 0) continue;
      this.#countStreams();
      const found = group.tree.next(may)?.item;
      if (found === undefined) continue;
      // Groups share a backend where some of them have others as well: each has its turn, or one that asks for much starves the others.
      const turn = turnOf(group, slots);
      if (next === undefined || turn < nextTurn || (turn === nextTurn && found.order < next.order)) {
        next = found;
        nextTurn = turn;
      }
    }
    return next;
  }

  /** Brings what running streams have got up to date. */
  #countStreams(): void {
    const nowMs = this.#parts.now();
    if (nowMs - this.#lookedMs < STREAMS_LOOK_MS) return;
    this.#lookedMs = nowMs;
    for (const slot of this.#running) slot.look();
  }

  #waiters(): Queued[] {
    const found: Queued[] = [];
    for (const { tree, first } of this.#groups.values()) {
      found.push(...first);
      const open = [tree.root];
      for (let node = open.pop(); node !== undefined; node = open.pop()) {
        found.push(...node.items);
        open.push(...node.active);
      }
    }
    return found;
  }

  /** It was switched off: every request goes on that has a backend. */
  #letAllGo(): void {
    for (const waiter of this.#waiters()) {
      const { settle, group, leaf, ask, backends } = waiter;
      const [backend] = backends;
      // The end of another one's wait may have served this one.
      if (backend === undefined || settle === undefined) continue;
      const slot = this.#give(this.#slotsOf(backend), group, leaf, ask);
      this.#end(waiter);
      settle({ slot });
    }
  }
}

/** A slot, and what its tenant was charged for it. */
class OwnSlot implements BackendSlot, Partial<Linked<OwnSlot>> {
  older: OwnSlot | undefined = undefined;
  newer: OwnSlot | undefined = undefined;
  readonly slots: SlotsAt;
  readonly group: QueueGroup;
  readonly leaf: FairNode<Queued>;
  readonly ask: SlotQuery;
  /** That of the backend when the slot was given, and what it said then. */
  readonly adaptive: AdaptiveLimit | undefined;
  sent: SentAs | undefined = undefined;
  readonly #queue: AdmissionQueue;
  readonly #weights: TokenWeights;
  readonly #inputCost: number;
  #isOver = false;
  #charged = 0;
  #outputTokens = 0;
  #seen: { readonly tokens: number } | undefined = undefined;

  constructor(
    queue: AdmissionQueue,
    slots: SlotsAt,
    group: QueueGroup,
    leaf: FairNode<Queued>,
    ask: SlotQuery,
    weights: TokenWeights,
  ) {
    this.#queue = queue;
    this.slots = slots;
    this.group = group;
    this.leaf = leaf;
    this.ask = ask;
    this.adaptive = slots.adaptive;
    this.#weights = weights;
    this.#inputCost = expectedInputCost(weights, ask, leaf);
    this.#count(this.#inputCost, 0);
  }

  get backend(): string {
    return this.slots.backend;
  }

  watch(seen: { readonly tokens: number } | undefined): void {
    this.#seen = seen;
  }

  look(): void {
    const tokens = this.#seen?.tokens ?? 0;
    if (tokens > this.#outputTokens) this.#count(this.#inputCost, tokens);
  }

  ended(end: SlotEnd | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (end === undefined) this.#count(0, 0);
    else {
      const { inputTokens, cachedTokens = 0, outputTokens } = end;
      const input = inputTokens === undefined ? this.#inputCost : inputCost(this.#weights, inputTokens, cachedTokens);
      this.#count(input, outputTokens ?? Math.max(this.#outputTokens, this.#seen?.tokens ?? 0));
    }
    this.#queue.takeBack(this, end);
  }

  /** Charges what was not charged yet, or gives back what was too much. */
  #count(input: number, outputTokens: number): void {
    this.#outputTokens = outputTokens;
    const cost = input + outputTokens * this.#weights.output;
    const { tree } = this.group;
    if (cost >= this.#charged) tree.charge(this.leaf, cost - this.#charged);
    else tree.giveBack(this.leaf, this.#charged - cost, cost);
    this.#charged = cost;
  }
}

function expectedInputCost(
  { input }: TokenWeights,
  { inputTokens }: SlotQuery,
  { inputFactor }: FairNode<Queued>,
): number {
  return inputTokens * input * inputFactor;
}

function inputCost(weights: TokenWeights, tokens: number, cached: number): number {
  return Math.max(0, tokens - cached) * weights.input + cached * weights.cached_input;
}

function tokensOf({ inputTokens, outputTokens }: SlotQuery): number {
  return inputTokens + outputTokens;
}

function limitOf({ max, adaptive }: SlotsAt): number {
  return adaptive === undefined ? max : adaptive.limit;
}

/** A request that is too large for the bound is served alone. */
function fits(slots: SlotsAt, tokens: number): boolean {
  return slots.inFlight < limitOf(slots) && (slots.inFlight === 0 || slots.tokens + tokens <= slots.maxTokens);
}

/** What a group did not use before is not saved up. */
function turnOf({ turns }: QueueGroup, { backend, turn }: SlotsAt): number {
  return Math.max(turns.get(backend) ?? 0, turn);
}

function isIdle({ tree, first }: QueueGroup): boolean {
  return tree.waiting === 0 && first.length === 0;
}

/** The part of one of several gateways that do not know of each other. */
function shareOf(whole: number, gateways: number): number {
  return Math.max(1, Math.floor(whole / gateways));
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}

function countModels(waiters: readonly Queued[]): AdmissionView["models"] {
  const counts = new Map<string, { model: string; class: string; waiting: number }>();
  for (const { ask } of waiters) {
    const { model, class: className } = ask;
    getOrMake(counts, `${className} ${model}`, () => ({ model, class: className, waiting: 0 })).waiting++;
  }
  return [...counts.values()];
}
