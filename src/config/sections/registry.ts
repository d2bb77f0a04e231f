// The ordered list of configuration sections; everything about sections is derived from it.
// A section stands here only when its feature exists.

import { z } from "zod";
import { adminSection } from "./admin.ts";
import { apiKeysSection } from "./api-keys.ts";
import { backendsSection } from "./backends.ts";
import { circuitBreakerSection } from "./circuit-breaker.ts";
import { deduplicationSection } from "./deduplication.ts";
import { fallbackSection } from "./fallback.ts";
import { filesSection } from "./files.ts";
import { globalPromptsSection } from "./global-prompts.ts";
import { healthChecksSection } from "./health-checks.ts";
import { loggingSection } from "./logging.ts";
import { metricsSection } from "./metrics.ts";
import { modelAliasesSection } from "./model-aliases.ts";
import { modelMetadataSection } from "./model-metadata.ts";
import { rateLimitingSection } from "./rate-limiting.ts";
import { responseCacheSection } from "./response-cache.ts";
import { responsesSection } from "./responses.ts";
import { retrySection } from "./retry.ts";
import { routingSection } from "./routing.ts";
import { serverSection } from "./server.ts";
import { streamingSection } from "./streaming.ts";
import { timeoutsSection } from "./timeouts.ts";
import { tracingSection } from "./tracing.ts";
import { webSearchSection } from "./web-search.ts";

export const SECTIONS = [
  serverSection,
  backendsSection,
  routingSection,
  healthChecksSection,
  retrySection,
  circuitBreakerSection,
  fallbackSection,
  streamingSection,
  globalPromptsSection,
  modelAliasesSection,
  modelMetadataSection,
  rateLimitingSection,
  responseCacheSection,
  deduplicationSection,
  responsesSection,
  timeoutsSection,
  apiKeysSection,
  filesSection,
  adminSection,
  metricsSection,
  loggingSection,
  tracingSection,
  webSearchSection,
] as const;

/** The whole configuration document. */
export const documentSchema = z.strictObject({
  server: serverSection.schema.prefault({}),
  backends: backendsSection.schema,
  routing: routingSection.schema.prefault({}),
  health_checks: healthChecksSection.schema.prefault({}),
  retry: retrySection.schema.prefault({}),
  circuit_breaker: circuitBreakerSection.schema.prefault({}),
  fallback: fallbackSection.schema.prefault({}),
  streaming: streamingSection.schema.prefault({}),
  global_prompts: globalPromptsSection.schema.prefault({}),
  model_aliases: modelAliasesSection.schema.prefault({}),
  model_metadata: modelMetadataSection.schema.prefault({}),
  rate_limiting: rateLimitingSection.schema.prefault({}),
  response_cache: responseCacheSection.schema.prefault({}),
  deduplication: deduplicationSection.schema.prefault({}),
  responses: responsesSection.schema.prefault({}),
  timeouts: timeoutsSection.schema.prefault({}),
  api_keys: apiKeysSection.schema.prefault({}),
  files: filesSection.schema.prefault({}),
  admin: adminSection.schema.prefault({}),
  metrics: metricsSection.schema.prefault({}),
  logging: loggingSection.schema.prefault({}),
  tracing: tracingSection.schema.prefault({}),
  web_search: webSearchSection.schema.prefault({}),
});

/** The document as an operator writes it: everything optional, durations as text. */
export type ConfigDocument = z.input<typeof documentSchema>;

/**
 * The document as the program reads it: defaults filled in, durations in milliseconds. Keys keep the operator's
 * spelling, so that a configuration key can be searched for and leads to its use.
 */
export type Settings = z.output<typeof documentSchema>;

export type BackendSettings = Settings["backends"][number];
