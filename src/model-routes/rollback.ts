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
import { armName } from "./routes.ts";

interface RollbackParts {
  store: Pick<ConfigStore, "edit">;
  book: Pick<ArmBook, "watch" | "worseIn" | "keepOnly" | "startAgain">;
  log: Pick<Logger, "warn" | "error">;
  rolledBack(change: RouteRollback): void;
}

export function createRollbackPart({ settings }: Pick<ConfigSnapshot, "settings">, parts: RollbackParts): Part {
  const { store, book, log, rolledBack } = parts;
  let routes = new Map<string, RouteSettings>();
  /** Those whose weight is being changed, or could not be. */
  const begun = new Set<string>();

  async function rollBack(worse: RouteRollback): Promise<void> {
    const { route, arm, metric, main } = worse;
    const description = `${arm} of the route ${route} has weight 0: its ${metric} is worse than that of ${main}`;
    const result = await store.edit(({ routes: written }) => ({
      sections: { routes: withoutWeight(written, worse) },
      mode: "replace",
      source: "rollback",
      description,
    }));
    if (result.ok) {
      log.warn({ ...worse }, "a target of a route is worse than the main one: it gets no more requests");
      rolledBack(worse);
    } else {
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
          if (begun.has(key)) continue;
          begun.add(key);
          void rollBack(worse);
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
        if (hasWeight(route, arm) && !hasWeight(earlier, arm)) book.startAgain({ route: name, arm });
      }
    }
  }

  book.watch(judge);
  follow({ settings });
  return { follow };
}

function hasWeight({ targets, when }: RouteSettings, arm: string): boolean {
  return [...targets, ...when.flatMap((each) => each.targets)].some(
    (target) => armName(target) === arm && target.weight > 0,
  );
}

/** The section as it is written, with weight 0 for a target wherever another one is left. */
function withoutWeight(routes: unknown, { route, arm }: RouteArm): unknown[] {
  const lists = Array.isArray(routes) ? routes : [];
  return lists.map((each: unknown) => {
    if (!isMapping(each) || each.name !== route) return each;
    return {
      ...each,
      targets: unweighted(each.targets, arm),
      ...(Array.isArray(each.when) && {
        when: each.when.map((condition: unknown) =>
          isMapping(condition) ? { ...condition, targets: unweighted(condition.targets, arm) } : condition,
        ),
      }),
    };
  });
}

function unweighted(targets: unknown, arm: string): unknown {
  if (!Array.isArray(targets)) return targets;
  const isIt = (target: unknown) => isMapping(target) && armName(target as unknown as TargetSettings) === arm;
  const isLeft = targets.some((target: Mapping) => !isIt(target) && target.weight !== 0);
  return isLeft ? targets.map((target: Mapping) => (isIt(target) ? { ...target, weight: 0 } : target)) : targets;
}
