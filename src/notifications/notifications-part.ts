// The receivers that the configuration names, and the events of the gateway that they get.

import type { KeyIdentity } from "../access/key-identity.ts";
import type { KeyStore } from "../access/key-store.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { NotificationEvent } from "../config/sections/notifications.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { BudgetChange, Happenings, HealthChange, RouteRollback } from "../stats/happenings.ts";
import { createDeliver } from "./deliver.ts";
import { createExpiringKeys } from "./expiring-keys.ts";
import type { Happened, Notice } from "./notice.ts";
import { createRepeats } from "./repeats.ts";
import { type Counted, createTarget, type Receiver } from "./target.ts";

interface NotificationsParts {
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
  identify: KeyIdentity;
  /** Keys of the key store that end between two times. */
  keysEnding: KeyStore["ending"];
  happenings: Pick<Happenings, "watch">;
  /** The absolute path of something that is written. */
  dataPath(path: string): string;
  counted(target: string, outcome: Counted): void;
  /** Paths that cannot be written, each with the reason. */
  storageProblems(): readonly string[];
}

const rounded = (value: number) => Number(value.toPrecision(3));

export type Notifications = ReturnType<typeof createNotificationsPart>;

const REPEAT_WINDOW_MS = 5 * 60_000;
const LOOK_MS = 5_000;
const KEYS_LOOK_MS = 10 * 60_000;
const DOWN: ReadonlySet<string> = new Set(["down", "unhealthy"]);

// Long because these functions share the targets and what was notified of backends, keys and storage.
export function createNotificationsPart(snapshot: ConfigSnapshot, parts: NotificationsParts) {
  const { clock, log, identify, keysEnding, happenings, dataPath, counted, storageProblems } = parts;
  const wallTime = () => clock.wallTime();
  const deliver = createDeliver({ wallTime });
  const targets = new Map<string, Receiver>();
  const repeats = createRepeats({ windowMs: REPEAT_WINDOW_MS, now: clock.now, tell });
  const expiring = createExpiringKeys({ path: dataPath("./data/notifications.json"), identify, wallTime, log });
  let { settings } = snapshot;
  let timer: Timer | undefined;
  let keysLookedMs = Number.NEGATIVE_INFINITY;
  let knownProblems: ReadonlySet<string> = new Set();
  const down = new Set<string>();

  function noticeOf(event: Happened): Notice {
    return { ...event, id: `msg_${crypto.randomUUID().replaceAll("-", "")}`, atMs: wallTime() };
  }

  function tell(event: Happened): void {
    const notice = noticeOf(event);
    for (const target of targets.values()) target.add(notice);
  }

  function happened(type: NotificationEvent, subject: string, data: object, text: string): void {
    if (targets.size > 0) repeats.add({ type, subject, data, text });
  }

  const isWanted = (type: NotificationEvent) => [...targets.values()].some((target) => target.wants(type));

  async function lookAtKeys(): Promise<void> {
    if (clock.now() - keysLookedMs < KEYS_LOOK_MS || !isWanted("key_expiring")) return;
    keysLookedMs = clock.now();
    for (const { key, endsMs, days } of await expiring.look(settings.api_keys.keys, keysEnding)) {
      const expires_at = new Date(endsMs).toISOString();
      const text = `The key ${key} ends at ${expires_at}, within ${days === 1 ? "one day" : `${days} days`}.`;
      happened("key_expiring", `${key} ${endsMs} ${days}`, { key, expires_at, within_days: days }, text);
    }
  }

  function look(): void {
    repeats.sweep();
    const problems = storageProblems();
    for (const problem of problems) {
      if (!knownProblems.has(problem)) {
        happened("storage_problem", problem, { problem }, `Storage cannot be used: ${problem}.`);
      }
    }
    knownProblems = new Set(problems);
    lookAtKeys().catch((error: unknown) => {
      log.warn({ reason: error instanceof Error ? error.message : "unknown" }, "the ends of keys cannot be looked up");
    });
  }

  happenings.watch({
    healthChanged({
      backend,
      from,
      to,
      reason = null,
    }: Omit<HealthChange, "reason"> & { reason?: string | null | undefined }) {
      const data = { backend, from, to, reason };
      if (DOWN.has(to) && !down.has(backend)) {
        down.add(backend);
        const why = reason === null ? "." : `: ${reason}.`;
        happened("backend_down", backend, data, `The backend ${backend} is ${to}${why}`);
      } else if (to === "ready" && down.delete(backend)) {
        happened("backend_up", backend, data, `The backend ${backend} is ready again.`);
      }
    },
    circuitChanged({ backend, from, to }) {
      if (to === "open") {
        happened("circuit_open", backend, { backend, from, to }, `The circuit of the backend ${backend} is open.`);
      } else if (to === "closed") {
        happened("circuit_closed", backend, { backend, from, to }, `The circuit of the backend ${backend} is closed.`);
      }
    },
    routeRolledBack(change: RouteRollback) {
      const { route, arm, metric, value, compared, main } = change;
      const numbers = `${metric} ${rounded(value)}, ${rounded(compared)} of ${main}`;
      const text = `The target ${arm} of the route ${route} gets no more requests: ${numbers}.`;
      happened("route_rollback", `${route} ${arm}`, change, text);
    },
    budgetCrossed(change: BudgetChange) {
      const { budget, subject, share, amount, spent, limit } = change;
      const whose = subject === "" ? "" : ` of ${subject}`;
      const text = `The budget ${budget}${whose} is spent to ${Math.round(share * 100)} %: ${spent} of ${limit} (${amount}).`;
      happened(
        "budget",
        JSON.stringify([budget, subject, amount, share, limit]),
        { ...change, subject: subject || null },
        text,
      );
    },
  });

  function follow({ settings: next }: Pick<ConfigSnapshot, "settings">): void {
    settings = next;
    const names = new Set(next.notifications.map(({ name }) => name));
    for (const [name, target] of targets) {
      if (names.has(name)) continue;
      void target.stop(0);
      targets.delete(name);
    }
    for (const target of next.notifications) {
      const running = targets.get(target.name);
      if (running !== undefined) running.follow(target);
      else {
        const { random } = Math;
        targets.set(target.name, createTarget(target, { deliver, wallTime, random, log, counted }));
      }
    }
    keysLookedMs = Number.NEGATIVE_INFINITY;
    if (targets.size === 0) {
      clearInterval(timer);
      timer = undefined;
    } else timer ??= setInterval(look, LOOK_MS);
  }
  follow(snapshot);

  return {
    follow,
    configChanged(version: number, previous_version: number, sections: readonly string[]): void {
      const text = `The configuration has version ${version}; changed: ${sections.join(", ")}.`;
      happened("config_changed", String(version), { version, previous_version, sections }, text);
    },
    configRefused(file: string, problems: readonly string[]): void {
      const text = `An edit of the configuration file is refused: ${problems[0] ?? "it cannot be read"}.`;
      happened("config_refused", `${file} ${problems.join("\n")}`, { file, problems }, text);
    },
    states: () => [...targets].map(([name, target]) => ({ name, ...target.state() })),
    /** Undefined: there is no target of this name. */
    test(name: string) {
      const text = "This is a test of a notification.";
      return targets.get(name)?.test(noticeOf({ type: "test", subject: "", data: { message: text }, text }));
    },
    async stop(withinMs: number): Promise<void> {
      clearInterval(timer);
      await Promise.all([...targets.values()].map((target) => target.stop(withinMs)));
    },
  };
}
