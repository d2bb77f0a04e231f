// /admin/routes: one route at a time, with the numbers of its targets side by side; each change is a change of the section routes and
// makes one version.

import { currencyOf } from "../config/sections/currency.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { RouteSettings } from "../config/sections/routes.ts";
import { armsOf, mirrorName } from "../model-routes/arm-book.ts";
import type { ArmNumbers } from "../model-routes/arm-numbers.ts";
import { differenceOfMeans, differenceOfShares, meanOf, quantileOf, shareOf } from "../model-routes/compare.ts";
import { armName, everyTarget, mainTarget } from "../model-routes/routes.ts";
import { type DescribedEndpoint, pathParameter } from "../openapi/operation.ts";
import { createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import {
  ROUTE_SCHEMAS,
  type RouteArmRecord,
  RouteChange,
  RouteChanged,
  RouteList,
  RouteRecord,
  RouteRemoved,
} from "./route-schemas.ts";

type RouteParts = Pick<AdminParts, "store" | "arms">;

const endpoint = adminGroup("Routes", ROUTE_SCHEMAS);
const routeName = pathParameter("name", "Name of a route.");

export function modelRouteRoutes({ store, arms }: RouteParts): DescribedEndpoint[] {
  const positionOf = (name: string) => store.current.settings.routes.findIndex((each) => each.name === name);
  const recordAt = ({ routes }: Settings, position: number) => recordOf(routes[position] as RouteSettings, arms);
  const routes = createCollection(store, {
    noun: "route",
    place: "/admin/routes",
    idField: "name",
    fixedId: "cannot be changed: clients ask for it, and keys may name it",
    path: ["routes"],
    read: (written) => written,
    positionOf,
    shown: ({ after, position }) => recordAt(after, position),
    shownGone: (name) => recordAt(store.current.settings, positionOf(name)),
  });
  return [
    endpoint("GET /admin/routes", {
      id: "listRoutes",
      role: "viewer",
      summary: "Every route, with the numbers of its targets side by side",
      answers: [versioned(RouteList, "The routes.")],
      handle(call) {
        const { settings, version } = store.current;
        const rows = settings.routes.map((route) => recordOf(route, arms));
        return answer(call, { currency: currencyOf(settings), routes: rows, total: rows.length }, { version });
      },
    }),
    endpoint("POST /admin/routes", {
      id: "createRoute",
      role: "operator",
      summary: "Add a route",
      parameters: [dryRun],
      body: {
        schema: RouteChange,
        isChecked: false,
        example: {
          name: "smart",
          targets: [
            { model: "gpt-4o", weight: 90 },
            { model: "own-large", weight: 10, name: "canary" },
          ],
        },
      },
      changes: true,
      answers: [versioned(RouteChanged, "Added.", 201), versioned(RouteChanged, "What would be added.")],
      handle: async (call, read) => await routes.create(call, routes.read(await read())),
    }),
    endpoint("GET /admin/routes/{name...}", {
      id: "getRoute",
      role: "viewer",
      summary: "One route",
      parameters: [routeName],
      answers: [versioned(RouteRecord, "The route.")],
      handle(call) {
        const position = positionOf(call.parameters.name);
        if (position === -1) throw routes.unknown(call.parameters.name);
        return answer(call, recordAt(store.current.settings, position), { version: store.current.version });
      },
    }),
    endpoint("PUT /admin/routes/{name...}", {
      id: "updateRoute",
      role: "operator",
      summary: "Change a route",
      parameters: [routeName, dryRun],
      body: { schema: RouteChange, isChecked: false, example: { sticky: "none" } },
      changes: true,
      answers: [versioned(RouteChanged, "Changed.")],
      handle: async (call, read) => await routes.update(call, call.parameters.name, routes.read(await read())),
    }),
    endpoint("DELETE /admin/routes/{name...}", {
      id: "deleteRoute",
      role: "operator",
      summary: "Remove a route; its models stay",
      parameters: [routeName, dryRun],
      changes: true,
      answers: [versioned(RouteRemoved, "Removed.")],
      handle: (call) => routes.remove(call, call.parameters.name),
    }),
  ];
}

function recordOf(route: RouteSettings, book: RouteParts["arms"]): RouteRecord {
  const { name, sticky, on_failure, targets, when, rollback = null, mirror = null } = route;
  const all = everyTarget(route);
  const main = armName(mainTarget(targets));
  const numbersOf = (arm: string) => numbers(book.numbers({ route: name, arm }));
  const ofMain = numbersOf(main);
  const arms = armsOf(route).map((arm): RouteArmRecord => {
    const isMirror = route.mirror !== undefined && arm === mirrorName(route.mirror);
    const target = isMirror ? route.mirror : all.find((each) => armName(each) === arm);
    const isMain = arm === main;
    const own = numbersOf(arm);
    return {
      name: arm,
      model: target?.model ?? "",
      backend: target?.backend ?? null,
      weight: target !== undefined && "weight" in target ? target.weight : null,
      is_main: isMain,
      is_mirror: isMirror,
      total_requests: own.total,
      requests: own.requests,
      errors: own.errors,
      error_share: own.errorShare,
      first_token_ms: own.firstToken ?? null,
      first_token_p95_ms: own.firstTokenP95 ?? null,
      tokens_per_second: own.speed ?? null,
      cost: own.cost ?? null,
      feedback: own.feedback,
      compared: isMain || own.requests === 0 || ofMain.requests === 0 ? null : compared(own, ofMain),
    };
  });
  return { name, sticky, on_failure, targets, when, rollback, mirror, arms };
}

type ArmFigures = ReturnType<typeof numbers>;

function numbers(of: ArmNumbers | undefined) {
  const values = (column: Parameters<ArmNumbers["values"]>[0]) => of?.values(column, Number.NEGATIVE_INFINITY) ?? [];
  const failed = values("failed");
  const errors = failed.reduce((sum, value) => sum + value, 0);
  const firstTokens = values("firstTokenMs");
  return {
    total: of?.count ?? 0,
    feedback:
      of === undefined || of.feedback.count === 0
        ? null
        : { count: of.feedback.count, mean_score: of.feedback.sum / of.feedback.count },
    requests: failed.length,
    errors,
    errorShare: shareOf(errors, failed.length),
    firstToken: meanOf(firstTokens),
    firstTokenP95: quantileOf(firstTokens, 0.95),
    speed: meanOf(values("tokensPerSecond")),
    cost: meanOf(values("cost")),
  };
}

function compared(own: ArmFigures, main: ArmFigures) {
  return {
    error_share: differenceOfShares(own.errorShare, main.errorShare),
    first_token_ms: differenceOfMeans(own.firstToken, main.firstToken) ?? null,
    tokens_per_second: differenceOfMeans(own.speed, main.speed) ?? null,
    cost: differenceOfMeans(own.cost, main.cost) ?? null,
  };
}
