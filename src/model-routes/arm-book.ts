// What became of the requests of every target, and which targets are worse than the main one of their route.

import type { RouteSettings, TargetSettings } from "../config/sections/routes.ts";
import type { RouteRollback } from "../stats/happenings.ts";
import { isFailure } from "../stats/outcome.ts";
import type { RequestRecord, RouteArm } from "../stats/request-record.ts";
import { ArmNumbers } from "./arm-numbers.ts";
import { differenceOfShares, meanOf, quantileOf, shareOf } from "./compare.ts";
import { armName, everyTarget, mainTarget } from "./routes.ts";

type RollbackSettings = NonNullable<RouteSettings["rollback"]>;

/** Targets with numbers; the oldest are forgotten first. */
const MOST_ARMS = 1_000;

export type ArmBook = ReturnType<typeof createArmBook>;

export function createArmBook(now: () => number) {
  const arms = new Map<string, ArmNumbers>();
  let watcher: ((arms: readonly RouteArm[]) => void) | undefined;

  function numbersOf(arm: RouteArm): ArmNumbers {
    const key = keyOf(arm);
    const known = arms.get(key);
    if (known !== undefined) return known;
    if (arms.size >= MOST_ARMS) arms.delete(arms.keys().next().value as string);
    const made = new ArmNumbers();
    arms.set(key, made);
    return made;
  }

  return {
    /** A request is over. `cost`: of its tokens; undefined where no price is known. */
    over(record: RequestRecord, cost: number | undefined): void {
      const { arms: asked = [], failedArms = [], outcome, cache, isShared } = record;
      if (failedArms.length === 0 && asked.length === 0) return;
      for (const arm of failedArms) numbersOf(arm).add({ ...FAILED, atMs: now() });
      watcher?.(failedArms);
      // A client that left and a refusal say nothing of the model, and neither does an answer that another call has made.
      if (outcome === "client_left" || outcome === "refused" || cache === "HIT" || isShared) return;
      const failed = isFailure(outcome);
      const isFirst = failedArms.length === 0;
      const sample = {
        atMs: now(),
        failed,
        firstTokenMs: failed || !isFirst ? undefined : record.firstByteMs,
        tokensPerSecond: failed || !isFirst ? undefined : speedOf(record),
        cost,
      };
      for (const arm of asked) numbersOf(arm).add(sample);
      watcher?.(asked);
    },

    /** A client has given an answer of the target a score; `before`: the one that it replaces. */
    rated(arm: RouteArm, score: number, before: number | undefined): void {
      const { feedback } = numbersOf(arm);
      if (before === undefined) feedback.count++;
      feedback.sum += score - (before ?? 0);
    },

    /** Scores that are kept from before the start. */
    ratedBefore(counts: readonly (RouteArm & { count: number; sum: number })[]): void {
      for (const { route, arm, count, sum } of counts)
        Object.assign(numbersOf({ route, arm }).feedback, { count, sum });
    },

    /** There is one watcher, which hears of targets that have one more request. */
    watch(saw: (arms: readonly RouteArm[]) => void): void {
      watcher = saw;
    },

    numbers: (arm: RouteArm): ArmNumbers | undefined => arms.get(keyOf(arm)),

    /** Judges a target afresh: what was before does not count against it. */
    startAgain(arm: RouteArm): void {
      numbersOf(arm).sinceMs = now();
    },

    /** Forgets the targets that no route has, and beside which others were judged: main targets may have other names now. */
    keepOnly(routes: readonly RouteSettings[]): void {
      const kept = new Set(routes.flatMap((route) => armsOf(route).map((arm) => keyOf({ route: route.name, arm }))));
      for (const [key, { judgedAt }] of arms) {
        if (kept.has(key)) judgedAt.clear();
        else arms.delete(key);
      }
    },

    /** The targets with weight of a list that are worse than its main one, as the route's rollback says. */
    worseIn({ name: route, rollback }: RouteSettings, targets: readonly TargetSettings[]): RouteRollback[] {
      const weighted = targets.filter(({ weight }) => weight > 0);
      if (rollback === undefined || weighted.length < 2) return [];
      const main = armName(mainTarget(weighted));
      const ofMain = arms.get(keyOf({ route, arm: main }));
      if (ofMain === undefined) return [];
      const fromMs = now() - rollback.window;
      return weighted.flatMap((target) => {
        const arm = armName(target);
        const numbers = arms.get(keyOf({ route, arm }));
        if (arm === main || numbers === undefined || !isDue(numbers.count, numbers.judgedAt.get(main))) return [];
        numbers.judgedAt.set(main, numbers.count);
        const compared = compare(rollback, numbers, ofMain, fromMs);
        return compared === undefined ? [] : [{ route, arm, main, metric: rollback.metric, ...compared }];
      });
    },
  };
}

/** A sort of 1,000 numbers for every request would be felt: the more there are, the fewer of the requests are judged. */
function isDue(count: number, before = 0): boolean {
  return count - before >= Math.max(1, Math.min(count, 1_000) / 50);
}

const FAILED = { failed: true, firstTokenMs: undefined, tokensPerSecond: undefined, cost: undefined };

/** Undefined where the target is not worse, or too little is known of one of them. */
function compare(
  { metric, worse_than, min_requests }: RollbackSettings,
  numbers: ArmNumbers,
  ofMain: ArmNumbers,
  fromMs: number,
): Pick<RouteRollback, "value" | "compared"> | undefined {
  const column = metric === "error_rate" ? "failed" : metric === "cost" ? "cost" : "firstTokenMs";
  const [values, others] = [numbers.values(column, fromMs), ofMain.values(column, fromMs)];
  if (values.length < min_requests || others.length < min_requests) return undefined;
  const [value, compared] = [measure(metric, values), measure(metric, others)];
  if (metric === "error_rate") {
    // Of a main target without errors, one error is no multiple: the difference must be more than chance, too.
    const least = Math.max(compared, 1 / min_requests);
    const shares = [values, others].map((each) => shareOf(sumOf(each), each.length));
    const [share, other] = shares as [ReturnType<typeof shareOf>, ReturnType<typeof shareOf>];
    return value > worse_than * least && differenceOfShares(share, other).low > 0 ? { value, compared } : undefined;
  }
  return value > worse_than * compared ? { value, compared } : undefined;
}

function measure(metric: RollbackSettings["metric"], values: readonly number[]): number {
  if (metric === "first_token_p95") return quantileOf(values, 0.95) ?? 0;
  return meanOf(values)?.mean ?? 0;
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

/** Tokens in a second of writing; undefined of answers that are too short to tell. */
function speedOf({ completionTokens = 0, durationMs = 0, stream, firstByteMs = 0 }: RequestRecord): number | undefined {
  const writingMs = stream ? durationMs - firstByteMs : durationMs;
  return completionTokens < 2 || writingMs < 1 ? undefined : (completionTokens * 1000) / writingMs;
}

function keyOf({ route, arm }: RouteArm): string {
  return `${route}\n${arm}`;
}

/** The name of a mirror among the targets of its route. */
export function mirrorName(mirror: NonNullable<RouteSettings["mirror"]>): string {
  return `mirror:${armName(mirror)}`;
}

/** The names of all targets of a route, each once, and of its mirror. */
export function armsOf(route: RouteSettings): string[] {
  const { mirror } = route;
  const names = everyTarget(route).map(armName);
  return [...new Set(mirror === undefined ? names : [...names, mirrorName(mirror)])];
}
