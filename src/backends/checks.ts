// Rules about backends that the schema of one section cannot say.

import type { Settings } from "../config/sections/registry.ts";
import { configuredModels } from "./backend.ts";
import { BACKEND_KINDS, type BackendKind } from "./kinds.ts";

/** Each answer is a problem at that path of the configuration. */
export function backendProblems(backends: Settings["backends"]): { path: (string | number)[]; message: string }[] {
  return backends.flatMap((backend, index) => {
    const problems: { path: (string | number)[]; message: string }[] = [];
    const tell = (key: keyof typeof backend, message: string) =>
      problems.push({ path: ["backends", index, key], message });

    const kind = BACKEND_KINDS[backend.type];
    if (backend.url === undefined && kind.defaultUrl === undefined) {
      const form = kind.urlForm === undefined ? "" : `, such as ${kind.urlForm}`;
      tell("url", `is required for a backend of type ${kind.name}${form}`);
    }
    if (backend.tls !== undefined && !(backend.url ?? kind.defaultUrl)?.startsWith("https:")) {
      tell("tls", 'is for addresses that begin with "https://"; give such a url, or remove tls');
    }
    if (kind.modelList === undefined && configuredModels(backend) === undefined) {
      const names = kind.deployments === undefined ? "it has no list of its models" : "the names of its deployments";
      tell("models", `is required for ${kind.name}: ${names}`);
    }
    if (backend.forward_headers.length > 0 && !kind.takesOrganisation) {
      tell("forward_headers", belongsTo("takesOrganisation", kind));
    }
    for (const key of ["api_version", "deployments"] as const) {
      if (backend[key] !== undefined && kind.deployments === undefined) tell(key, belongsTo("deployments", kind));
    }
    return problems;
  });
}

function belongsTo(trait: "deployments" | "takesOrganisation", { name }: BackendKind): string {
  const kinds = Object.values(BACKEND_KINDS).filter((kind) => kind[trait] !== undefined);
  return `belongs to backends of type ${kinds.map((kind) => kind.name).join(" and ")}, this one is ${name}`;
}
