// What a backend is: the configured facts, resolved once, and the numbers that change while it serves.

import type { BackendSettings } from "../config/sections/registry.ts";
import { BACKEND_KINDS, type BackendKind, type Operation } from "./kinds.ts";

export interface Backend {
  name: string;
  kind: BackendKind;
  /** Root address without trailing slash and without /v1. */
  rootUrl: string;
  /** Path of the unix socket, when the backend is reached through one. */
  socketPath: string | undefined;
  weight: number;
  /** Models named in the configuration; undefined: the backend is asked. */
  configuredModels: readonly string[] | undefined;
  enabled: boolean;
  apiKey: string | undefined;
  settings: BackendSettings;
}

/** Numbers of one backend that the data plane writes and everyone may read. */
export interface BackendCounters {
  inFlight: number;
  totalRequests: number;
  failedRequests: number;
  /** Moving average of the time to the first byte, failures included; undefined before the first attempt has ended. */
  latencyMs: number | undefined;
  /** Clock milliseconds of the newest measurement. */
  latencyAtMs: number;
}

export function toBackend(settings: BackendSettings): Backend {
  const kind = BACKEND_KINDS[settings.type];
  const url = settings.url ?? kind.defaultUrl ?? "";
  const isSocket = url.startsWith("unix:");
  return {
    name: settings.name,
    kind,
    rootUrl: isSocket ? "http://localhost" : withoutVersionPath(url),
    socketPath: isSocket ? url.slice("unix:".length) : undefined,
    weight: settings.weight,
    configuredModels: configuredModels(settings),
    enabled: settings.enabled,
    apiKey: settings.api_key,
    settings,
  };
}

/** Credentials in an address (http://user:pass@host) are cut, so that the result can be logged and shown. */
export function displayUrl(backend: Backend): string {
  if (backend.socketPath !== undefined) return `unix:${backend.socketPath}`;
  return backend.rootUrl.replace(/\/\/[^/@]*@/, "//");
}

/** "http://host/v1/" and "http://host" are the same backend: the paths of the kinds table carry the version. */
function withoutVersionPath(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/v1(beta(\/openai)?)?$/, "");
}

export function configuredModels(settings: BackendSettings): readonly string[] | undefined {
  const models = [...(settings.models ?? []), ...Object.keys(settings.deployments ?? {})];
  return models.length > 0 ? [...new Set(models)] : undefined;
}

const AZURE_API_VERSION = "2024-10-21"; // the newest version that Microsoft calls generally available

/** Path and query of an operation on this backend for a model; undefined when its kind has no such operation. */
export function operationPath(backend: Backend, operation: Operation, model: string): string | undefined {
  const path = backend.kind.paths[operation];
  if (path === undefined || backend.kind.name !== "azure") return path;
  const deployment = backend.settings.deployments?.[model] ?? model;
  return path.replace("{deployment}", encodeURIComponent(deployment)) + azureQuery(backend);
}

export function azureQuery(backend: Backend): string {
  return `?api-version=${encodeURIComponent(backend.settings.api_version ?? AZURE_API_VERSION)}`;
}

/** The header that carries this backend's API key for an operation, if it has a key. */
export function credentialHeader(backend: Backend, forOperation: boolean): [name: string, value: string] | undefined {
  if (backend.apiKey === undefined) return undefined;
  const auth = (forOperation ? backend.kind.operationAuth : undefined) ?? backend.kind.auth;
  return [auth.header, auth.scheme === "bearer" ? `Bearer ${backend.apiKey}` : backend.apiKey];
}

export function newCounters(): BackendCounters {
  return { inFlight: 0, totalRequests: 0, failedRequests: 0, latencyMs: undefined, latencyAtMs: 0 };
}
