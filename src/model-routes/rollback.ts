// Takes requests from targets that are worse than the main one of their route, by a change of the configuration: it is kept, has a place in
// the history, reaches every process, and is undone as any other change is.

import { describeChangeError } from "../config/change/change.ts";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { RouteSettings, TargetSettings } from "../config/sections/routes.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { isMapping, type Mapping } from "../config/values/values.ts";
import type { Logger } from "../logging/logger.ts";
import type { RouteRollback } from "../stats/happenings.ts";
import type { RouteArm } from "../stats/request-record.ts";
import { type ArmBook, armsOf } from "./arm-book.ts";
import { armName, everyTarget } from "./routes.ts";

interface RollbackParts {
  store: Pick<ConfigStore, "edit" | "current">;
  book: Pick<ArmBook, "watch" | "worseIn" | "keepOnly" | "startAgain">;
  log: Pick<Logger, "warn" | "error">;
  rolledBack(change: RouteRollback): void;
  now(): number;
}

/** How long a change that could not be made is not tried again. */
const PAUSE_MS = 60_000;

export function createRollbackPart({ settings }: Pick<ConfigSnapshot, "settings">, parts: RollbackParts): Part {
  const { store, book, log, rolledBack, now } = parts;
  let routes = new Map<string, RouteSettings>();
  /** Those whose weight is being changed or could not be, and until when they are left alone. */
  const begun = new Map<string, number>();

  async function rollBack(key: string, worse: RouteRollback): Promise<void> {
    const { route, arm, metric, main } = worse;
    const description = `${arm} of the route ${route} has weight 0: its ${metric} is worse than that of ${main}`;
    const result = await store.edit(({ routes: written }) => ({
      sections: { routes: withoutWeight(written, store.current.settings.routes, worse) },
      mode: "replace",
      source: "rollback",
      description,
    }));
    if (result.ok) {
      if (!result.value.applied) return; // it had lost its weight already, by a change that came first
      log.warn({ ...worse }, "a target of a route is worse than the main one: it gets no more requests");
      rolledBack(worse);
    } else {
      begun.set(key, now() + PAUSE_MS);
      const reason = describeChangeError(result.error);
      log.error(
        { ...worse, reason },
        "a target of a route is worse than the main one, and its weight cannot be changed",
      );
    }
  }

  function judge(arms: readonly RouteArm[]): void {
    for (const { route: name } of arms) {
      const route = routes.get(name);
      if (route?.rollback === undefined) continue;
      for (const { targets } of [route, ...route.when]) {
        for (const worse of book.worseIn(route, targets)) {
          const key = JSON.stringify([worse.route, worse.arm]);
          if ((begun.get(key) ?? 0) > now()) continue;
          begun.set(key, Number.POSITIVE_INFINITY);
          void rollBack(key, worse);
        }
      }
    }
  }

  function follow(next: Pick<ConfigSnapshot, "settings">): void {
    const before = routes;
    routes = new Map(next.settings.routes.map((route) => [route.name, route]));
    book.keepOnly(next.settings.routes);
    begun.clear();
    for (const [name, route] of routes) {
      const earlier = before.get(name);
      if (earlier === undefined) continue;
      for (const arm of armsOf(route)) {
        if (timesWeighted(route, arm) > timesWeighted(earlier, arm)) book.startAgain({ route: name, arm });
      }
    }
  }

  book.watch(judge);
  follow({ settings });
  return { follow };
}

/** In how many of its lists a target has a weight. */
function timesWeighted(route: RouteSettings, arm: string): number {
  return everyTarget(route).filter((target) => armName(target) === arm && target.weight > 0).length;
}

/**
 * The section as it is written, with weight 0 for a target wherever another one is left. What is written may be variables of the
 * environment: the settings that are made of it, in the same order, have the names.
 */
function withoutWeight(written: unknown, routes: readonly RouteSettings[], { route, arm }: RouteArm): unknown[] {
  const entries = Array.isArray(written) ? written : [];
  return entries.map((entry: unknown, index) => {
    const settings = routes[index];
    if (!isMapping(entry) || settings?.name !== route) return entry;
    const { when } = entry;
    return {
      ...entry,
      targets: unweighted(entry.targets, settings.targets, arm),
      ...(Array.isArray(when) && {
        when: when.map((condition: unknown, place) =>
          isMapping(condition)
            ? { ...condition, targets: unweighted(condition.targets, settings.when[place]?.targets ?? [], arm) }
            : condition,
        ),
      }),
    };
  });
}

function unweighted(written: unknown, targets: readonly TargetSettings[], arm: string): unknown {
  const isLeft = targets.some((target) => armName(target) !== arm && target.weight > 0);
  if (!Array.isArray(written) || !isLeft) return written;
  const isIt = (place: number) => armName(targets[place] as TargetSettings) === arm;
  return written.map((target: Mapping, place) => (isIt(place) ? { ...target, weight: 0 } : target));
}
