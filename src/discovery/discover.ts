// Zero configuration: the backends that can be used without a configuration file.

import type { BackendKind } from "../backends/kind.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import type { ConfigDocument } from "../config/sections/registry.ts";
import { withoutCredentials } from "../lib/without-credentials.ts";
import type { BackendKindName } from "../names.ts";
import { askEngine, type Probe } from "./probe-engine.ts";

type BackendDocument = NonNullable<ConfigDocument["backends"]>[number];

export interface FoundBackend {
  name: string;
  kind: BackendKindName;
  /** Without credentials, so that it can be shown. */
  url: string;
  /** The variable that holds the key, "answers on <address>", or "built in". */
  how: string;
}

/** A server on one of the ports that is not taken for an engine. */
export interface UnrecognisedServer {
  /** Such as "127.0.0.1:8080". */
  address: string;
  /** Describes its answer. */
  said: string;
  /** The entry of the configuration that would use it. */
  backend: BackendDocument;
}

export interface Discovery {
  /** As an operator would write them under `backends`: keys are references, never values. */
  backends: BackendDocument[];
  found: FoundBackend[];
  unrecognised: UnrecognisedServer[];
}

export interface DiscoveryOptions {
  env: Readonly<Record<string, string | undefined>>;
  probe?: Probe;
  /** Time for all probes together: they run side by side. */
  timeoutMs?: number;
  /** Ports of this machine on which engines are looked for. */
  ports: readonly number[];
  /** Own addresses ("127.0.0.1:8080"): a request that the gateway sent to itself would go in a circle. */
  ownAddresses?: readonly string[];
}

const DEFAULT_TIMEOUT_MS = 300;

interface ServerCandidate {
  backend: BackendDocument;
  found: FoundBackend;
}

export async function discover(options: DiscoveryOptions): Promise<Discovery> {
  const { env, ownAddresses = [] } = options;
  const local = await localServers(options);
  const candidates = [...hostedCandidates(env, ownAddresses), ...local.candidates];
  if (candidates.length === 0) candidates.push(...embeddedCandidates());
  return {
    backends: candidates.map((candidate) => candidate.backend),
    found: candidates.map((candidate) => candidate.found),
    unrecognised: local.unrecognised,
  };
}

function hostedCandidates(env: DiscoveryOptions["env"], ownAddresses: readonly string[]): ServerCandidate[] {
  return Object.values(BACKEND_KINDS)
    .map((kind) => hostedCandidate(kind, env, ownAddresses))
    .filter((candidate) => candidate !== undefined);
}

function hostedCandidate(
  { name, environment, defaultUrl }: BackendKind,
  env: DiscoveryOptions["env"],
  ownAddresses: readonly string[],
): ServerCandidate | undefined {
  // Other keys stand for more than models, or are in the environment for another program.
  const keys = environment?.isFound === true ? environment.keys : [];
  const keyVariable = keys.find((variable) => env[variable]?.trim());
  if (keyVariable === undefined) return undefined;
  const baseUrl = environment?.url === undefined ? undefined : env[environment.url]?.trim();
  // People who use the gateway point their SDKs at it with this very variable.
  const url = baseUrl && !leadsTo(baseUrl, ownAddresses) ? baseUrl : undefined;
  const settings = { ...(url && { url }), api_key: `\${${keyVariable}}` };
  return candidate(name, name, withoutCredentials(url ?? defaultUrl ?? ""), keyVariable, settings);
}

async function localServers({
  probe = fetch,
  timeoutMs = DEFAULT_TIMEOUT_MS,
  ports,
  ownAddresses = [],
}: DiscoveryOptions) {
  const signal = AbortSignal.timeout(timeoutMs);
  const servers = ports
    .map((port) => ({ port, address: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` }))
    .filter(({ url }) => !leadsTo(url, ownAddresses));
  const answers = await Promise.all(servers.map(({ url }) => askEngine(url, probe, signal)));

  const candidates: ServerCandidate[] = [];
  const unrecognised: UnrecognisedServer[] = [];
  for (const [index, { port, address, url }] of servers.entries()) {
    const answer = answers[index];
    if (answer === undefined) continue;
    const { kind, said, wantsKey } = answer;
    if (kind === undefined) {
      const key = wantsKey ? { api_key: `\${LOCAL_${port}_API_KEY}` } : {};
      unrecognised.push({ address, said, backend: { name: `local-${port}`, url, ...key } });
      continue;
    }
    const isTaken = candidates.some((other) => other.found.name === kind.name);
    const name = isTaken ? `${kind.name}-${port}` : kind.name;
    candidates.push(candidate(name, kind.name, url, `answers on ${address}`, { url }));
  }
  return { candidates, unrecognised };
}

function embeddedCandidates(): ServerCandidate[] {
  const embedded = Object.values(BACKEND_KINDS).filter((kind) => kind.isEmbedded);
  return embedded.map(({ name, defaultUrl = "" }) => candidate(name, name, defaultUrl, "built in", {}));
}

function candidate(
  name: string,
  kind: BackendKindName,
  url: string,
  how: string,
  settings: Partial<BackendDocument>,
): ServerCandidate {
  return { backend: { name, type: kind, ...settings }, found: { name, kind, url, how } };
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
