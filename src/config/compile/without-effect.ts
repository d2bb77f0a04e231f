// Settings that are accepted and do nothing, because another setting leaves them no room.

import { compileGlob } from "../../lib/glob.ts";
import { METHOD_CREDENTIALS } from "../sections/admin.ts";
import type { Settings } from "../sections/registry.ts";
import type { Problem, SettingsRule } from "../values/problems.ts";
import { formatPath, type PathSegment } from "../values/values.ts";

const RULES: readonly SettingsRule<Settings>[] = [
  memoryOfWorkers,
  adminCredentials,
  adminRolesOfKeys,
  metricsCredentials,
  promptTexts,
  search,
  bucketOfFiles,
  bucketOfCache,
  redisOfCache,
  redisOfLimits,
  vendorsOfSharedBatches,
  budgetsOfNothing,
  emptyBudgets,
  budgetsBelowOneRequest,
  currencyOfStatistics,
];

export function effectWarnings(settings: Settings, sections?: readonly string[]): string[] {
  return RULES.flatMap((rule) => rule(settings))
    .filter(({ path }) => sections === undefined || sections.includes(String(path[0])))
    .map(inWords);
}

/** The same rule by rule, for settings of which a part cannot be asked for. */
export const EFFECT_WARNINGS: readonly ((settings: Settings) => string[])[] = RULES.map(
  (rule) => (settings) => rule(settings).map(inWords),
);

/** The message reads on from its path: "metrics.auth.username" "has no effect while …". */
function inWords({ path, message }: Problem): string {
  return `${formatPath(path)} ${message}`;
}

export function logEffectWarnings(log: { warn(fields: object, message: string): void }, settings: Settings): void {
  for (const message of effectWarnings(settings)) log.warn({}, message);
}

function memoryOfWorkers({ server: { workers, worker_memory_limit: limit } }: Settings): Problem[] {
  if (limit === undefined || workers !== 1) return [];
  return [{ path: ["server", "worker_memory_limit"], message: "has no effect while server.workers is 1" }];
}

/** A credential without its method seems to protect the gateway, and does not. */
function adminCredentials({ admin: { auth } }: Settings): Problem[] {
  const isGiven = (value: unknown) => value !== undefined && !(Array.isArray(value) && value.length === 0);
  const idle = (["token", "tokens", "username", "password", "users", "oidc"] as const).filter(
    (key) => isGiven(auth[key]) && !METHOD_CREDENTIALS[auth.method].includes(key),
  );
  return idle.map((key) => ({
    path: ["admin", "auth", key],
    message: `has no effect while admin.auth.method is ${auth.method}`,
  }));
}

function adminRolesOfKeys({ api_keys: { keys } }: Settings): Problem[] {
  return keys.flatMap(({ admin_role, scopes }, index) =>
    admin_role === undefined || scopes.includes("admin")
      ? []
      : [{ path: ["api_keys", "keys", index, "admin_role"], message: "has no effect without the scope admin" }],
  );
}

function metricsCredentials({ metrics: { auth } }: Settings): Problem[] {
  if (auth.enabled) return [];
  const given = (["username", "password"] as const).filter((key) => auth[key] !== undefined);
  return given.map((key) => ({
    path: ["metrics", "auth", key],
    message: "has no effect while metrics.auth.enabled is false",
  }));
}

function promptTexts({ global_prompts: prompts }: Settings): Problem[] {
  const wins = (path: PathSegment[], file: string) => ({ path, message: `has no effect: ${file} beside it wins` });
  const own = (["backends", "models"] as const).flatMap((group) =>
    Object.entries(prompts[group]).flatMap(([name, { prompt, prompt_file }]) =>
      prompt === undefined || prompt_file === undefined
        ? []
        : [wins(["global_prompts", group, name, "prompt"], "prompt_file")],
    ),
  );
  const isIdle = prompts.default !== undefined && prompts.default_file !== undefined;
  return [...(isIdle ? [wins(["global_prompts", "default"], "default_file")] : []), ...own];
}

function search({ web_search }: Settings): Problem[] {
  if (web_search.provider !== undefined) return [];
  const given = (["api_key", "base_url"] as const).filter((key) => web_search[key] !== undefined);
  return given.map((key) => ({
    path: ["web_search", key],
    message: "has no effect without web_search.provider",
  }));
}

function redisOfCache({ response_cache: { backend, redis } }: Settings): Problem[] {
  if (backend === "redis" || redis.url === undefined) return [];
  const message = `has no effect while response_cache.backend is ${backend}`;
  return [{ path: ["response_cache", "redis", "url"], message }];
}

function redisOfLimits({ rate_limiting: { storage, redis } }: Settings): Problem[] {
  if (storage === "redis" || redis.url === undefined) return [];
  const message = `has no effect while rate_limiting.storage is ${storage}`;
  return [{ path: ["rate_limiting", "redis", "url"], message }];
}

/** A rule that no request can match limits nothing, though it seems to. Keys may stand in the key store as well. */
/** Where gateways share batches, lines are asked one by one (decision 0081). */
function vendorsOfSharedBatches({ batches, files, rate_limiting }: Settings): Problem[] {
  const isWanted = batches.enabled && batches.vendor !== false;
  if (!isWanted || rate_limiting.storage !== "redis" || !files.enabled || files.storage !== "s3") return [];
  const message = "has no effect while gateways share batches (rate_limiting.storage is redis and files.storage s3)";
  return [{ path: ["batches", "vendor"], message }];
}

function budgetsOfNothing({ budgets, backends }: Settings): Problem[] {
  return budgets.rules.flatMap(({ match }, index) => {
    const wanted = match.backend?.map(compileGlob);
    if (wanted === undefined || backends.some(({ name }) => wanted.some((matches) => matches(name)))) return [];
    return [
      { path: ["budgets", "rules", index, "match", "backend"], message: "matches no backend: nothing is limited" },
    ];
  });
}

/** The price of the longest answer of each model whose price and bound the configuration says. */
function longestAnswers({ backends }: Settings) {
  return backends.flatMap((backend) =>
    (backend.model_configs ?? []).flatMap(({ id, metadata }) => {
      const price = metadata?.pricing?.output_tokens;
      const most = metadata?.limits?.max_output;
      return price === undefined || most === undefined
        ? []
        : [{ backend: backend.name, id, cost: (most / 1_000) * price }];
    }),
  );
}

/** A strict rule sets aside what a request may cost at most: less than one answer lets no request in that has no bound. */
function budgetsBelowOneRequest(settings: Settings): Problem[] {
  const answers = longestAnswers(settings);
  return settings.budgets.rules.flatMap(({ strict, match, limit: { cost: most } }, index) => {
    if (!strict || most === undefined || most === 0) return [];
    const [models, backends] = [match.model, match.backend].map((patterns) => patterns?.map(compileGlob));
    const above = answers.find(({ backend, id, cost }) => {
      if (cost <= most) return false;
      return (
        models?.some((matches) => matches(id)) !== false && backends?.some((matches) => matches(backend)) !== false
      );
    });
    if (above === undefined) return [];
    const message = `is less than the longest answer of ${above.id} costs: strict refuses its requests without max_tokens`;
    return [{ path: ["budgets", "rules", index, "limit", "cost"], message }];
  });
}

function emptyBudgets({ budgets }: Settings): Problem[] {
  return budgets.rules.flatMap(({ limit, when_exceeded }, index) =>
    Object.entries(limit)
      .filter(([, most]) => most === 0 && when_exceeded === "refuse")
      .map(([name]) => ({
        path: ["budgets", "rules", index, "limit", name],
        message: "is 0: every request is refused",
      })),
  );
}

/** One word for all prices, and another one beside it. */
function currencyOfStatistics({ budgets: { currency }, admin }: Settings): Problem[] {
  if (currency === undefined || currency === admin.stats.currency || admin.stats.currency === "USD") return [];
  return [{ path: ["admin", "stats", "currency"], message: `has no effect while budgets.currency is ${currency}` }];
}

function bucketOfFiles({ files: { storage, s3 } }: Settings): Problem[] {
  if (storage === "s3") return [];
  const given = (["endpoint", "bucket", "access_key", "secret_key"] as const).filter((key) => s3[key] !== undefined);
  return given.map((key) => ({
    path: ["files", "s3", key],
    message: `has no effect while files.storage is ${storage}`,
  }));
}

function bucketOfCache({ response_cache: { backend, tiered } }: Settings): Problem[] {
  if (backend === "tiered") return [];
  const given = (["endpoint", "bucket", "access_key", "secret_key"] as const).filter(
    (key) => tiered.l2[key] !== undefined,
  );
  return given.map((key) => ({
    path: ["response_cache", "tiered", "l2", key],
    message: `has no effect while response_cache.backend is ${backend}`,
  }));
}
