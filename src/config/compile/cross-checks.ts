// Rules that reach over several fields or sections; each answer is a problem at that path.

import { nearest } from "../../lib/nearest.ts";
import { METHOD_CREDENTIALS } from "../sections/admin.ts";
import type { Settings } from "../sections/registry.ts";
import type { SettingsRule } from "../values/problems.ts";

export const CROSS_CHECKS: readonly SettingsRule<Settings>[] = [
  distinctAddresses,
  distinctKeys,
  distinctKeyIds,
  adminCredentials,
  metricsCredentials,
  backendNameLengths,
  knownBackendsOf("circuit_breaker"),
  knownBackendsOf("global_prompts"),
  searchKey,
  bucketOfFiles,
  bucketOfCache,
  knownEventSources,
  redisOfCache,
  redisOfLimits,
];

/** Overrides under a mistyped name would be ignored in silence. */
function knownBackendsOf(section: "circuit_breaker" | "global_prompts"): SettingsRule<Settings> {
  return (settings) => {
    const names = settings.backends.map(({ name }) => name);
    return Object.keys(settings[section].backends)
      .filter((name) => !names.includes(name))
      .map((name) => {
        const near = nearest(name, names);
        const hint = near === undefined ? "" : `; did you mean "${near}"?`;
        return { path: [section, "backends", name], message: `there is no backend of this name${hint}` };
      });
  };
}

function knownEventSources({ backends, kv_cache_index }: Settings) {
  const names = backends.map(({ name }) => name);
  return kv_cache_index.event_sources.flatMap(({ backend_name }, index) => {
    if (names.includes(backend_name)) return [];
    const near = nearest(backend_name, names);
    const hint = near === undefined ? "" : `; did you mean "${near}"?`;
    const path = ["kv_cache_index", "event_sources", index, "backend_name"];
    return [{ path, message: `there is no backend of this name${hint}` }];
  });
}

/** Every service wants a key; behind an address of the operator's own there may be something that wants none. */
function searchKey({ web_search: { provider, api_key, base_url } }: Settings) {
  if (provider === undefined || api_key !== undefined || base_url !== undefined) return [];
  return [{ path: ["web_search", "api_key"], message: `is missing; ${provider} wants one` }];
}

function bucketOfCache({ response_cache: { enabled, backend, tiered } }: Settings) {
  if (!enabled || backend !== "tiered") return [];
  return (["bucket", "access_key", "secret_key"] as const)
    .filter((key) => tiered.l2[key] === undefined)
    .map((key) => ({ path: ["response_cache", "tiered", "l2", key], message: "is required by backend tiered" }));
}

/** What S3 takes in one request. */
const MOST_OBJECT_BYTES = 5 * 1024 ** 3;

function bucketOfFiles({ files: { storage, s3, max_file_size } }: Settings) {
  if (storage !== "s3") return [];
  const missing = (["bucket", "access_key", "secret_key"] as const)
    .filter((key) => s3[key] === undefined)
    .map((key) => ({ path: ["files", "s3", key], message: "is required by storage s3" }));
  if (max_file_size <= MOST_OBJECT_BYTES) return missing;
  const message = `must be at most ${MOST_OBJECT_BYTES} with storage s3: a bucket takes no more in one request`;
  return [...missing, { path: ["files", "max_file_size"], message }];
}

function redisOfCache({ response_cache: { backend, redis } }: Settings) {
  if (backend !== "redis" || redis.url !== undefined) return [];
  return [{ path: ["response_cache", "redis", "url"], message: "is required by backend redis" }];
}

function redisOfLimits({ rate_limiting: { storage, redis } }: Settings) {
  if (storage !== "redis" || redis.url !== undefined) return [];
  return [{ path: ["rate_limiting", "redis", "url"], message: "is required by storage redis" }];
}

/** Without its credentials a method would let nobody in, and the next change could only be made in the file. */
function adminCredentials({ admin: { auth }, api_keys }: Settings) {
  const { method } = auth;
  const missing = METHOD_CREDENTIALS[method].filter((key) => auth[key] === undefined);
  if (method !== "api_key") {
    return missing.map((key) => ({ path: ["admin", "auth", key], message: `is required by method ${method}` }));
  }
  const isAdmin = ({ enabled, scopes }: Settings["api_keys"]["keys"][number]) => enabled && scopes.includes("admin");
  if (missing.length === 0 || api_keys.keys.some(isAdmin)) return [];
  const message = "api_key needs an enabled key with the scope admin in api_keys, or admin.auth.token";
  return [{ path: ["admin", "auth", "method"], message }];
}

function metricsCredentials({ metrics: { auth } }: Settings) {
  if (!auth.enabled) return [];
  return (["username", "password"] as const)
    .filter((key) => auth[key] === undefined)
    .map((key) => ({ path: ["metrics", "auth", key], message: "is required while metrics.auth.enabled is true" }));
}

function backendNameLengths({ backends, admin }: Settings) {
  const limit = admin.max_backend_name_length;
  const message = `is longer than the ${limit} characters of admin.max_backend_name_length`;
  return backends.flatMap(({ name }, index) =>
    name.length <= limit ? [] : [{ path: ["backends", index, "name"], message }],
  );
}

function distinctAddresses(settings: Settings) {
  const addresses = settings.server.bind_address;
  if (typeof addresses === "string") return [];
  // Port 0 takes another free port each time.
  return repeated(addresses.map((address) => (address.endsWith(":0") ? undefined : address))).map(([index, first]) => ({
    path: ["server", "bind_address", index],
    message: `is the same address as server.bind_address[${first}]`,
  }));
}

function distinctKeys(settings: Settings) {
  // The secret before a rotation is one too: its place is behind that of the key itself.
  const secrets = settings.api_keys.keys.flatMap(({ key, previous }) => [key, previous?.key]);
  return repeated(secrets).map(([place, first]) => ({
    path: ["api_keys", "keys", Math.floor(place / 2), ...(place % 2 === 0 ? ["key"] : ["previous", "key"])],
    message: `is the same key as ${nameOf(settings, Math.floor(first / 2))}`,
  }));
}

function distinctKeyIds(settings: Settings) {
  return repeated(settings.api_keys.keys.map(({ id }) => id)).map(([index, first]) => ({
    path: ["api_keys", "keys", index, "id"],
    message: `is the same id as that of ${nameOf(settings, first)}`,
  }));
}

/** By position: an id could be anything, a secret pasted into the wrong line too. */
function nameOf(settings: Settings, index: number): string {
  return `the ${ordinal(index + 1)} of the ${settings.api_keys.keys.length} keys`;
}

function ordinal(position: number): string {
  const suffix = /1[123]$/.test(String(position)) ? "th" : (["th", "st", "nd", "rd"][position % 10] ?? "th");
  return `${position}${suffix}`;
}

/** Positions of values that stood before, each with the first position. */
function repeated(values: readonly (string | undefined)[]): [index: number, first: number][] {
  const seen = new Map<string, number>();
  const found: [number, number][] = [];
  values.forEach((value, index) => {
    if (value === undefined) return;
    const first = seen.get(value);
    if (first === undefined) seen.set(value, index);
    else found.push([index, first]);
  });
  return found;
}
