// The template: changes nothing as it stands, names every key, and its commented-out parts work too.

import { expect, test } from "bun:test";
import { allPaths } from "../../test/support/schema-paths.ts";
import { compileDocument } from "../config/compile/compile.ts";
import { parseYaml } from "../config/files/yaml-document.ts";
import { documentJsonSchema } from "../config/schema/schema-export.ts";
import { documentSchema, type Settings } from "../config/sections/registry.ts";
import type { Mapping } from "../config/values/values.ts";
import { defaultConfigText } from "./generate-config.ts";

const ENV = {
  OPENAI_API_KEY: "example",
  AZURE_OPENAI_API_KEY: "example",
  AZURE_CLIENT_SECRET: "example",
  AWS_ACCESS_KEY_ID: "example",
  AWS_SECRET_ACCESS_KEY: "example",
  AWS_SESSION_TOKEN: "example",
  SIGNALBOX_KEY_TEAM_A: "example-key",
  SIGNALBOX_OLD_KEY_TEAM_A: "old-example-key",
  SIGNALBOX_ADMIN_TOKEN: "example-token",
  SIGNALBOX_ADMIN_PASSWORD: "example",
  SIGNALBOX_DEPLOY_TOKEN: "example-deploy",
  SIGNALBOX_ANN_PASSWORD: "example",
  SIGNALBOX_OIDC_SECRET: "example",
  SIGNALBOX_METRICS_PASSWORD: "example",
  SEARCH_API_KEY: "example",
  FILES_TOKEN: "example",
  OTLP_TOKEN: "example",
  SIGNALBOX_WEBHOOK_SECRET: "example",
  SIGNALBOX_SLACK_URL: "https://hooks.example.com/services/example",
  SIGNALBOX_S3_ACCESS_KEY: "example",
  SIGNALBOX_S3_SECRET_KEY: "example",
  SIGNALBOX_HOOK_SECRET: "example",
};

function compile(text: string): { document: Mapping; settings: Settings } {
  const parsed = parseYaml(text);
  expect(parsed.problems).toEqual([]);
  const compilation = compileDocument(parsed.value as Mapping, ENV);
  expect(compilation.problems).toEqual([]);
  return { document: compilation.document as Mapping, settings: compilation.settings! };
}

/** Mappings whose keys are names that operators choose. */
const FREE_NAMES: ReadonlySet<string> = new Set([
  "timeouts.models",
  "backends.[].headers",
  "backends.[].deployments",
  "backends.[].batch_deployments",
  "circuit_breaker.backends",
  "fallback.fallback_chains",
  "global_prompts.backends",
  "global_prompts.models",
  "model_aliases",
  "acp.mcp.servers",
  "acp.mcp.servers.<name>.env",
  "telemetry.otlp.headers",
  "budgets.rules.[].reset_subjects",
  "notifications.[].headers",
  "hooks.[].headers",
  "hooks.[].options",
  "routes.[].when.[].header",
  "routes.[].when.[].metadata",
  "recording.match.[].header",
  "recording.match.[].metadata",
  "admission.backends",
  "admission.queue.classes",
]);

/** Of keys that can be written in two ways, the one that the template does not have. */
const OTHER_FORMS: ReadonlySet<string> = new Set([
  "server.bind_address.[]",
  "backends.[].health_check.body.<name>",
  "batches.vendor.[]",
]);

/** Paths in the notation of allPaths. */
function pathsIn(value: unknown, path: string[] = []): string[] {
  const own = path.length > 0 ? [path.join(".")] : [];
  if (Array.isArray(value)) return [...own, ...value.flatMap((entry) => pathsIn(entry, [...path, "[]"]))];
  if (typeof value !== "object" || value === null) return own;
  const isFree = FREE_NAMES.has(path.join("."));
  return [
    ...own,
    ...Object.entries(value).flatMap(([key, entry]) => pathsIn(entry, [...path, isFree ? "<name>" : key])),
  ];
}

/** Explanations are behind "# "; any other "#" hides a setting. */
function uncommented(template: string): string {
  return template
    .replaceAll(/^( *)#(?! \S)/gm, "$1")
    .replaceAll(
      /^( *(?:backends|keys|models|trusted_proxies|allowed_hosts|allowed_link_hosts|allowed_origins|fallback_chains|model_aliases|whitelist|ip_whitelist|bypass_keys|event_sources|servers|allowed_servers|headers|jwt|rules|organizations|tokens|users|notifications|hooks|routes|match):) (?:\[\]|\{\})$/gm,
      "$1",
    );
}

test("the template equals the defaults", () => {
  expect(compile(defaultConfigText()).settings).toEqual(documentSchema.parse({}));
});

test("with everything uncommented it is still valid, and holds every key of the schema", () => {
  const { document } = compile(uncommented(defaultConfigText()));
  const present = new Set(pathsIn(document));
  const missing = allPaths(documentJsonSchema())
    .map(({ path }) => path.join("."))
    .filter((path) => !present.has(path) && !OTHER_FORMS.has(path));
  expect(missing).toEqual([]);
});

test("every default is written out", () => {
  const { document } = compile(defaultConfigText());
  const present = new Set(pathsIn(document));
  const missing = allPaths(documentJsonSchema())
    .filter(({ path, schema }) => schema.default !== undefined && !path.includes("[]") && !path.includes("<name>"))
    .map(({ path }) => path.join("."))
    // A mapping that is left out has no defaults.
    .filter((path) => !present.has(path) && !path.startsWith("admin.auth.oidc."));
  expect(missing).toEqual([]);
});

test("lines stay readable", () => {
  expect(
    defaultConfigText()
      .split("\n")
      .filter((line) => line.length > 120),
  ).toEqual([]);
});
