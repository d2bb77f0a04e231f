// GET /admin/config…: what the configuration is, what it may be, and how changes of it take effect.

import {
  describeSection,
  longSpelling,
  reloadCapabilities,
  sectionNames,
  sectionReloadClass,
} from "../config/change/capability.ts";
import { documentJsonSchema, sectionJsonSchema } from "../config/schema/schema-export.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { eachSection, sectionView } from "../openapi/section-schemas.ts";
import type { Call } from "../server/endpoint.ts";
import {
  CONFIGURATION_SCHEMAS,
  ConfigSchema,
  ConfigSections,
  ConfigSummary,
  FullConfig,
  HotReloadStatus,
  sectionFacts,
  sectionName,
} from "./config-schemas.ts";
import { adminGroup, answer, requireElevated, toTimestamp, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf, readFlag } from "./query.ts";
import { unknownSection } from "./refusals.ts";

type ConfigReadParts = Pick<AdminParts, "store" | "reloadStatus">;

const HOT_RELOAD_NOTE =
  "Changes take effect while requests go on; GET /admin/config/hot-reload-status lists what needs a restart.";

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);
const includeSensitive = queryParameter("include_sensitive", "true: with secrets; needs elevated permission.", {
  type: "boolean",
  default: false,
});

export function configReadRoutes(parts: ConfigReadParts): DescribedEndpoint[] {
  const { store } = parts;
  return [
    endpoint("GET /admin/config", {
      id: "getConfigSummary",
      role: "viewer",
      summary: "The configuration in short",
      answers: [versioned(ConfigSummary, "The summary.")],
      handle: (call) => summary(call, parts),
    }),
    endpoint("GET /admin/config/full", {
      id: "getConfig",
      role: "viewer",
      summary: "The whole configuration, secrets masked",
      parameters: [includeSensitive],
      answers: [versioned(FullConfig, "The configuration.")],
      handle(call) {
        const { version, appliedAtMs } = store.current;
        const config = store.view({ includeSensitive: readSensitivity(call) });
        const body = { config, hot_reload_enabled: true, last_modified: toTimestamp(appliedAtMs), version };
        return answer(call, body, { version });
      },
    }),
    endpoint("GET /admin/config/sections", {
      id: "listConfigSections",
      role: "viewer",
      summary: "Names of the sections, and how changes of them take effect",
      answers: [jsonAnswer(ConfigSections, "The sections.")],
      handle(call) {
        const { sections, extensions } = sectionNames();
        return answer(call, {
          sections: sections.flatMap((name) => describeSection(name) ?? []),
          total: sections.length,
          extensions: extensions.flatMap((name) => describeSection(name) ?? []),
        });
      },
    }),
    endpoint("GET /admin/config/schema", {
      id: "getConfigSchema",
      role: "viewer",
      summary: "JSON Schema (draft-07) of the configuration or of a section",
      parameters: [queryParameter("section", "Name of a section.")],
      answers: [jsonAnswer(ConfigSchema, "The schema.")],
      errors: [404],
      handle(call) {
        const name = queryOf(call).get("section");
        const schema = name === null ? documentJsonSchema() : sectionJsonSchema(name);
        if (schema === undefined) throw unknownSection(String(name));
        return answer(call, schema);
      },
    }),
    endpoint("GET /admin/config/hot-reload-status", {
      id: "getHotReloadStatus",
      role: "viewer",
      summary: "Which settings take effect when, and how the last reload of the file went",
      answers: [versioned(HotReloadStatus, "The status.")],
      handle: (call) => hotReloadStatus(call, parts),
    }),
    endpoint("GET /admin/config/{section...}", {
      id: "getConfigSection",
      role: "viewer",
      summary: "One section, secrets masked",
      parameters: [sectionName, includeSensitive],
      answers: [],
      variants: {
        parameter: "section",
        values: () =>
          eachSection((name) => ({ answers: [versioned(sectionView(name, sectionFacts), "The section.")] })),
      },
      handle: (call) => section(call, parts),
    }),
  ];
}

function summary(call: Call, { store }: ConfigReadParts) {
  const { version, appliedAtMs, pendingRestart = [] } = store.current;
  const view = store.view();
  const { server, backends = [], routing } = view as Pick<Settings, "server" | "routing"> & Partial<Settings>;
  const body = {
    server: {
      bind_address: server.bind_address,
      workers: server.workers,
      connection_pool_size: server.connection_pool_size,
    },
    backends: { count: backends.length, names: backends.map(({ name }) => name) },
    health_checks: view.health_checks,
    rate_limiting: view.rate_limiting,
    circuit_breaker: view.circuit_breaker,
    selection_strategy: routing.selection_strategy,
    hot_reload: { available: true, note: HOT_RELOAD_NOTE },
    version,
    last_modified: toTimestamp(appliedAtMs),
    pending_sections: store.staging.list().map((staged) => staged.section),
    pending_restart: pendingRestart,
    storage_problem: store.storageProblem ?? null,
  };
  return answer(call, body, { version });
}

/** Only who may see secrets may ask for them. */
function readSensitivity(call: Call): boolean {
  const includeSensitive = readFlag(queryOf(call), "include_sensitive", false);
  if (includeSensitive) requireElevated(call);
  return includeSensitive;
}

function section(call: Call<"section">, { store }: ConfigReadParts) {
  const name = call.parameters.section;
  const described = describeSection(name);
  if (described === undefined) throw unknownSection(name);
  const { version } = store.current;
  const view = store.view({ sections: [name], includeSensitive: readSensitivity(call) });
  const { hot_reload_capability, description } = described;
  return answer(
    call,
    { section: name, config: view[name] ?? null, hot_reload_capability, description, version },
    { version },
  );
}

function hotReloadStatus(call: Call, { store, reloadStatus }: ConfigReadParts) {
  const { enabled, path, reloads, failures, lastReloadMs, lastFailure } = reloadStatus();
  const { version, pendingRestart = [] } = store.current;
  const description = enabled
    ? `Changes through the admin API and edits of ${path} take effect without a restart, as listed.`
    : "Changes through the admin API take effect without a restart, as listed. There is no configuration file to follow.";
  const body = {
    enabled: true,
    description,
    capabilities: reloadCapabilities(),
    sections: Object.fromEntries(sectionNames().sections.map((name) => [name, longSpelling(sectionReloadClass(name))])),
    file: enabled && path !== undefined ? { path, reloads, failures } : null,
    last_reload: lastReloadMs === undefined ? null : toTimestamp(lastReloadMs),
    last_error:
      lastFailure === undefined
        ? null
        : { timestamp: toTimestamp(lastFailure.atMs), file: lastFailure.file, problems: lastFailure.problems },
    pending_restart: pendingRestart,
    version,
  };
  return answer(call, body, { version });
}
