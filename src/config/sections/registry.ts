// The ordered list of configuration sections; everything about sections is derived from it.
// A section stands here only when its feature exists.

import { z } from "zod";
import { acpSection } from "./acp.ts";
import { adminSection } from "./admin.ts";
import { admissionSection } from "./admission.ts";
import { apiKeysSection } from "./api-keys.ts";
import { backendsSection } from "./backends.ts";
import { batchesSection } from "./batches.ts";
import { budgetsSection } from "./budgets.ts";
import { circuitBreakerSection } from "./circuit-breaker.ts";
import { deduplicationSection } from "./deduplication.ts";
import { fallbackSection } from "./fallback.ts";
import { filesSection } from "./files.ts";
import { globalPromptsSection } from "./global-prompts.ts";
import { healthChecksSection } from "./health-checks.ts";
import { hooksSection } from "./hooks.ts";
import { kvCacheIndexSection } from "./kv-cache-index.ts";
import { loggingSection } from "./logging.ts";
import { metricsSection } from "./metrics.ts";
import { modelAliasesSection } from "./model-aliases.ts";
import { modelMetadataSection } from "./model-metadata.ts";
import { notificationsSection } from "./notifications.ts";
import { organizationsSection } from "./organizations.ts";
import { rateLimitingSection } from "./rate-limiting.ts";
import { recordingSection } from "./recording.ts";
import { responseCacheSection } from "./response-cache.ts";
import { responsesSection } from "./responses.ts";
import { retrySection } from "./retry.ts";
import { routesSection } from "./routes.ts";
import { routingSection } from "./routing.ts";
import type { SectionDefinition } from "./section.ts";
import { serverSection } from "./server.ts";
import { streamingSection } from "./streaming.ts";
import { telemetrySection } from "./telemetry.ts";
import { timeoutsSection } from "./timeouts.ts";
import { tracingSection } from "./tracing.ts";
import { webSearchSection } from "./web-search.ts";

// A document is validated at the start and when it is changed: compiling code for that costs more than it ever saves.
z.config({ jitless: true });

/** Keys are the top-level keys of the configuration file. */
const sections = {
  server: serverSection,
  backends: backendsSection,
  routes: routesSection,
  routing: routingSection,
  health_checks: healthChecksSection,
  retry: retrySection,
  circuit_breaker: circuitBreakerSection,
  fallback: fallbackSection,
  streaming: streamingSection,
  global_prompts: globalPromptsSection,
  model_aliases: modelAliasesSection,
  model_metadata: modelMetadataSection,
  rate_limiting: rateLimitingSection,
  admission: admissionSection,
  response_cache: responseCacheSection,
  kv_cache_index: kvCacheIndexSection,
  deduplication: deduplicationSection,
  responses: responsesSection,
  timeouts: timeoutsSection,
  api_keys: apiKeysSection,
  budgets: budgetsSection,
  organizations: organizationsSection,
  notifications: notificationsSection,
  hooks: hooksSection,
  files: filesSection,
  batches: batchesSection,
  recording: recordingSection,
  admin: adminSection,
  metrics: metricsSection,
  logging: loggingSection,
  tracing: tracingSection,
  telemetry: telemetrySection,
  web_search: webSearchSection,
  acp: acpSection,
};

export interface SectionSpec extends SectionDefinition {
  name: string;
}

/** Listings use this order. */
export const SECTIONS: readonly SectionSpec[] = Object.entries(sections).map(([name, spec]) => ({ name, ...spec }));

export const SECTION_NAMES: readonly string[] = Object.keys(sections);

type DocumentShape = { [Name in keyof typeof sections]: z.ZodPrefault<(typeof sections)[Name]["schema"]> };

/** The whole configuration document; a section that is left out has its defaults. */
export const documentSchema = z.strictObject(
  Object.fromEntries(
    SECTIONS.map(({ name, schema }) => [name, schema instanceof z.ZodPrefault ? schema : schema.prefault({})]),
  ) as DocumentShape,
);

/** The document as an operator writes it: everything optional, durations as text. */
export type ConfigDocument = z.input<typeof documentSchema>;

/**
 * The document as the program reads it: defaults filled in, durations in milliseconds. Keys keep the operator's
 * spelling, so that a configuration key can be searched for and leads to its use.
 */
export type Settings = z.output<typeof documentSchema>;

export type BackendSettings = Settings["backends"][number];
