// The routes of a configuration: which of them a requested name stands for, and which target of it a request gets.

import type { ConditionSettings, Overrides, RouteSettings, TargetSettings } from "../config/sections/routes.ts";
import { compileGlob, type GlobMatcher, isGlob } from "../lib/glob.ts";
import type { RouteArm } from "../stats/request-record.ts";
import { compileCondition, type RouteCondition, type RouteSubject } from "./conditions.ts";
import { createShares, type Shares } from "./shares.ts";

/** A model that may answer, and how it is asked. */
export interface RouteTarget {
  model: string;
  /** Undefined: every backend that serves the model. */
  backend?: string | undefined;
  set?: Overrides | undefined;
  /** The route, and the one that its target names, if it does. */
  arms: readonly RouteArm[];
}

/** How a route has chosen one of its targets. */
interface RouteStep extends RouteArm {
  /** The condition that held, in words; undefined: none, or the route has none. */
  condition?: string;
  /** The only one; in its turn; by the lot of the session; or it has what the request refers to. */
  how: "only" | "turn" | "lot" | "holder";
  lot?: number;
}

interface RouteChoice {
  target: RouteTarget;
  /** Those that are asked when it fails, in order; empty where the fallback chain is asked. */
  others: readonly RouteTarget[];
  steps: readonly RouteStep[];
}

/** What a choice is made by. */
export interface RouteQuery {
  /** Asked for where there are conditions. */
  subject(): RouteSubject;
  /** What the requests of one session have in common; undefined: nothing, so that the request takes its turn. */
  session(sticky: RouteSettings["sticky"]): string | undefined;
  /** Whether a model, on a backend or on any, has what the request refers to; undefined: the request refers to nothing. */
  holds?: ((target: Pick<TargetSettings, "model" | "backend">) => boolean) | undefined;
}

interface TargetList {
  targets: readonly (TargetSettings & { name: string })[];
  shares: Shares;
}

export interface ModelRoute {
  settings: RouteSettings;
  main: TargetList;
  when: readonly (TargetList & { condition: RouteCondition })[];
}

export type Routes = ReturnType<typeof createRoutes>;

/** Name of a target where the configuration gives none. */
export function armName({ name, model, backend }: Pick<TargetSettings, "name" | "model" | "backend">): string {
  return name ?? (backend === undefined ? model : `${model}@${backend}`);
}

/** The targets of a route, those of its conditions too. */
export function everyTarget({ targets, when }: Pick<RouteSettings, "targets" | "when">): readonly TargetSettings[] {
  return [...targets, ...when.flatMap((each) => each.targets)];
}

/** The target of a list that the others are compared with: it has the greatest weight. */
export function mainTarget(targets: readonly TargetSettings[]): TargetSettings {
  return targets.reduce((main, target) => (target.weight > main.weight ? target : main));
}

/** The route that a target names, which is not its own: a route may share requests with the model of its own name. */
export function routeOfTarget<Named>(
  routes: ReadonlyMap<string, Named>,
  route: string,
  { model, backend }: Pick<TargetSettings, "model" | "backend">,
): Named | undefined {
  return backend === undefined && model !== route ? routes.get(model) : undefined;
}

export function createRoutes(settings: readonly RouteSettings[]) {
  const exact = new Map<string, ModelRoute>();
  const patterns: { matches: GlobMatcher; route: ModelRoute }[] = [];
  let last: ModelRoute | undefined;
  for (const each of settings) {
    const route = compileRoute(each);
    if (each.name === DEFAULT_ROUTE) last = route;
    else if (isGlob(each.name)) patterns.push({ matches: compileGlob(each.name), route });
    else exact.set(each.name, route);
  }

  function targetsOf(
    route: ModelRoute,
    list: TargetList,
    place: number,
    query: RouteQuery,
    outer: readonly RouteArm[],
  ) {
    const { model, backend, set, name } = list.targets[place] as TargetList["targets"][number];
    const arms = [...outer, { route: route.settings.name, arm: name }];
    const next = routeOfTarget(exact, route.settings.name, { model, backend });
    if (next === undefined || arms.length >= MOST_ROUTES_DEEP)
      return { targets: [{ model, backend, set, arms }], steps: [] };
    const { target, others, steps } = choose(next, query, arms);
    const targets = [target, ...others];
    return {
      targets: set === undefined ? targets : targets.map((each) => ({ ...each, set: { ...set, ...each.set } })),
      steps,
    };
  }

  /** A route has what one of its targets has. */
  function holderIn({ settings: { name } }: ModelRoute, holds: NonNullable<RouteQuery["holds"]>): typeof holds {
    return (target) => {
      const next = routeOfTarget(exact, name, target);
      return next === undefined ? holds(target) : [next.main, ...next.when].some((list) => list.targets.some(holds));
    };
  }

  function choose(route: ModelRoute, query: RouteQuery, outer: readonly RouteArm[] = []): RouteChoice {
    const { name, sticky, on_failure } = route.settings;
    const { when, main } = route;
    const subject = when.length === 0 ? undefined : query.subject();
    const list = (subject && when.find(({ condition }) => condition.holds(subject))) ?? main;
    const chosen = choosePlace(list, sticky, { ...query, holds: query.holds && holderIn(route, query.holds) });
    const step: RouteStep = { route: name, arm: (list.targets[chosen.place] as { name: string }).name, ...chosen.told };
    if ("condition" in list) step.condition = (list as { condition: RouteCondition }).condition.words;
    const { targets, steps } = targetsOf(route, list, chosen.place, query, outer);
    const [target, ...others] = targets as [RouteTarget, ...RouteTarget[]];
    if (on_failure === "next_target" && list.targets.length > 1) {
      // What may never be asked takes no turn of another route.
      const later: RouteQuery = { ...query, session: (sticky) => query.session(sticky) ?? "" };
      for (const place of furtherPlaces(list, chosen.place)) {
        others.push(...targetsOf(route, list, place, later, outer).targets);
      }
    }
    return { target, others, steps: [step, ...steps] };
  }

  return {
    /** The route of this name, else the first one whose pattern has it. */
    find: (model: string) => exact.get(model) ?? patterns.find(({ matches }) => matches(model))?.route,
    /** For names that nothing else serves. */
    last,
    choose,
    /** Every model that a route may lead to, through other routes as well. */
    modelsOf(route: ModelRoute, depth = 1): string[] {
      const lists = [route.main, ...route.when];
      const models = lists.flatMap(({ targets }) =>
        targets.flatMap((target) => {
          const next = depth < MOST_ROUTES_DEEP ? routeOfTarget(exact, route.settings.name, target) : undefined;
          return next === undefined ? [target.model] : this.modelsOf(next, depth + 1);
        }),
      );
      return [...new Set(models)];
    },
    /** Names that clients can see in model lists: those without a pattern. */
    names: [...exact.keys()] as readonly string[],
  };
}

/** Stands for the names that nothing else serves. */
const DEFAULT_ROUTE = "*";

/** A route may lead to another one, and that to models alone. */
const MOST_ROUTES_DEEP = 2;

function compileRoute(settings: RouteSettings): ModelRoute {
  const { name, targets, when } = settings;
  return {
    settings,
    main: compileList(name, targets),
    when: when.map((each: ConditionSettings) => ({
      ...compileList(name, each.targets),
      condition: compileCondition(each),
    })),
  };
}

function compileList(route: string, targets: readonly TargetSettings[]): TargetList {
  const named = targets.map((target) => ({ ...target, name: armName(target) }));
  return { targets: named, shares: createShares(route, named) };
}

interface ChosenPlace {
  place: number;
  told: Pick<RouteStep, "how" | "lot">;
}

function choosePlace(
  { targets, shares }: TargetList,
  sticky: RouteSettings["sticky"],
  { session, holds }: RouteQuery,
): ChosenPlace {
  if (targets.length === 1) return { place: 0, told: { how: "only" } };
  if (holds !== undefined) {
    const holder = shares.ofSession(session(sticky) ?? "", (place) => holds(targets[place] as TargetSettings));
    // One that has lost its weight has its conversations still.
    const place = holder?.place ?? targets.findIndex(holds);
    if (place >= 0) return { place, told: { how: "holder" } };
  }
  const key = session(sticky);
  const drawn = key === undefined ? undefined : shares.ofSession(key);
  if (drawn === undefined) return { place: shares.inTurn(), told: { how: "turn" } };
  return { place: drawn.place, told: { how: "lot", lot: drawn.lot } };
}

/** The other places, those of weight 0 last. */
function furtherPlaces({ targets }: TargetList, chosen: number): number[] {
  const places = [...targets.keys()].filter((place) => place !== chosen);
  const weightOf = (place: number) => (targets[place] as TargetSettings).weight;
  return [...places.filter((place) => weightOf(place) > 0), ...places.filter((place) => weightOf(place) === 0)];
}

const REASONS: Readonly<Record<RouteStep["how"], string>> = {
  only: "its only target",
  turn: "it was its turn",
  lot: "the session drew its lot",
  holder: "it has what the request refers to",
};

/** The target and why it was chosen, in words that are the same for many requests. */
export function reasonOf([first, second]: readonly RouteStep[]): string | undefined {
  if (first === undefined) return undefined;
  const own = `${first.arm}: ${REASONS[first.how]}`;
  if (first.condition === undefined && second === undefined) return own;
  const where = first.condition === undefined ? "" : `, as the condition "${first.condition}" held`;
  const inner = second === undefined ? "" : `; the route ${second.route} chose ${reasonOf([second])}`;
  return `${own}${where}${inner}`;
}
