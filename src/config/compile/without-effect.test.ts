// What does nothing is told, and nothing else is.

import { expect, test } from "bun:test";
import { documentSchema } from "../sections/registry.ts";
import { effectWarnings } from "./without-effect.ts";

test.each<[document: object, told: string[]]>([
  [{}, []],
  [{ server: { workers: 1, connection_pool_size: 100 } }, []],
  [{ server: { workers: 0, worker_memory_limit: 2 ** 30 } }, []],
  [{ server: { worker_memory_limit: 2 ** 30 } }, ["server.worker_memory_limit"]],
  [{ files: { max_file_size: 1, s3: { region: "auto" } } }, []],
  [
    { files: { s3: { bucket: "b", access_key: "sekret", secret_key: "sekret" } } },
    ["files.s3.bucket", "files.s3.access_key", "files.s3.secret_key"],
  ],
  [{ files: { storage: "s3", s3: { bucket: "b", access_key: "sekret", secret_key: "sekret" } } }, []],
  [{ admin: { auth: { token: "sekret-token" } } }, ["admin.auth.token"]],
  [{ admin: { auth: { method: "bearer", token: "sekret-token" } } }, []],
  [
    { admin: { auth: { method: "api_key", token: "sekret-token", username: "u", password: "sekret" } } },
    ["admin.auth.username", "admin.auth.password"],
  ],
  [{ metrics: { auth: { username: "u", password: "sekret" } } }, ["metrics.auth.username", "metrics.auth.password"]],
  [{ metrics: { auth: { enabled: true, username: "u", password: "sekret" } } }, []],
  [
    { global_prompts: { default: "a", default_file: "b.md", models: { m: { prompt: "a", prompt_file: "b.md" } } } },
    ["global_prompts.default", "global_prompts.models.m.prompt"],
  ],
  [{ web_search: { api_key: "sekret" } }, ["web_search.api_key"]],
  [{ batches: { vendor: true } }, []],
  [
    {
      batches: { vendor: true },
      files: { storage: "s3", s3: { bucket: "b" } },
      rate_limiting: { storage: "redis" },
    },
    ["batches.vendor"],
  ],
  ...budgetCases(),
])("%j", (document, told) => {
  const warnings = effectWarnings(documentSchema.parse(document));
  expect(warnings.map((warning) => warning.split(" ")[0] ?? "")).toEqual(told);
  expect(warnings.join()).not.toContain("sekret");
});

function budgetCases(): [document: object, told: string[]][] {
  const rule = (match: object, limit: object = { cost: 1 }, more: object = {}) => ({
    backends: [{ name: "gpu-1", url: "http://h", models: ["m"] }],
    api_keys: { keys: [{ key: "sekret-key", id: "team-a" }] },
    budgets: { rules: [{ id: "r", match, limit, window: "day", ...more }] },
  });
  // 4,000 tokens at 1 a thousand.
  const metadata = { pricing: { output_tokens: 1 }, limits: { max_output: 4_000 } };
  const priced = (document: ReturnType<typeof rule>) => ({
    ...document,
    backends: [{ ...document.backends[0], model_configs: [{ id: "m", metadata }] }],
  });
  return [
    [rule({ backend: "gpu-*", key: ["team-a", "gone"] }), []],
    [rule({ backend: ["gpu-2"], key: "gone" }), ["budgets.rules[0].match.backend"]],
    [priced(rule({ model: "m*" }, { cost: 3 }, { strict: true })), ["budgets.rules[0].limit.cost"]],
    [priced(rule({ model: "m*" }, { cost: 4 }, { strict: true })), []],
    [priced(rule({ model: "other" }, { cost: 3 }, { strict: true })), []],
    [priced(rule({}, { cost: 3 })), []],
    [rule({}, { requests: 0 }), ["budgets.rules[0].limit.requests"]],
    [rule({}, { requests: 0 }, { when_exceeded: "warn" }), []],
    [{ budgets: { currency: "EUR" }, admin: { stats: { currency: "CHF" } } }, ["admin.stats.currency"]],
  ];
}
