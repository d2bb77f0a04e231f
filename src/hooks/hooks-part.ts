// The hooks that the configuration names: their processes, started and replaced as it changes, and which requests each is for.

import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { BUILTIN_PREFIX, type HookSettings } from "../config/sections/hooks.ts";
import type { Clock } from "../lib/clock.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import { compileGlob } from "../lib/glob.ts";
import { lazily } from "../lib/lazily.ts";
import type { Logger } from "../logging/logger.ts";
import type { HookInfo } from "./define.ts";
import type { HookRunner } from "./hook-runner.ts";
import type { HostedHook, LoadedHook } from "./hook-wire.ts";
import { createHttpRunner } from "./http-runner.ts";
import { createProcessRunner, type RestartCause } from "./process-runner.ts";

/** One entry of the configuration. */
export interface HookInUse {
  settings: HookSettings;
  matches(info: HookInfo): boolean;
  readonly runner: HookRunner;
}

interface HooksPart extends Part {
  /** In the order of the configuration; undefined: none are configured. */
  readonly inUse: readonly HookInUse[] | undefined;
}

interface HooksPartParts {
  /** What starts this program; asked for when the first module is there. */
  launch(): { command: readonly string[]; env: Record<string, string | undefined> };
  /** Known to all processes of this gateway, and to nothing else. */
  secret(): string;
  deadlines: Deadlines;
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
  restarted(hook: string, cause: RestartCause): void;
}

/** Hooks of one module, which share a process. */
interface ModuleGroup {
  hooks: readonly HostedHook[];
  maxBytes: number;
  hash: string | undefined;
  runner: HookRunner;
  /** Replaces the runner when it is loaded. */
  next: HookRunner | undefined;
}

type NamedFiles = Pick<ConfigSnapshot, "settings" | "baseDir" | "attachments">;

const BUILTIN_GROUP = BUILTIN_PREFIX;

// Long because these functions share the processes.
export function createHooksPart(snapshot: NamedFiles, parts: HooksPartParts): HooksPart {
  const { launch, deadlines, clock, log, restarted } = parts;
  const secret = lazily(parts.secret);
  const groups = new Map<string, ModuleGroup>();
  const https = new Map<string, { settings: HookSettings; runner: HookRunner }>();
  let inUse: readonly HookInUse[] | undefined;

  function newRunner({ hooks, maxBytes }: Pick<ModuleGroup, "hooks" | "maxBytes">, cwd: string): HookRunner {
    const { now } = clock;
    return createProcessRunner({ ...launch(), ...{ cwd, hooks, maxBytes, deadlines, now, log, restarted }, loaded });
  }

  function loaded({ name, problem }: LoadedHook): void {
    if (problem !== undefined) log.warn({ hook: name, reason: problem }, "a hook could not be loaded");
  }

  /** The edited file takes over when it is loaded; one that cannot be loaded leaves the process that runs. */
  async function replace(group: ModuleGroup, cwd: string): Promise<void> {
    group.next?.stop();
    const next = newRunner(group, cwd);
    group.next = next;
    const all = await Promise.all(group.hooks.map(({ name }) => next.ready(name)));
    if (group.next !== next) return;
    group.next = undefined;
    const names = group.hooks.map(({ name }) => name);
    if (all.some((hook) => hook === undefined || hook.problem !== undefined)) {
      next.stop();
      log.warn({ hooks: names }, "the edited module of these hooks is not used; its earlier form goes on");
      return;
    }
    const before = group.runner;
    group.runner = next;
    before.retire();
    log.info({ hooks: names }, "the module of these hooks was loaded again");
  }

  function groupOf(key: string, wanted: Pick<ModuleGroup, "hooks" | "maxBytes" | "hash">, cwd: string): ModuleGroup {
    const group = groups.get(key);
    const { hooks, maxBytes } = wanted;
    if (group !== undefined && group.maxBytes === maxBytes && Bun.deepEquals(group.hooks, hooks, true)) {
      if (group.hash !== wanted.hash) {
        group.hash = wanted.hash;
        void replace(group, cwd);
      }
      return group;
    }
    if (group !== undefined) retire(group);
    const made: ModuleGroup = { ...wanted, runner: newRunner(wanted, cwd), next: undefined };
    groups.set(key, made);
    return made;
  }

  /** Requests under way go on with it. */
  function retire({ runner, next }: ModuleGroup): void {
    runner.retire();
    next?.stop();
  }

  function httpRunner(settings: HookSettings): HookRunner {
    const { name, url = "" } = settings;
    const known = https.get(name);
    if (known !== undefined && Bun.deepEquals(known.settings, settings, true)) return known.runner;
    known?.runner.retire();
    const runner = createHttpRunner({ ...settings, url }, { clock, deadlines });
    https.set(name, { settings, runner });
    return runner;
  }

  function follow({ settings: { hooks }, baseDir, attachments }: NamedFiles): void {
    const wanted = new Map<string, { hooks: HostedHook[]; maxBytes: number; hash: string | undefined }>();
    for (const { name, module, options, max_memory } of hooks) {
      if (module === undefined) continue;
      const isBuiltin = module.startsWith(BUILTIN_PREFIX);
      const path = isBuiltin ? module : (attachments.hookModules.get(module) ?? module);
      const key = isBuiltin ? BUILTIN_GROUP : path;
      const group = wanted.get(key) ?? { hooks: [], maxBytes: 0, hash: attachments.files.get(path) };
      group.hooks.push({ name, module: path, options, salt: saltOf(secret(), name) });
      group.maxBytes = Math.max(group.maxBytes, max_memory);
      wanted.set(key, group);
    }
    const byName = new Map<string, ModuleGroup>();
    for (const [key, group] of wanted) {
      const running = groupOf(key, group, baseDir);
      for (const { name } of group.hooks) byName.set(name, running);
    }
    for (const [key, group] of groups) {
      if (wanted.has(key)) continue;
      retire(group);
      groups.delete(key);
    }
    const kept = new Set(hooks.flatMap(({ name, url }) => (url === undefined ? [] : [name])));
    inUse = hooks.length === 0 ? undefined : hooks.map((hook) => hookInUse(hook, byName.get(hook.name)));
    for (const [name, { runner }] of https) {
      if (kept.has(name)) continue;
      runner.retire();
      https.delete(name);
    }
  }

  function hookInUse(settings: HookSettings, group: ModuleGroup | undefined): HookInUse {
    const matches = matcherOf(settings.match);
    if (group === undefined) return { settings, matches, runner: httpRunner(settings) };
    return {
      settings,
      matches,
      get runner() {
        return group.runner;
      },
    };
  }

  follow(snapshot);
  return {
    follow,
    get inUse() {
      return inUse;
    },
    stop() {
      for (const { runner, next } of groups.values()) {
        runner.stop();
        next?.stop();
      }
      for (const { runner } of https.values()) runner.stop();
    },
  };
}

function saltOf(secret: string, name: string): string {
  return new Bun.CryptoHasher("sha256", secret).update(name).digest("hex");
}

/** Every field that is given must hold. */
export function matcherOf(match: HookSettings["match"]): HookInUse["matches"] {
  const models = match.model?.map(compileGlob);
  const isIn = (names: readonly string[] | undefined, name: string | undefined) =>
    names === undefined || (name !== undefined && names.includes(name));
  return ({ key, organization, operation, model }) =>
    isIn(match.key, key) &&
    isIn(match.organization, organization) &&
    isIn(match.operation, operation) &&
    // A client asks for a route by its name.
    isIn(match.route, model) &&
    (models === undefined || models.some((matches) => matches(model)));
}
