// Rules about fallback chains that the schema cannot say: no circles; a warning of models that nobody serves now.

import type { Settings } from "../config/sections/registry.ts";
import type { Problem } from "../config/values/problems.ts";
import { formatPath } from "../config/values/values.ts";
import type { ServedModels } from "../fleet/model-directory.ts";
import { nearest } from "../lib/nearest.ts";

/** Each answer is a problem at that path of the configuration. */
export function fallbackProblems(settings: Settings): Problem[] {
  const chains = new Map(Object.entries(settings.fallback.fallback_chains));
  const problems: Problem[] = [];
  for (const [model, chain] of chains) {
    const path = ["fallback", "fallback_chains", model];
    chain.forEach((target, index) => {
      const at = [...path, index];
      if (chain.indexOf(target) < index) problems.push({ path: at, message: `"${target}" is in this chain twice` });
      const way = wayTo(model, target, chains);
      if (way !== undefined)
        problems.push({ path: at, message: `the chains run in a circle: ${[model, ...way].join(" -> ")}` });
    });
  }
  return problems;
}

/** The models of chains that nobody serves now; somebody may later, so that they are no mistake. */
export function chainWarnings({ fallback }: Settings, { ids, serves }: ServedModels): string[] {
  if (!fallback.enabled) return [];
  const chains = Object.entries(fallback.fallback_chains);
  const named = chains.flatMap(([model, chain]) => [
    { path: [model], model },
    ...chain.map((target, index) => ({ path: [model, index], model: target })),
  ]);
  return named
    .filter(({ model }) => !serves(model))
    .map(({ path, model }) => {
      const near = nearest(model, ids);
      const hint = near === undefined ? "" : `; did you mean "${near}"?`;
      return `${formatPath(["fallback", "fallback_chains", ...path])}: no backend serves a model "${model}" now${hint}`;
    });
}

/** A way along the chains from one model to another. */
function wayTo(
  goal: string,
  from: string,
  chains: ReadonlyMap<string, readonly string[]>,
  visited = new Set<string>(),
): string[] | undefined {
  if (from === goal) return [from];
  if (visited.has(from)) return undefined;
  visited.add(from);
  for (const next of chains.get(from) ?? []) {
    const rest = wayTo(goal, next, chains, visited);
    if (rest !== undefined) return [from, ...rest];
  }
  return undefined;
}
