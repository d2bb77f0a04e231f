// Zero configuration: the backends that can be used without a configuration file.

import { BACKEND_KINDS } from "../backends/kinds.ts";
import type { ConfigDocument } from "../config/sections/registry.ts";
import type { BackendKindName } from "../names.ts";
import { LOCAL_ENGINES, type LocalEngine } from "./engines.ts";
import { HOSTED_APIS, type HostedApi } from "./hosted.ts";
import { type Probe, probeEngine } from "./probe-engine.ts";

export type BackendDocument = NonNullable<ConfigDocument["backends"]>[number];

export interface FoundBackend {
  name: string;
  kind: BackendKindName;
  /** Without credentials, so that it can be shown. */
  url: string;
  /** The variable that holds the key, "answers on <address>", or "built in". */
  how: string;
}

export interface Discovery {
  /** As an operator would write them under `backends`: keys are references, never values. */
  backends: BackendDocument[];
  found: FoundBackend[];
}

export interface DiscoveryOptions {
  env: Readonly<Record<string, string | undefined>>;
  probe?: Probe;
  /** For all probes together: they run side by side. */
  timeoutMs?: number;
  engines?: readonly LocalEngine[];
  /** Own addresses ("127.0.0.1:8080"); a base URL in the environment that leads here would make a circle. */
  ownAddresses?: readonly string[];
}

const DEFAULT_TIMEOUT_MS = 300;

interface Candidate {
  backend: BackendDocument;
  found: FoundBackend;
}

export async function discover(options: DiscoveryOptions): Promise<Discovery> {
  const { env, probe = fetch, timeoutMs = DEFAULT_TIMEOUT_MS, engines = LOCAL_ENGINES, ownAddresses = [] } = options;
  const hosted = HOSTED_APIS.map((api) => hostedCandidate(api, env, ownAddresses));
  const local = await localCandidates(engines, probe, timeoutMs);
  const candidates = [...hosted, ...local].filter((candidate) => candidate !== undefined);
  if (candidates.length === 0) candidates.push(demoCandidate());
  return {
    backends: candidates.map((candidate) => candidate.backend),
    found: candidates.map((candidate) => candidate.found),
  };
}

function hostedCandidate(
  api: HostedApi,
  env: DiscoveryOptions["env"],
  ownAddresses: readonly string[],
): Candidate | undefined {
  const keyVariable = api.keyVariables.find((variable) => env[variable]?.trim());
  if (keyVariable === undefined) return undefined;
  const baseUrl = api.urlVariable === undefined ? undefined : env[api.urlVariable]?.trim();
  // People who use the gateway point their SDKs at it with this very variable.
  const url = baseUrl && !leadsTo(baseUrl, ownAddresses) ? baseUrl : undefined;
  return {
    backend: { name: api.kind, type: api.kind, ...(url && { url }), api_key: `\${${keyVariable}}` },
    found: {
      name: api.kind,
      kind: api.kind,
      url: withoutCredentials(url ?? BACKEND_KINDS[api.kind].defaultUrl ?? ""),
      how: keyVariable,
    },
  };
}

async function localCandidates(
  engines: readonly LocalEngine[],
  probe: Probe,
  timeoutMs: number,
): Promise<(Candidate | undefined)[]> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  try {
    return await Promise.all(
      engines.map(async (engine) =>
        (await probeEngine(engine, probe, controller.signal)) ? localCandidate(engine) : undefined,
      ),
    );
  } finally {
    clearTimeout(timer);
  }
}

function localCandidate({ kind, url }: LocalEngine): Candidate {
  return {
    backend: { name: kind, type: kind, url },
    found: { name: kind, kind, url, how: `answers on ${new URL(url).host}` },
  };
}

function demoCandidate(): Candidate {
  return {
    backend: { name: "demo", type: "demo" },
    found: { name: "demo", kind: "demo", url: BACKEND_KINDS.demo.defaultUrl ?? "", how: "built in" },
  };
}

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]"]);

function leadsTo(baseUrl: string, addresses: readonly string[]): boolean {
  if (!URL.canParse(baseUrl)) return false;
  const target = new URL(baseUrl);
  const port = target.port || (target.protocol === "https:" ? "443" : "80");
  return addresses.some((address) => {
    if (address.startsWith("unix:")) return false;
    const colon = address.lastIndexOf(":");
    const host = address.slice(0, colon).toLowerCase();
    const isSameHost = host === target.hostname || (LOOPBACK_NAMES.has(host) && LOOPBACK_NAMES.has(target.hostname));
    return isSameHost && address.slice(colon + 1) === port;
  });
}

function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//");
}
