// Rules about fallback chains that the schema cannot say: no circles; a warning of models that no backend serves now.

import { BACKEND_KINDS } from "../backends/kinds.ts";
import { requestNames } from "../backends/registry.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Problem } from "../config/values/problems.ts";
import { isMapping, type Mapping } from "../config/values/values.ts";
import { type ServedModels, unservedModels } from "../fleet/unserved-models.ts";
import { resolveBackendKind, UNKNOWN_KIND } from "../names.ts";

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

/** The models of chains that no backend serves now; one may serve them later, so that they are no mistake. */
export function chainWarnings({ fallback }: Settings, served: ServedModels): string[] {
  return fallback.enabled ? unservedIn(fallback.fallback_chains, served) : [];
}

/**
 * The same before any backend was asked: no warnings while one of them has to be asked for its models. The document may be
 * wrong elsewhere.
 */
export function configuredChainWarnings(document: Mapping): string[] {
  const { fallback } = document;
  if (!isMapping(fallback) || fallback.enabled === false || !isMapping(fallback.fallback_chains)) return [];
  const served = configuredModelsOf(document.backends ?? []);
  if (served === undefined) return [];
  const chains = Object.entries(fallback.fallback_chains).map(([model, chain]) => [model, textsIn(chain)]);
  return unservedIn(Object.fromEntries(chains), served);
}

function configuredModelsOf(backends: unknown): ServedModels | undefined {
  if (!Array.isArray(backends)) return undefined;
  const lists: ReadonlyMap<string, string>[] = [];
  for (const backend of backends) {
    if (!isMapping(backend)) return undefined;
    if (backend.enabled === false) continue;
    const deployments = isMapping(backend.deployments) ? backend.deployments : {};
    const models = [...textsIn(backend.models), ...Object.keys(deployments)];
    if (models.length === 0) return undefined;
    const kind = BACKEND_KINDS[resolveBackendKind(String(backend.type)) ?? UNKNOWN_KIND];
    lists.push(requestNames({ kind }, models));
  }
  const ids = lists.flatMap((names) => [...names.values()]);
  return { ids: [...new Set(ids)], serves: (model) => lists.some((names) => names.has(model)) };
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
}

function unservedIn(fallbackChains: Readonly<Record<string, readonly string[]>>, served: ServedModels): string[] {
  const named = Object.entries(fallbackChains).flatMap(([model, chain]) => [
    { path: [model], model },
    ...chain.map((target, index) => ({ path: [model, index], model: target })),
  ]);
  return unservedModels(
    named.map(({ path, model }) => ({ path: ["fallback", "fallback_chains", ...path], model })),
    served,
  );
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
