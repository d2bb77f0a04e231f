// Rules that reach over several fields or sections; each answer is a problem at that path.

import type { Settings } from "../sections/registry.ts";
import type { SettingsRule } from "../values/problems.ts";

export const CROSS_CHECKS: readonly SettingsRule<Settings>[] = [
  adminCredentials,
  metricsCredentials,
  backendNameLengths,
  searchKey,
  bucketOfFiles,
  bucketOfRecordings,
  bucketOfCache,
  redisOfCache,
  redisOfLimits,
  keysOfTokenIssuers,
];

function keysOfTokenIssuers({ api_keys: { jwt } }: Settings) {
  return jwt.flatMap(({ jwks_url, jwks_file }, index) => {
    if ((jwks_url === undefined) !== (jwks_file === undefined)) return [];
    const message =
      jwks_url === undefined ? "is missing; or name jwks_file" : "cannot stand beside jwks_file; leave one of them";
    return [{ path: ["api_keys", "jwt", index, "jwks_url"], message }];
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

/** S3 takes at most this in one PUT. */
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

function bucketOfRecordings({ recording: { storage, s3 } }: Settings) {
  if (storage !== "s3") return [];
  return (["bucket", "access_key", "secret_key"] as const)
    .filter((key) => s3[key] === undefined)
    .map((key) => ({ path: ["recording", "s3", key], message: "is required by storage s3" }));
}

function redisOfCache({ response_cache: { backend, redis } }: Settings) {
  if (backend !== "redis" || redis.url !== undefined) return [];
  return [{ path: ["response_cache", "redis", "url"], message: "is required by backend redis" }];
}

function redisOfLimits({ rate_limiting: { storage, redis } }: Settings) {
  if (storage !== "redis" || redis.url !== undefined) return [];
  return [{ path: ["rate_limiting", "redis", "url"], message: "is required by storage redis" }];
}

/** Without its credentials a method would refuse everyone, and the next change could only be made in the file. */
function adminCredentials({ admin: { auth }, api_keys }: Settings) {
  const { method } = auth;
  const at = ["admin", "auth"];
  const required = (key: string, more = "") => [
    { path: [...at, key], message: `is required by method ${method}${more}` },
  ];
  const hasTokens = auth.token !== undefined || auth.tokens.length > 0;
  if (method === "none") return [];
  if (method === "oidc") return auth.oidc === undefined ? required("oidc") : peopleOfProvider(auth.oidc);
  if (method === "bearer_token") return hasTokens ? [] : required("token", ", or tokens");
  if (method === "basic") {
    if (auth.username === undefined && auth.password === undefined && auth.users.length > 0) return [];
    return (["username", "password"] as const).filter((key) => auth[key] === undefined).flatMap((key) => required(key));
  }
  const isAdmin = ({ enabled, scopes }: Settings["api_keys"]["keys"][number]) => enabled && scopes.includes("admin");
  if (hasTokens || api_keys.keys.some(isAdmin)) return [];
  const message = "api_key needs an enabled key with the scope admin in api_keys, or admin.auth.token";
  return [{ path: [...at, "method"], message }];
}

/** A provider all of whose people are refused. */
function peopleOfProvider({ roles, default_role }: NonNullable<Settings["admin"]["auth"]["oidc"]>) {
  if (default_role !== undefined || Object.values(roles).some((values) => values.length > 0)) return [];
  const message = "must name a value of the claim for at least one role, unless there is a default_role";
  return [{ path: ["admin", "auth", "oidc", "roles"], message }];
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
