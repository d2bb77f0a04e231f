// Engines in virtual time behind a queue: one tenant whose agents ask for more than all engines can do, and twenty small tenants.

import type { BackendSlot, Granted, SlotQuery } from "../../src/admission/admission.ts";
import { AdmissionQueue } from "../../src/admission/queue.ts";
import { documentSchema } from "../../src/config/sections/registry.ts";
import { BatchingEngine, type EngineRequest, type EngineShape } from "./batching-engine.ts";
import { type SeededRandom, seededRandom } from "./seeded-random.ts";
import { type Clock, VirtualTime, virtualDeadlines } from "./virtual-time.ts";

export const POLICIES = [
  "FCFS in the engines",
  "FCFS in front of them",
  "priority, agents as all",
  "priority, agents last",
  "fair, a number",
  "fair, auto",
] as const;
export type Policy = (typeof POLICIES)[number];

export interface Scenario {
  seed: number;
  engines: number;
  shape: EngineShape;
  /** Agents of the heavy tenant; none: the small tenants alone. */
  agents: number;
  /** Calls of an agent at the same time, at most. */
  burst: number;
  /** Mean tokens of a call of an agent: its input, what of that is in the engine's cache, its output. */
  heavy: Sizes;
  small: Sizes;
  /** Tokens of an input that the gateway expects, by the tokens that it has. */
  estimate: number;
  /** Requests of all small tenants in a second. */
  smallRate: number;
  /** Left out of the measurement. */
  warmUpMs: number;
  measuredMs: number;
}

interface Sizes {
  input: number;
  cached: number;
  output: number;
}

export const SCENARIO: Scenario = {
  ...{ seed: 1, engines: 8, agents: 240, burst: 16 },
  shape: { slots: 64, stepMs: 20, sequenceMs: 0.1, inputTokenMs: 0.06, chunkTokens: 2048 },
  heavy: { input: 24_000, cached: 23_000, output: 300 },
  small: { input: 4_000, cached: 0, output: 250 },
  estimate: 1,
  smallRate: 1.2,
  warmUpMs: 600_000,
  measuredMs: 1_800_000,
};

export const SMALL_TENANTS = 20;
/** Of the small tenants so many run jobs in the background, which they say by a low priority. */
const BACKGROUND_TENANTS = 4;
/** A client leaves when it has waited so long for its first token. */
export const PATIENCE_MS = 30_000;
/** From a client, or the gateway, to an engine. */
const NETWORK_MS = 1;
const THINK_MS = 2_000;
const WEIGHTS = { input: 1, cached: 0.1, output: 2 };
/** What a gateway expects of an answer whose length it does not know. */
const EXPECTED_OUTPUT = 256;

export interface Request {
  tenant: string;
  isSmall: boolean;
  priority: number;
  input: number;
  cached: number;
  output: number;
  begunMs: number;
  firstMs: number | undefined;
  hasEnded: boolean;
  /** Told once: true when it was answered. */
  over(isAnswered: boolean, retryAfterMs: number): void;
}

export interface Outcome {
  /** Until the first token, of the small tenants. A client that left has waited as long as it did. */
  p50Ms: number;
  p95Ms: number;
  maxMs: number;
  /** 95th percentile of the small tenant that waits most. */
  worstTenantP95Ms: number;
  /** Of the requests of small tenants, and of the agents' calls: those that were not answered. */
  smallLost: number;
  heavyLost: number;
  heavyP50Ms: number;
  heavyP95Ms: number;
  /** Weighted tokens in a second, and the heavy tenant's part of them. */
  throughput: number;
  heavyPart: number;
  /** Jain's index of service, in weighted tokens, by the max-min fair share of each tenant. */
  jain: number;
  /** Calls of the agents in a second. */
  heavyRate: number;
  /** Median of what the engines may be sent at once. */
  limit: number;
}

export async function run(policy: Policy, scenario: Scenario): Promise<Outcome> {
  const time = new VirtualTime();
  const engines = Array.from({ length: scenario.engines }, () => new BatchingEngine(time, scenario.shape));
  const front = frontOf(policy, time, engines, scenario);
  const measured = startClients(time, scenario, front);
  await time.run(
    () => false,
    scenario.warmUpMs + scenario.measuredMs,
    () => {},
  );
  return measured(front.limit());
}

/** What is measured is to be asked for when the time is over. */
export function startClients(time: Clock, scenario: Scenario, front: Front): (limit: number) => Outcome {
  const random = seededRandom(scenario.seed);
  const done: Request[] = [];
  const send = (request: Request) => {
    const { over } = request;
    request.over = (isAnswered, retryAfterMs) => {
      if (request.hasEnded) return;
      request.hasEnded = true;
      if (request.begunMs >= scenario.warmUpMs) done.push(request);
      over(isAnswered, retryAfterMs);
    };
    front.send(request);
  };
  for (let tenant = 0; tenant < SMALL_TENANTS; tenant++) startSmall(tenant, time, random.fork(), scenario, send);
  for (let agent = 0; agent < scenario.agents; agent++) startAgent(time, random.fork(), scenario, send);
  time.schedule(scenario.warmUpMs, () => front.service.clear(), true);
  return (limit) => outcomeOf(done, front.service, scenario, limit);
}

// The clients.

function draw(random: SeededRandom, { input, cached, output }: Sizes) {
  const part = random.exponential(1);
  const length = Math.max(1, Math.round(part * (input - cached)));
  return { input: length + cached, cached, output: Math.max(1, Math.round(random.exponential(output))) };
}

/** Requests that come independently of each other and of their answers. */
function startSmall(
  index: number,
  time: Clock,
  random: SeededRandom,
  { small, smallRate }: Scenario,
  send: (request: Request) => void,
): void {
  const next = () =>
    time.schedule(random.exponential((1000 * SMALL_TENANTS) / smallRate), () => {
      const priority = index < BACKGROUND_TENANTS ? 1 : 0;
      const over = () => {};
      send({ tenant: `small ${index}`, isSmall: true, priority, ...draw(random, small), ...begun(time), over });
      next();
    });
  next();
}

/** Thinks, makes several calls at the same time, waits for all of them; a call that is refused is made again. */
function startAgent(
  time: Clock,
  random: SeededRandom,
  { heavy, burst }: Scenario,
  send: (request: Request) => void,
): void {
  const think = () => time.schedule(random.exponential(THINK_MS), act);
  const act = () => {
    let open = random.between(1, burst);
    const call = (sizes: ReturnType<typeof draw>) =>
      send({
        ...{ tenant: "heavy", isSmall: false, priority: 0, ...sizes, ...begun(time) },
        over(isAnswered, retryAfterMs) {
          if (!isAnswered) time.schedule(retryAfterMs * (1 + random.next()), () => call(sizes));
          else if (--open === 0) think();
        },
      });
    for (let count = open; count > 0; count--) call(draw(random, heavy));
  };
  think();
}

function begun({ nowMs }: Clock) {
  return { begunMs: nowMs, firstMs: undefined, hasEnded: false };
}

// What stands between clients and engines.

export interface Front {
  send(request: Request): void;
  /** Weighted tokens that each tenant got. */
  readonly service: Map<string, number>;
}

interface LimitedFront extends Front {
  limit(): number;
}

/** Weighted tokens of the input, and of the output. */
export const inputService = ({ input, cached }: Sizes): number =>
  (input - cached) * WEIGHTS.input + cached * WEIGHTS.cached;
export const outputService = ({ output }: Sizes): number => output * WEIGHTS.output;

function frontOf(policy: Policy, time: VirtualTime, engines: BatchingEngine[], scenario: Scenario): LimitedFront {
  const service = new Map<string, number>();
  const ask = (engine: BatchingEngine, request: Request, freed: () => void): EngineRequest => {
    const serve = (tokens: number) => service.set(request.tenant, (service.get(request.tenant) ?? 0) + tokens);
    const asked: EngineRequest = {
      ...{ inputTokens: request.input - request.cached, outputTokens: request.output, tokens: 0 },
      firstToken() {
        request.firstMs = time.nowMs;
        serve(inputService(request));
      },
      done() {
        serve(outputService(request));
        freed();
        request.over(true, 0);
      },
    };
    time.schedule(NETWORK_MS, () => {
      if (!request.hasEnded) engine.submit(asked);
    });
    // A client that has no patience any more leaves.
    time.schedule(request.begunMs + PATIENCE_MS - time.nowMs, () => {
      if (request.firstMs !== undefined) return;
      engine.cancel(asked);
      freed();
      request.over(false, 0);
    });
    return asked;
  };
  if (policy === "fair, a number" || policy === "fair, auto") {
    return fairFront(policy, time, engines, scenario, service, ask);
  }
  const isLimited = policy !== "FCFS in the engines";
  const priorityOf = (request: Request) => {
    if (policy === "priority, agents as all") return request.priority;
    return policy === "priority, agents last" && !request.isSmall ? 1 : 0;
  };
  const limit = isLimited ? scenario.shape.slots : Number.POSITIVE_INFINITY;
  const queues: Request[][] = [[], []];
  const inFlight = new Map(engines.map((engine) => [engine, 0]));
  const dispatch = () => {
    for (;;) {
      const queue = queues.find((one) => one.length > 0);
      const engine = leastOf(engines, (one) => inFlight.get(one) as number);
      if (queue === undefined || (inFlight.get(engine) as number) >= limit) return;
      const request = queue.shift() as Request;
      if (request.hasEnded) continue;
      inFlight.set(engine, (inFlight.get(engine) as number) + 1);
      ask(engine, request, () => {
        inFlight.set(engine, (inFlight.get(engine) as number) - 1);
        dispatch();
      });
    }
  };
  return {
    service,
    limit: () => limit,
    send(request) {
      queues[priorityOf(request)]?.push(request);
      time.schedule(PATIENCE_MS, () => {
        if (request.firstMs === undefined) request.over(false, 0);
      });
      dispatch();
    },
  };
}

function leastOf<Item>(items: readonly Item[], of: (item: Item) => number): Item {
  return items.reduce((least, item) => (of(item) < of(least) ? item : least));
}

/** The gateway's own queue. */
function fairFront(
  policy: Policy,
  time: VirtualTime,
  engines: BatchingEngine[],
  scenario: Scenario,
  service: Map<string, number>,
  ask: (engine: BatchingEngine, request: Request, freed: () => void) => EngineRequest,
): LimitedFront {
  const max_concurrent = policy === "fair, auto" ? "auto" : scenario.shape.slots;
  const settings = documentSchema.parse({
    admission: { enabled: true, per_backend: { max_concurrent }, queue: { fair_by: ["key"] } },
  }).admission;
  const queue = new AdmissionQueue({ settings, now: time.now, deadlines: virtualDeadlines(time) });
  const names = engines.map((_, index) => `engine ${index}`);
  queue.follow(settings, names);
  const group = names.join("\n");
  const start = (request: Request, slot: BackendSlot) => {
    const sentMs = time.nowMs;
    const asked = ask(engines[names.indexOf(slot.backend)] as BatchingEngine, request, () => {
      slot.ended({
        ...{ inputTokens: request.input, cachedTokens: request.cached, outputTokens: asked.tokens, stream: true },
        ...{ durationMs: time.nowMs - sentMs, isOverload: false },
        firstByteMs: request.firstMs === undefined ? undefined : request.firstMs - sentMs,
      });
    });
    slot.watch(asked);
  };
  return {
    service,
    limit() {
      const limits = queue.view().backends.map(({ limit }) => limit ?? 0);
      return limits.toSorted((one, other) => one - other)[limits.length >> 1] ?? 0;
    },
    send(request) {
      const wanted: SlotQuery = {
        ...{ group, model: "m", class: "default", tenant: [request.tenant], goesFirst: false },
        ...{
          inputTokens: Math.round(request.input * scenario.estimate),
          outputTokens: EXPECTED_OUTPUT,
          ageMs: 0,
          patienceMs: PATIENCE_MS,
        },
      };
      const tokens = wanted.inputTokens + wanted.outputTokens;
      const free = names.filter((name) => queue.hasRoom(name, tokens));
      if (free.length > 0) {
        const slot = queue.take(
          leastOf(free, (name) => engines[names.indexOf(name)]?.inFlight ?? 0),
          wanted,
        );
        if (slot !== undefined) return start(request, slot);
      }
      void queue.wait(wanted, names).granted.then(({ slot, shed }: Granted) => {
        if (slot !== undefined) start(request, slot);
        else request.over(false, shed?.retryAfterMs ?? 0);
      });
    },
  };
}

// What is measured.

function outcomeOf(done: readonly Request[], served: Map<string, number>, scenario: Scenario, limit: number): Outcome {
  const waits = (of: (request: Request) => boolean) =>
    done
      .filter(of)
      .map(({ begunMs, firstMs }) => (firstMs ?? begunMs + PATIENCE_MS) - begunMs)
      .toSorted((one, other) => one - other);
  const lost = (isSmall: boolean) => {
    const all = done.filter((request) => request.isSmall === isSmall);
    return all.length === 0 ? 0 : all.filter(({ firstMs }) => firstMs === undefined).length / all.length;
  };
  const small = waits(({ isSmall }) => isSmall);
  const heavy = waits(({ isSmall, firstMs }) => !isSmall && firstMs !== undefined);
  const tenants = Array.from({ length: SMALL_TENANTS }, (_, index) => `small ${index}`);
  const seconds = scenario.measuredMs / 1000;
  const total = [...served.values()].reduce((sum, tokens) => sum + tokens, 0);
  return {
    ...{ p50Ms: percentile(small, 0.5), p95Ms: percentile(small, 0.95), maxMs: small.at(-1) ?? 0 },
    worstTenantP95Ms: Math.max(
      ...tenants.map((name) =>
        percentile(
          waits(({ tenant }) => tenant === name),
          0.95,
        ),
      ),
    ),
    ...{ smallLost: lost(true), heavyLost: lost(false) },
    ...{ heavyP50Ms: percentile(heavy, 0.5), heavyP95Ms: percentile(heavy, 0.95) },
    ...{
      throughput: total / seconds,
      heavyPart: (served.get("heavy") ?? 0) / total,
      heavyRate: heavy.length / seconds,
    },
    ...{ jain: jain(done, served, total), limit },
  };
}

function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

/**
 * Jain's index (sum x)^2 / (n * sum x^2), where x is what a tenant got by what it would get by max-min fairness: its demand, where that
 * is less than an equal share of what the others leave. The heavy tenant asks for more than there is.
 */
function jain(done: readonly Request[], served: Map<string, number>, total: number): number {
  const demand = new Map<string, number>();
  for (const request of done) {
    const tokens = inputService(request) + outputService(request);
    demand.set(request.tenant, (demand.get(request.tenant) ?? 0) + tokens);
  }
  demand.set("heavy", Number.POSITIVE_INFINITY);
  let left = total;
  let count = demand.size;
  let [sum, squares] = [0, 0];
  for (const [tenant, wanted] of [...demand].toSorted(([, one], [, other]) => one - other)) {
    const share = Math.min(wanted, left / count);
    left -= share;
    count--;
    const part = (served.get(tenant) ?? 0) / share;
    sum += part;
    squares += part * part;
  }
  return (sum * sum) / (demand.size * squares);
}
