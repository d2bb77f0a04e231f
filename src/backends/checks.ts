// Rules about backends that the schema of one section cannot say.

import type { Settings } from "../config/sections/registry.ts";
import { configuredModels, usualUrl } from "./backend.ts";
import { type BackendKind, OWN_SETTINGS, type OwnSetting } from "./kind.ts";
import { BACKEND_KINDS } from "./kinds.ts";

/** Each answer is a problem at that path of the configuration. */
export function backendProblems(backends: Settings["backends"]): { path: (string | number)[]; message: string }[] {
  return backends.flatMap((backend, index) => {
    const problems: { path: (string | number)[]; message: string }[] = [];
    const tell = (key: keyof typeof backend, message: string) =>
      problems.push({ path: ["backends", index, key], message });

    const kind = BACKEND_KINDS[backend.type];
    for (const [key, need] of Object.entries(kind.settings ?? {}) as [OwnSetting, string][]) {
      if (need === "required" && backend[key] === undefined)
        tell(key, `is required for a backend of type ${kind.name}`);
    }
    for (const { key, message } of kind.problemsOf?.(backend) ?? []) tell(key, message);
    if (backend.url === undefined && usualUrl(kind, backend) === undefined) {
      const form = kind.urlForm === undefined ? "" : `, such as ${kind.urlForm}`;
      tell("url", `is required for a backend of type ${kind.name}${form}`);
    }
    if (backend.tls !== undefined && !(backend.url ?? usualUrl(kind, backend))?.startsWith("https:")) {
      tell("tls", 'is for addresses that begin with "https://"; give such a url, or remove tls');
    }
    if (kind.modelList === undefined && configuredModels(backend) === undefined) {
      const names = kind.deployments === undefined ? "it has no list of its models" : "the names of its deployments";
      tell("models", `is required for ${kind.name}: ${names}`);
    }
    for (const model of Object.keys(backend.batch_deployments ?? {})) {
      if (configuredModels(backend)?.includes(model)) continue;
      const path = ["backends", index, "batch_deployments", model];
      problems.push({ path, message: "must be named in models or deployments too, for requests outside of batches" });
    }
    const { entra_id } = backend;
    if (entra_id !== undefined && backend.api_key !== undefined) {
      tell("entra_id", "stands beside api_key; remove one of them");
    }
    if (
      entra_id?.client_secret !== undefined &&
      (entra_id.tenant_id === undefined || entra_id.client_id === undefined)
    ) {
      tell("entra_id", "has a client_secret, which needs tenant_id and client_id");
    }
    if (backend.forward_headers.length > 0 && !kind.takesOrganisation) {
      tell(
        "forward_headers",
        belongsTo(kind, ({ takesOrganisation }) => takesOrganisation === true),
      );
    }
    for (const key of OWN_SETTINGS) {
      if (backend[key] === undefined || kind.settings?.[key] !== undefined) continue;
      tell(
        key,
        belongsTo(kind, ({ settings }) => settings?.[key] !== undefined),
      );
    }
    return problems;
  });
}

function belongsTo({ name }: BackendKind, isOneOfThem: (kind: BackendKind) => boolean): string {
  const kinds = Object.values(BACKEND_KINDS).filter(isOneOfThem);
  return `belongs to backends of type ${kinds.map((kind) => kind.name).join(" and ")}, this one is ${name}`;
}
