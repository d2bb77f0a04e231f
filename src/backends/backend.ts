// What a backend is: the configured facts, resolved once, and the numbers that change while it serves.

import type { BackendSettings } from "../config/sections/registry.ts";
import { withoutCredentials } from "../lib/without-credentials.ts";
import { type BackendKind, pathsIn } from "./kind.ts";
import { BACKEND_KINDS } from "./kinds.ts";
import type { Operation, OperationPaths } from "./operations.ts";

export interface Backend {
  name: string;
  kind: BackendKind;
  /** Path of each operation that it is asked for: those of its kind, or of the formats that its configuration names. */
  paths: OperationPaths;
  /** Root address without trailing slash and without /v1. */
  rootUrl: string;
  /** Path of the unix socket, when the backend is reached through one. */
  socketPath: string | undefined;
  weight: number;
  /** Models named in the configuration; undefined: the backend is asked. */
  configuredModels: readonly string[] | undefined;
  enabled: boolean;
  apiKey: string | undefined;
  /** The way to it adds the headers of a credential to each request (credentials/credential.ts). */
  hasCredential: boolean;
  /** Headers of every request to its models; what else a request brings is written over them. */
  baseHeaders: Readonly<Record<string, string>>;
  /** Headers that the operator has set, in lower case: they are written over all others. */
  ownHeaders: Readonly<Record<string, string>> | undefined;
  settings: BackendSettings;
}

/** A request in flight at a backend. */
export interface Running {
  /** Where it stands in the list of its backend, which alone writes it. */
  place: number;
  /** The backend's time to finish is over: ends as a failure of the backend, so that another may take over. */
  cut(): void;
}

/** Assumed for a backend that has not answered yet, in milliseconds to the first byte. */
export const UNKNOWN_LATENCY_MS = 1_000;

/** Counters of one backend: written by the data plane, read anywhere. */
export interface BackendCounters {
  inFlight: number;
  /** Those of other processes of this gateway, as they were a moment ago; 0 where there are none. */
  inFlightElsewhere: number;
  /** The requests of `inFlight`, in no order. */
  running: Running[];
  /** Set while the backend takes no new requests; called when nothing is in flight any more. */
  onIdle: (() => void) | undefined;
  totalRequests: number;
  failedRequests: number;
  /** Why the backend refuses the credential of requests; undefined while it accepts it. */
  credentialError: string | undefined;
  /** Moving average of the measured time to the first byte of an answer; undefined before the first one. */
  latencyMs: number | undefined;
  /** The same for strategies, which count a failure as a long time; undefined before the first attempt has ended. */
  expectedMs: number | undefined;
  /** Clock milliseconds of the newest measurement. */
  latencyAtMs: number;
}

export function toBackend(settings: BackendSettings): Backend {
  const row = BACKEND_KINDS[settings.type];
  const kind = row.variant?.(settings) ?? row;
  const url = settings.url ?? usualUrl(kind, settings) ?? "";
  const isSocket = url.startsWith("unix:");
  return {
    name: settings.name,
    kind,
    paths: pathsIn(kind, settings.protocols),
    rootUrl: isSocket ? "http://localhost" : rootUrlOf(url, kind),
    socketPath: isSocket ? url.slice("unix:".length) : undefined,
    weight: settings.weight,
    configuredModels: configuredModels(settings),
    enabled: settings.enabled,
    apiKey: settings.api_key,
    hasCredential: kind.credential?.optionsOf(settings) !== undefined,
    baseHeaders: baseHeadersOf(kind, settings),
    ownHeaders: ownHeadersOf(settings),
    settings,
  };
}

/** Its address where the configuration gives none. */
export function usualUrl(kind: BackendKind, settings: BackendSettings): string | undefined {
  return kind.urlOf?.(settings) ?? kind.defaultUrl;
}

/** The backend as one of another kind: of the one that was recognised, or of the family of a model. */
export function ofKind(backend: Backend, kind: BackendKind): Backend {
  const { settings } = backend;
  return { ...backend, kind, paths: pathsIn(kind, settings.protocols), baseHeaders: baseHeadersOf(kind, settings) };
}

function baseHeadersOf(kind: BackendKind, { api_key }: BackendSettings): Backend["baseHeaders"] {
  const credential = credentialHeader({ kind, apiKey: api_key });
  return {
    "content-type": "application/json",
    // The answer's bytes are handed on as they come, so they must come plain.
    "accept-encoding": "identity",
    ...kind.headers,
    ...(credential !== undefined && { [credential[0]]: credential[1] }),
  };
}

function ownHeadersOf({ headers }: BackendSettings): Backend["ownHeaders"] {
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

/** The URL without secrets, for logs and views. */
export function displayUrl(backend: Backend): string {
  if (backend.socketPath !== undefined) return `unix:${backend.socketPath}`;
  return withoutCredentials(backend.rootUrl);
}

/** The beginning of the usual address is completed, so that the host alone is enough. */
function rootUrlOf(url: string, kind: BackendKind): string {
  const [root, usual] = [url, kind.defaultUrl ?? ""].map((address) => withoutVersionPath(address, kind)) as [
    string,
    string,
  ];
  return usual.startsWith(`${root}/`) ? usual : root;
}

/** "http://host/v1/" and "http://host" are the same backend: the paths of the kinds table carry the version. */
function withoutVersionPath(url: string, { mounts = [] }: BackendKind): string {
  const root = url.replace(/\/+$/, "").replace(/\/v1(beta(\/openai)?)?$/, "");
  const mount = mounts.find((path) => root.endsWith(path));
  return mount === undefined ? root : root.slice(0, -mount.length);
}

export function configuredModels(settings: BackendSettings): readonly string[] | undefined {
  const models = [...(settings.models ?? []), ...Object.keys(settings.deployments ?? {})];
  return models.length > 0 ? [...new Set(models)] : undefined;
}

/** Path and query of an operation on this backend for a model; undefined when its kind has no such operation. */
export function operationPath(
  backend: Backend,
  operation: Operation,
  model: string,
  stream: boolean,
): string | undefined {
  const path = backend.paths[operation];
  if (path === undefined) return undefined;
  if (backend.kind.deployments !== undefined) {
    const deployment = backend.settings.deployments?.[model] ?? model;
    return path.replace("{deployment}", encodeURIComponent(deployment)) + versionQuery(backend, operation);
  }
  if (!path.includes("{")) return path;
  const resource = backend.kind.resourceOf?.(model, backend.settings, operation) ?? encodeURIComponent(model);
  return path
    .replace(/\{([^|}]*)\|([^}]*)\}/, (_, plain: string, streamed: string) => (stream ? streamed : plain))
    .replace("{model}", () => resource);
}

/** The query that names the version of the API where paths do not; else "". */
export function versionQuery({ kind, settings }: Backend, operation?: Operation): string {
  if (kind.deployments === undefined) return "";
  // Preview features are asked for by name.
  if (operation !== undefined && operation === kind.deployments.versioned)
    return settings.api_version === "preview" ? "?api-version=preview" : "";
  return `?api-version=${encodeURIComponent(settings.api_version ?? kind.deployments.apiVersion)}`;
}

/** The header that carries this backend's API key, if it has one. */
export function credentialHeader({
  kind: { auth },
  apiKey,
}: Pick<Backend, "kind" | "apiKey">): [name: string, value: string] | undefined {
  if (apiKey === undefined) return undefined;
  return [auth.header, auth.scheme === "bearer" ? `Bearer ${apiKey}` : apiKey];
}

export function newCounters(): BackendCounters {
  return {
    inFlight: 0,
    inFlightElsewhere: 0,
    running: [],
    onIdle: undefined,
    totalRequests: 0,
    failedRequests: 0,
    credentialError: undefined,
    latencyMs: undefined,
    expectedMs: undefined,
    latencyAtMs: 0,
  };
}

/** Requests of this gateway in flight at the backend. */
export function openRequests({ inFlight, inFlightElsewhere }: BackendCounters): number {
  return inFlight + inFlightElsewhere;
}

export function beginRunning(counters: BackendCounters, entry: Running): void {
  counters.inFlight++;
  entry.place = counters.running.push(entry) - 1;
}

/**
 * A request that was begun is over; to be called once. The last one of the list takes its place: a Set through which
 * every request passes costs far more, most of it in garbage collection.
 */
export function endRunning(counters: BackendCounters, entry: Running): void {
  const last = counters.running.pop() as Running;
  if (last !== entry) {
    counters.running[entry.place] = last;
    last.place = entry.place;
  }
  counters.inFlight--;
  if (counters.inFlight === 0) counters.onIdle?.();
}
