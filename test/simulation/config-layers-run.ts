// Random sequences of API changes, edits of the file, rollbacks and restarts against a store with a real SQLite file, beside
// the model of the rules.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { acceptedSecrets } from "../../src/access/api-keys.ts";
import type { Result } from "../../src/config/change/change.ts";
import { loadConfig } from "../../src/config/compile/load.ts";
import { openConfigStore } from "../../src/config/store/open-store.ts";
import type { ConfigStore } from "../../src/config/store/store.ts";
import type { Mapping } from "../../src/config/values/values.ts";
import {
  type Ended,
  givesEnded,
  hasRepeatedSecret,
  type Key,
  merged,
  restored,
  SECTIONS,
  type State,
  secretsOf,
  withoutEnded,
} from "./config-layers-model.ts";

const IDS = ["team-a", "team-b", "team-c"];
const SECRETS = ["sekret-1", "sekret-2", "sekret-3", "sekret-4", "sekret-5"];
const BACKENDS = ["one", "two", "three"];
const MODELS = ["m", "n"];
const START_MS = Date.parse("2030-01-01T00:00:00Z");
const NEVER = Number.POSITIVE_INFINITY;

const id = fc.constantFrom(...IDS);
const secret = fc.constantFrom(...SECRETS);
const model = fc.constantFrom(...MODELS);
const ticks = fc.integer({ min: 1, max: 30 });
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

/** Changes that the file and the API can both make. */
const change = fc.oneof(
  fc.record({ kind: fc.constant("level" as const), level: maybe(fc.constantFrom("debug", "warn")) }),
  fc.record({ kind: fc.constant("backend" as const), name: fc.constantFrom(...BACKENDS), weight: maybe(fc.nat(3)) }),
  fc.record({ kind: fc.constant("chain" as const), model, standIn: maybe(fc.constantFrom("x", "y")) }),
  fc.record({ kind: fc.constant("key" as const), id, secret, ticks: maybe(ticks) }),
  fc.record({ kind: fc.constant("models" as const), id, models: maybe(model) }),
  fc.record({ kind: fc.constant("end" as const), id, ticks: maybe(ticks) }),
  fc.record({ kind: fc.constant("drop" as const), id }),
);

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("api" as const), change }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("rotate" as const), id, secret, overlap: fc.constantFrom(0, 0, 5) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("endOverlap" as const), id }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("edit" as const),
      changes: fc.array(change, { minLength: 1, maxLength: 3 }),
      isRunning: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("rollback" as const),
      back: fc.nat(8),
      sections: maybe(fc.subarray([...SECTIONS], { minLength: 1 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("import" as const), back: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("stage" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("applyStaged" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), ignoreSaved: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ticks }) },
);

export type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;
export type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

export const sequences = fc.array(step, { minLength: 1, maxLength: 30, size: "max" });

const EMPTY: State = { level: undefined, backends: new Map(), chains: new Map(), keys: new Map() };

/** A copy of the state with one change; the same where there is nothing to change. */
function changed(state: State, made: Change, nowMs: number): State {
  const endMs = (after: number | undefined) => (after === undefined ? NEVER : nowMs + after);
  const withEntry = <Entry>(entries: Map<string, Entry>, name: string, entry: Entry | undefined) => {
    const next = new Map(entries);
    if (entry === undefined) next.delete(name);
    else next.set(name, entry);
    return next;
  };
  const key = "id" in made ? state.keys.get(made.id) : undefined;
  const withKey = (next: Key | undefined) => ({
    ...state,
    keys: withEntry(state.keys, (made as { id: string }).id, next),
  });
  switch (made.kind) {
    case "level":
      return { ...state, level: made.level };
    case "backend":
      return { ...state, backends: withEntry(state.backends, made.name, made.weight) };
    case "chain":
      return { ...state, chains: withEntry(state.chains, made.model, made.standIn) };
    case "key":
      return withKey({
        ...(key ?? { models: undefined, previous: undefined }),
        secret: made.secret,
        endMs: endMs(made.ticks),
      });
    case "models":
      return key === undefined ? state : withKey({ ...key, models: made.models });
    case "end":
      return key === undefined ? state : withKey({ ...key, endMs: endMs(made.ticks) });
    case "drop":
      return withKey(undefined);
  }
}

const timeOf = (ms: number) => new Date(ms).toISOString();

function keyEntries({ keys }: State): Mapping[] {
  return [...keys].map(([id, { secret, endMs, models, previous }]) => ({
    id,
    key: secret,
    ...(endMs !== NEVER && { expires_at: timeOf(endMs) }),
    ...(models !== undefined && { models: [models] }),
    ...(previous && { previous: { key: previous.secret, expires_at: timeOf(previous.endMs) } }),
  }));
}

function sectionsOf(state: State): Mapping {
  return {
    logging: state.level === undefined ? {} : { level: state.level },
    backends: [...state.backends].map(([name, weight]) => ({ name, type: "demo", models: ["m"], weight })),
    fallback: { fallback_chains: Object.fromEntries([...state.chains].map(([model, standIn]) => [model, [standIn]])) },
    api_keys: { keys: keyEntries(state) },
  };
}

/** What runs, as far as the model speaks of it. */
function observed({ current: { settings } }: ConfigStore): State {
  return {
    level: settings.logging.level,
    backends: new Map(settings.backends.map(({ name, weight }) => [name, weight])),
    chains: new Map(
      Object.entries(settings.fallback.fallback_chains).map(([model, [standIn]]) => [model, standIn ?? ""]),
    ),
    keys: new Map(
      settings.api_keys.keys.map(({ id = "", key, expires_at = NEVER, models, previous }) => [
        id,
        {
          secret: key,
          endMs: expires_at,
          models: models?.[0],
          previous: previous && { secret: previous.key, endMs: previous.expires_at },
        },
      ]),
    ),
  };
}

const effective = (state: State): State => ({ ...state, level: state.level ?? "info" });

const sorted = (state: State) => ({
  level: state.level,
  backends: [...state.backends].sort(),
  chains: [...state.chains].sort(),
  keys: [...state.keys].sort(([one], [other]) => (one < other ? -1 : 1)),
});

function expectSame(found: State, expected: State, what: string): void {
  const [one, other] = [sorted(found), sorted(effective(expected))];
  if (Bun.deepEquals(one, other)) return;
  throw new Error(`${what}: runs ${JSON.stringify(one)}, expected ${JSON.stringify(other)}`);
}

export async function runSequence(steps: readonly Step[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "config-layers-"));
  const world = new World(folder);
  try {
    await world.begin();
    for (const [index, step] of steps.entries()) await world.take(step, `step ${index}, ${JSON.stringify(step)}`);
  } finally {
    world.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The store beside the model. */
class World {
  readonly #folder: string;
  #store: ConfigStore | undefined;
  #nowMs = START_MS;
  #hash = 0;
  /** The file as it is, and as it was applied last. */
  #file = EMPTY;
  #base = EMPTY;
  #running = EMPTY;
  #staged: { keys: State["keys"]; version: number } | undefined;
  readonly #versions = new Map<number, State>();
  readonly #revoked = new Set<string>();
  /** Seen from outside: secrets that were valid and were taken away, other than by a rollback. */
  readonly #takenAway = new Set<string>();
  #valid = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  get store(): ConfigStore {
    return this.#store as ConfigStore;
  }

  async begin(): Promise<void> {
    await this.start(false);
    this.#versions.set(this.store.current.version, this.#running);
  }

  stop(): void {
    this.#store?.close();
    this.#store = undefined;
  }

  /** False where the start is refused. */
  async start(ignoreSaved: boolean): Promise<boolean> {
    const path = join(this.#folder, "config.yaml");
    writeFileSync(path, JSON.stringify(sectionsOf(this.#file)));
    const clock = { now: () => this.#nowMs, wallTime: () => this.#nowMs };
    const common = { env: {}, home: undefined, checks: [], readers: [], clock };
    const loaded = await loadConfig({ ...common, path, cwd: this.#folder });
    if (!loaded.ok) throw new Error(`the file is wrong: ${JSON.stringify(loaded.problems)}`);
    const log = {
      info() {},
      warn() {},
      error: (fields: object, message: string) => fail(`${message} ${JSON.stringify(fields)}`),
    };
    const opened = await openConfigStore({
      ...common,
      snapshot: loaded.snapshot,
      fileHash: String(this.#hash),
      log,
      ignoreSaved,
    });
    if (!opened.ok) return false;
    this.#store = opened.store;
    return true;
  }

  async take(step: Step, what: string): Promise<void> {
    const fileBefore = this.#base;
    // An administrator may give a key that has expired more time.
    const renewable = step.kind === "api" && "id" in step.change ? this.#running.keys.get(step.change.id) : undefined;
    await this.#act(step, what);
    const version = this.store.current.version;
    if (!this.#versions.has(version)) this.#versions.set(version, this.#running);
    expectSame(observed(this.store), this.#running, what);

    const valid = new Set(
      this.store.current.settings.api_keys.keys
        .flatMap((key) => acceptedSecrets(key, ({ id = "" }) => id))
        .filter(({ caller }) => caller.expiresAtMs > this.#nowMs)
        .map(({ secret }) => secret),
    );
    const isFileAlone = step.kind === "restart" && step.ignoreSaved;
    const named = secretsOf(this.#base);
    const before = secretsOf(fileBefore);
    for (const secret of valid) {
      if (!this.#takenAway.has(secret)) continue;
      const isNamedAnew = named.has(secret) && before.get(secret)?.endMs !== named.get(secret)?.endMs;
      const isRenewed = renewable?.secret === secret || renewable?.previous?.secret === secret;
      if (!isNamedAnew && !isRenewed && !(isFileAlone && named.has(secret))) fail(`${what}: ${secret} is valid again`);
      this.#takenAway.delete(secret);
    }
    for (const secret of this.#valid) {
      if (!valid.has(secret) && step.kind !== "rollback" && !isFileAlone) this.#takenAway.add(secret);
    }
    this.#valid = valid;
  }

  // Long because every kind of step stands beside the others.
  async #act(step: Step, what: string): Promise<void> {
    const { store } = this;
    const rules: Ended = { revoked: this.#revoked, running: this.#running, nowMs: this.#nowMs };
    switch (step.kind) {
      case "wait":
        this.#nowMs += step.ticks;
        return;
      case "api":
        return await this.#change(changed(this.#running, step.change, this.#nowMs), what);
      case "rotate":
      case "endOverlap": {
        const key = this.#running.keys.get(step.id);
        if (key === undefined) return;
        const endMs = step.kind === "rotate" && step.overlap > 0 ? this.#nowMs + step.overlap : undefined;
        const previous = endMs === undefined ? undefined : { secret: key.secret, endMs };
        const next: Key = { ...key, secret: step.kind === "rotate" ? step.secret : key.secret, previous };
        return await this.#change({ ...this.#running, keys: new Map(this.#running.keys).set(step.id, next) }, what);
      }
      case "edit":
        return await this.#edit(step.changes, step.isRunning, rules, what);
      case "rollback": {
        const target = this.#versionBack(step.back);
        const state = this.#versions.get(target) as State;
        const next = withoutEnded(restored(this.#running, state, step.sections ?? SECTIONS), rules);
        const { sections } = step;
        this.#expect(
          await store.history.rollback(target, sections === undefined ? {} : { sections }),
          next,
          what,
          "ended",
        );
        return;
      }
      case "import": {
        const state = this.#versions.get(this.#versionBack(step.back)) as State;
        const { api_keys } = sectionsOf(state);
        const next = withoutEnded(restored(this.#running, state, ["api_keys"]), rules);
        const asked = { sections: { api_keys }, mode: "replace", isImport: true, source: "import" } as const;
        this.#expect(await store.apply(asked), next, what);
        return;
      }
      case "stage": {
        const { api_keys } = sectionsOf(this.#running);
        const staged = await store.staging.stage({ sections: { api_keys }, mode: "replace", source: "api" });
        if (!staged.ok) fail(`${what}: ${JSON.stringify(staged.error)}`);
        this.#staged = { keys: this.#running.keys, version: store.current.version };
        return;
      }
      case "applyStaged": {
        if (this.#staged === undefined) return;
        const next = withoutEnded({ ...this.#running, keys: this.#staged.keys }, rules);
        if (this.#expect(await store.staging.apply({ source: "api", force: true }), next, what))
          this.#staged = undefined;
        return;
      }
      case "restart": {
        this.stop();
        if (step.ignoreSaved) {
          for (const secret of secretsOf(this.#file).keys()) this.#revoked.delete(secret);
          this.#become(this.#file, "ended");
          this.#base = this.#file;
        }
        if (!(await this.start(step.ignoreSaved))) fail(`${what}: the start was refused`);
      }
    }
  }

  #versionBack(back: number): number {
    return Math.max(1, this.store.current.version - back);
  }

  async #change(next: State, what: string): Promise<void> {
    const sections = sectionsOf(next);
    const isRefused = givesEnded(next, { revoked: this.#revoked, running: this.#running, nowMs: this.#nowMs });
    const result = await this.store.edit(() => ({ sections, mode: "replace", source: "api" }));
    this.#expect(result, isRefused ? undefined : next, what);
  }

  /** Undefined: a refusal. */
  #expect(result: Result<unknown>, next: State | undefined, what: string, revokes: "all" | "ended" = "all"): boolean {
    const isPossible = next !== undefined && !hasRepeatedSecret(next);
    if (result.ok !== isPossible) {
      const found = result.ok ? "was made" : `was refused: ${JSON.stringify(result.error)}`;
      fail(`${what} ${found}, expected ${JSON.stringify(next && sorted(next))}`);
    }
    if (isPossible) this.#become(next, revokes);
    return isPossible;
  }

  #become(next: State, revokes: "all" | "ended"): void {
    const stay = secretsOf(next);
    for (const [secret, { endMs }] of secretsOf(this.#running)) {
      if (!stay.has(secret) && (revokes === "all" || endMs <= this.#nowMs)) this.#revoked.add(secret);
    }
    this.#running = next;
  }

  async #edit(changes: readonly Change[], isRunning: boolean, rules: Ended, what: string): Promise<void> {
    const file = changes.reduce((state, made) => changed(state, made, this.#nowMs), this.#file);
    // The file has to be right by itself, and nobody writes what has ended already.
    if (hasRepeatedSecret(file)) return;
    const before = secretsOf(this.#base);
    const named = secretsOf(file);
    const revoked = new Set([...this.#revoked].filter((secret) => !named.has(secret) || before.has(secret)));
    const renewed = new Set(
      [...named]
        .filter(([secret, { endMs }]) => before.get(secret)?.endMs !== endMs)
        .map(([secret, { endMs }]) => `${secret} ${endMs}`),
    );
    const next = withoutEnded(merged(this.#base, file, this.#running), { ...rules, revoked, renewed });
    const isPossible = !hasRepeatedSecret(next);
    const fileBefore = this.#file;
    this.#file = file;
    this.#hash++;
    if (isRunning) {
      const result = await this.store.applyFile(sectionsOf(file), { hash: String(this.#hash) });
      if (result.ok !== isPossible)
        fail(`${what}: ${JSON.stringify(result)}, expected ${JSON.stringify(sorted(next))}`);
    } else {
      this.stop();
      const hasStarted = await this.start(false);
      if (hasStarted !== isPossible) fail(`${what}: the start was ${hasStarted ? "" : "not "}possible`);
    }
    if (isPossible) {
      this.#base = file;
      for (const secret of this.#revoked) if (!revoked.has(secret)) this.#revoked.delete(secret);
      this.#become(next, "all");
      return;
    }
    // The operator takes it back.
    this.#file = fileBefore;
    this.#hash++;
    if (isRunning) {
      const result = await this.store.applyFile(sectionsOf(fileBefore), { hash: String(this.#hash) });
      if (!result.ok) fail(`${what}, taken back: ${JSON.stringify(result.error)}`);
    } else if (!(await this.start(false))) fail(`${what}, taken back: the start was refused`);
  }
}

function fail(message: string): never {
  throw new Error(message);
}
