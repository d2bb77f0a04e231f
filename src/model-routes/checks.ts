// Rules about routes that the schema cannot say: names that are taken twice, targets that lead nowhere, and routes that lead to
// each other in a circle or too deep; a warning of models that no backend serves now.

import type { Settings } from "../config/sections/registry.ts";
import type { RouteSettings, TargetSettings } from "../config/sections/routes.ts";
import type { Problem } from "../config/values/problems.ts";
import type { Path } from "../config/values/values.ts";
import { type ServedModels, unservedModels } from "../fleet/unserved-models.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { isGlob } from "../lib/glob.ts";
import { nearest } from "../lib/nearest.ts";
import { armName, routeOfTarget } from "./routes.ts";

/** Each answer is a problem at that path of the configuration. */
export function routeProblems({ routes, backends }: Settings): Problem[] {
  const byName = new Map(routes.filter(({ name }) => !isGlob(name)).map((route) => [route.name, route]));
  const backendNames = backends.map(({ name }) => name);
  const named = new Map<string, readonly string[]>();
  const problems: Problem[] = [];
  const add = (path: Path, message: string) => problems.push({ path, message });

  /** Names of the routes that the targets of a route lead to. */
  function routesNamedBy(route: RouteSettings): readonly string[] {
    return getOrMake(named, route.name, () => {
      const targets = listsOf(route).flatMap((list) => list.targets);
      return [...new Set(targets.flatMap((target) => routeOfTarget(byName, route.name, target)?.name ?? []))];
    });
  }

  function checkBackend(path: Path, backend: string | undefined): void {
    if (backend === undefined || backendNames.includes(backend)) return;
    const near = nearest(backend, backendNames);
    add(
      [...path, "backend"],
      `there is no backend "${backend}"${near === undefined ? "" : `; did you mean "${near}"?`}`,
    );
  }

  function checkList(route: RouteSettings, path: Path, targets: readonly TargetSettings[]): void {
    if (targets.every(({ weight }) => weight === 0)) add(path, "needs a target with a weight greater than 0");
    const names = new Set<string>();
    for (const [index, target] of targets.entries()) {
      const at = [...path, index];
      const name = armName(target);
      if (names.has(name)) add(at, `is named "${name}" as one before it; give it another name`);
      names.add(name);
      checkBackend(at, target.backend);
      const next = routeOfTarget(byName, route.name, target);
      const [further] = next === undefined ? [] : routesNamedBy(next);
      if (next === undefined || further === undefined) continue;
      const way = [route.name, next.name, further].join(" -> ");
      const message = routesNamedBy(next).includes(route.name)
        ? `the routes run in a circle: ${[route.name, next.name, route.name].join(" -> ")}`
        : `leads to a third route (${way}); a route may lead to another one, and that to models alone`;
      add([...at, "model"], message);
    }
  }

  for (const [index, route] of routes.entries()) {
    const path: Path = ["routes", index];
    if (routes.findIndex(({ name }) => name === route.name) < index)
      add([...path, "name"], `"${route.name}" is there twice`);
    for (const { path: at, targets } of listsOf(route)) checkList(route, [...path, ...at], targets);
    if (route.rollback !== undefined && listsOf(route).every(({ targets }) => targets.length === 1)) {
      add([...path, "rollback"], "needs a second target to compare with");
    }
    const { mirror } = route;
    if (mirror === undefined) continue;
    checkBackend([...path, "mirror"], mirror.backend);
    if (routeOfTarget(byName, "", mirror) !== undefined) {
      add([...path, "mirror", "model"], `"${mirror.model}" is a route; name a model`);
    }
  }
  return problems;
}

function listsOf({ targets, when }: RouteSettings): { path: Path; targets: readonly TargetSettings[] }[] {
  return [
    { path: ["targets"], targets },
    ...when.map((each, index) => ({ path: ["when", index, "targets"], targets: each.targets })),
  ];
}

/** The models of routes that no backend serves now; one may serve them later, so that they are no mistake. */
export function routeWarnings({ routes }: Settings, served: ServedModels): string[] {
  const isRoute = (model: string) => routes.some(({ name }) => name === model);
  const named = routes.flatMap((route, index) => {
    const targets = listsOf(route).flatMap(({ path, targets }) =>
      targets.map(({ model }, place) => ({ path: ["routes", index, ...path, place], model })),
    );
    const { mirror } = route;
    return mirror === undefined ? targets : [...targets, { path: ["routes", index, "mirror"], model: mirror.model }];
  });
  return unservedModels(
    named.filter(({ model }) => !isRoute(model)),
    served,
  );
}
