// Warnings of models that the configuration names and no backend serves now.

import { formatPath, type Path } from "../config/values/values.ts";
import { nearest } from "../lib/nearest.ts";

/** The models that enabled backends serve, healthy or not. */
export interface ServedModels {
  ids: readonly string[];
  serves(model: string): boolean;
}

export function unservedModels(
  named: readonly { path: Path; model: string }[],
  { ids, serves }: ServedModels,
): string[] {
  return named
    .filter(({ model }) => !serves(model))
    .map(({ path, model }) => {
      const near = nearest(model, ids);
      const hint = near === undefined ? "" : `; did you mean "${near}"?`;
      return `${formatPath(path)}: no backend serves a model "${model}" now${hint}`;
    });
}
