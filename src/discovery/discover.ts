// Zero configuration: the backends that can be used without a configuration file.

import { BACKEND_KINDS, type BackendKind } from "../backends/kinds.ts";
import type { ConfigDocument } from "../config/sections/registry.ts";
import { withoutCredentials } from "../lib/without-credentials.ts";
import type { BackendKindName } from "../names.ts";
import { answersAs, type Probe } from "./probe-engine.ts";

type BackendDocument = NonNullable<ConfigDocument["backends"]>[number];

export interface FoundBackend {
  name: string;
  kind: BackendKindName;
  /** Without credentials, so that it can be shown. */
  url: string;
  /** The variable that holds the key, "answers on <address>", or "built in". */
  how: string;
}

interface Discovery {
  /** As an operator would write them under `backends`: keys are references, never values. */
  backends: BackendDocument[];
  found: FoundBackend[];
}

export interface DiscoveryOptions {
  env: Readonly<Record<string, string | undefined>>;
  probe?: Probe;
  /** For all probes together: they run side by side. */
  timeoutMs?: number;
  kinds?: readonly BackendKind[];
  /** Own addresses ("127.0.0.1:8080"); a base URL in the environment that leads here would make a circle. */
  ownAddresses?: readonly string[];
}

const DEFAULT_TIMEOUT_MS = 300;

interface Candidate {
  backend: BackendDocument;
  found: FoundBackend;
}

export async function discover(options: DiscoveryOptions): Promise<Discovery> {
  const { env, probe = fetch, timeoutMs = DEFAULT_TIMEOUT_MS, ownAddresses = [] } = options;
  const { kinds = Object.values(BACKEND_KINDS) } = options;
  const hosted = kinds.map((kind) => hostedCandidate(kind, env, ownAddresses));
  const local = await localCandidates(kinds, probe, timeoutMs);
  const candidates = [...hosted, ...local].filter((candidate) => candidate !== undefined);
  if (candidates.length === 0) candidates.push(...embeddedCandidates());
  return {
    backends: candidates.map((candidate) => candidate.backend),
    found: candidates.map((candidate) => candidate.found),
  };
}

function hostedCandidate(
  { name, environment, defaultUrl }: BackendKind,
  env: DiscoveryOptions["env"],
  ownAddresses: readonly string[],
): Candidate | undefined {
  const keyVariable = environment?.keys.find((variable) => env[variable]?.trim());
  if (keyVariable === undefined) return undefined;
  const baseUrl = environment?.url === undefined ? undefined : env[environment.url]?.trim();
  // People who use the gateway point their SDKs at it with this very variable.
  const url = baseUrl && !leadsTo(baseUrl, ownAddresses) ? baseUrl : undefined;
  const settings = { ...(url && { url }), api_key: `\${${keyVariable}}` };
  return candidate(name, withoutCredentials(url ?? defaultUrl ?? ""), keyVariable, settings);
}

async function localCandidates(
  kinds: readonly BackendKind[],
  probe: Probe,
  timeoutMs: number,
): Promise<(Candidate | undefined)[]> {
  const signal = AbortSignal.timeout(timeoutMs);
  return Promise.all(
    kinds.map(async ({ name, defaultUrl: url, localSigns: signs }) => {
      if (url === undefined || signs === undefined || !(await answersAs(signs, url, probe, signal))) return undefined;
      return candidate(name, url, `answers on ${new URL(url).host}`, { url });
    }),
  );
}

function embeddedCandidates(): Candidate[] {
  const embedded = Object.values(BACKEND_KINDS).filter((kind) => kind.isEmbedded);
  return embedded.map(({ name, defaultUrl = "" }) => candidate(name, defaultUrl, "built in", {}));
}

function candidate(name: BackendKindName, url: string, how: string, settings: Partial<BackendDocument>): Candidate {
  return { backend: { name, type: name, ...settings }, found: { name, kind: name, url, how } };
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
