// Rules about fallback chains that the schema cannot say: no circles, no models that no backend can have.

import type { Settings } from "../config/sections/registry.ts";

interface Problem {
  path: (string | number)[];
  message: string;
}

/** Each answer is a problem at that path of the configuration. */
export function fallbackProblems(settings: Settings): Problem[] {
  const chains = new Map(Object.entries(settings.fallback.fallback_chains));
  const known = knownModels(settings);
  const problems: Problem[] = [];
  for (const [model, chain] of chains) {
    const path = ["fallback", "fallback_chains", model];
    if (known !== undefined && !known.has(model)) problems.push({ path, message: unknownModel(model) });
    chain.forEach((target, index) => {
      const at = [...path, index];
      if (chain.indexOf(target) < index) problems.push({ path: at, message: `"${target}" is in this chain twice` });
      else if (known !== undefined && !known.has(target)) problems.push({ path: at, message: unknownModel(target) });
      const circle = circleThrough(model, target, chains);
      if (circle !== undefined)
        problems.push({ path: at, message: `the chains run in a circle: ${circle.join(" -> ")}` });
    });
  }
  return problems;
}

function unknownModel(model: string): string {
  return `no backend serves a model "${model}"`;
}

/** Undefined while a backend without configured models exists: what it serves is known only at run time. */
function knownModels(settings: Settings): Set<string> | undefined {
  const models = new Set<string>();
  for (const backend of settings.backends) {
    const own = [...(backend.models ?? []), ...Object.keys(backend.deployments ?? {})];
    if (own.length === 0) return undefined;
    for (const model of own) models.add(model);
  }
  return models.size > 0 ? models : undefined;
}

/** A way from the target back to the model along the chains. */
function circleThrough(
  model: string,
  target: string,
  chains: ReadonlyMap<string, readonly string[]>,
): string[] | undefined {
  const visited = new Set<string>();
  function wayFrom(current: string): string[] | undefined {
    if (current === model) return [current];
    if (visited.has(current)) return undefined;
    visited.add(current);
    for (const next of chains.get(current) ?? []) {
      const rest = wayFrom(next);
      if (rest !== undefined) return [current, ...rest];
    }
    return undefined;
  }
  const way = wayFrom(target);
  return way === undefined ? undefined : [model, ...way];
}
