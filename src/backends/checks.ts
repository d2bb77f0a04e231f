// Rules about backends that the schema of one section cannot say.

import type { Settings } from "../config/sections/registry.ts";
import { configuredModels } from "./backend.ts";
import { BACKEND_KINDS } from "./kinds.ts";

/** Each answer is a problem at that path of the configuration. */
export function backendProblems(backends: Settings["backends"]): { path: (string | number)[]; message: string }[] {
  const problems: { path: (string | number)[]; message: string }[] = [];
  const seen = new Map<string, number>();
  backends.forEach((backend, index) => {
    const first = seen.get(backend.name);
    if (first === undefined) seen.set(backend.name, index);
    else
      problems.push({
        path: ["backends", index, "name"],
        message: `"${backend.name}" is already the name of backends[${first}]`,
      });

    const kind = BACKEND_KINDS[backend.type];
    if (backend.url === undefined && kind.defaultUrl === undefined) {
      problems.push({ path: ["backends", index, "url"], message: `is required for a backend of type ${kind.name}` });
    }
    if (kind.modelsPath === undefined && configuredModels(backend) === undefined) {
      problems.push({
        path: ["backends", index, "models"],
        message: `is required for ${kind.name}: the names of its deployments`,
      });
    }
    if (backend.forward_headers.length > 0 && kind.name !== "openai" && kind.name !== "azure") {
      problems.push({
        path: ["backends", index, "forward_headers"],
        message: `belongs to backends of type openai and azure, this one is ${kind.name}`,
      });
    }
    for (const key of ["api_version", "deployments"] as const) {
      if (backend[key] !== undefined && kind.name !== "azure") {
        problems.push({
          path: ["backends", index, key],
          message: `belongs to backends of type azure, this one is ${kind.name}`,
        });
      }
    }
  });
  return problems;
}
