// Requests and answers of the admin API for the configuration and prompt files, as JSON Schema.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { done, dryRun, madeFor, version } from "../openapi/change-schemas.ts";
import {
  anyObject,
  anyOf,
  anything,
  count,
  described,
  flag,
  list,
  mapOf,
  oneOfTexts,
  orNull,
  type Properties,
  ref,
  type Schemas,
  shape,
  strictRequest,
  text,
  texts,
  time,
} from "../openapi/json-schema.ts";
import { pathParameter } from "../openapi/operation.ts";
import { SECTION_NAMES, sectionRef } from "../openapi/section-schemas.ts";

/** In paths. */
export const sectionName = pathParameter("section", "Name of a section.", oneOfTexts(...SECTION_NAMES));

const capability = oneOfTexts("immediate", "gradual", "requires_restart");
/** Of GET of a section, besides the section. */
export const sectionFacts: Properties = { hot_reload_capability: capability, description: text, version };
const longCapability = oneOfTexts("immediate_update", "gradual_update", "requires_restart");
const change = shape({ from: anything, to: anything });
const fieldChanges = described(mapOf(change), "By the path of the field.");
const sectionChanges = described(mapOf(fieldChanges), "By section, and by the path of the field.");
const format = oneOfTexts("yaml", "json", "toml");
const reloadItems = shape({ description: text, items: texts });
const reloadResults = described(
  mapOf(
    shape({
      status: oneOfTexts("applied", "unchanged", "valid"),
      hot_reload_type: longCapability,
      hot_reload: capability,
    }),
  ),
  "By section.",
);
const validation: Properties = { valid: flag, errors: list(ref("ConfigValidationError")), warnings: texts };
const someSections: JsonSchema = { ...texts, minItems: 1 };
/** A section as it may be sent to be checked: null would be none. */
const anyValue: JsonSchema = { type: ["object", "array", "string", "number", "boolean"] };

/** Fields that an edit of the file set, and that the API had changed since the file was applied last. */
export const replacedFieldNames = described(
  texts,
  "Fields that the edited file set again, in place of what was changed through the admin API.",
);

const configVersion: Properties = {
  version,
  timestamp: time,
  sections_changed: texts,
  source: text,
  user: orNull(text),
  description: orNull(text),
  rollback_available: flag,
  changes: sectionChanges,
  replaced: replacedFieldNames,
};

export const CONFIGURATION_SCHEMAS: Schemas = {
  ConfigSummary: shape({
    server: shape({ bind_address: anyOf(text, texts), workers: count, connection_pool_size: count }),
    backends: shape({ count, names: texts }),
    health_checks: sectionRef("health_checks"),
    rate_limiting: sectionRef("rate_limiting"),
    circuit_breaker: sectionRef("circuit_breaker"),
    selection_strategy: text,
    hot_reload: shape({ available: flag, note: text }),
    version,
    last_modified: time,
    pending_sections: described(texts, "Sections with staged changes."),
    pending_restart: described(texts, "Changed fields that wait for a restart."),
    storage_problem: described(orNull(text), "Why changes cannot be kept, if that is so."),
  }),
  FullConfig: shape({ config: ref("Config"), hot_reload_enabled: flag, last_modified: time, version }),
  ConfigSections: shape({
    sections: list(ref("ConfigSectionInfo")),
    total: described(count, "Number of sections, without extensions."),
    extensions: described(list(ref("ConfigSectionInfo")), "Further sections."),
  }),
  ConfigSectionInfo: shape({ name: text, description: text, hot_reload_capability: capability }),
  ConfigSchema: described(anyObject, "JSON Schema (draft-07)."),
  HotReloadStatus: shape({
    enabled: flag,
    description: text,
    capabilities: shape({
      immediate_update: reloadItems,
      gradual_update: reloadItems,
      requires_restart: reloadItems,
    }),
    sections: described(mapOf(longCapability), "By section."),
    file: described(
      orNull(shape({ path: text, reloads: count, failures: count })),
      "The configuration file that is followed.",
    ),
    last_reload: orNull(time),
    last_error: orNull(shape({ timestamp: time, file: text, problems: anything })),
    pending_restart: texts,
    version,
  }),
  SectionChanged: shape(
    {
      ...done,
      section: text,
      version,
      hot_reload_capability: capability,
      hot_reload_applied: flag,
      applied: flag,
      warnings: texts,
      previous: anything,
      current: anything,
      changes: fieldChanges,
    },
    { ...dryRun, staged: flag, pending_sections: texts, merged_config: anything },
  ),
  StagedSections: shape({
    staged: list(
      shape({
        section: text,
        base_version: version,
        timestamp: time,
        source: text,
        user: orNull(text),
        description: orNull(text),
        conflict: described(flag, "Someone else has changed the section since."),
        changes: fieldChanges,
      }),
    ),
    total: count,
    current_version: version,
  }),
  StagedDiscarded: shape({ ...done, discarded_sections: texts }),
  ValidateRequest: strictRequest({ section: text, config: anyValue }, { dry_run: flag }),
  ConfigValidation: shape(validation, {
    hot_reload_capability: capability,
    info: shape({ hot_reload_capability: longCapability, estimated_impact: text }),
    changes: fieldChanges,
  }),
  ConfigValidationError: shape({ field: text, message: text, code: text }, { value: anything, line: count }),
  ApplyRequest: strictRequest({}, { sections: someSections, force: flag, dry_run: flag, ...madeFor }),
  ConfigApplied: shape(
    {
      ...done,
      applied_sections: texts,
      results: reloadResults,
      version,
      timestamp: time,
      changes: sectionChanges,
      warnings: texts,
    },
    dryRun,
  ),
  ExportRequest: strictRequest(
    {},
    {
      format,
      sections: someSections,
      include_sensitive: described(flag, "Needs elevated permission."),
      include_defaults: flag,
    },
  ),
  ConfigExport: shape({
    format,
    content: text,
    exported_at: time,
    sections_exported: texts,
    version,
    checksum: described(text, "sha256: and hexadecimal digits, of the content."),
  }),
  ImportRequest: strictRequest(
    { format, content: described(text, "At most 1 MiB.") },
    {
      apply: flag,
      dry_run: flag,
      merge: flag,
      confirm_variables: described(
        { ...list(text), maxItems: 100 },
        "Variables of the environment that the content may name as secrets. Needs elevated permission and credentials in the request itself.",
      ),
      ...madeFor,
    },
  ),
  ImportPreview: shape(
    {
      ...validation,
      dry_run: { const: true },
      changes_preview: sectionChanges,
      sections_affected: texts,
    },
    { estimated_impact: text },
  ),
  ConfigImported: shape(
    {
      ...done,
      version,
      validation: shape(validation),
      sections_imported: texts,
      imported_sections: texts,
      hot_reload_results: reloadResults,
      applied: flag,
      timestamp: time,
    },
    { staged: texts, changes: sectionChanges },
  ),
  ConfigHistory: shape({ history: list(ref("ConfigVersion")), total_entries: count, current_version: version }),
  ConfigVersion: shape(configVersion),
  ConfigVersionRecord: shape({ ...configVersion, config: anything }),
  RollbackRequest: strictRequest({}, { sections: someSections, dry_run: flag, ...madeFor }),
  ConfigRolledBack: shape(
    {
      ...done,
      previous_version: version,
      new_version: orNull(version),
      sections_rolled_back: texts,
      changes: sectionChanges,
      warnings: texts,
    },
    dryRun,
  ),
  PromptFiles: shape({
    prompts: list(shape({ path: text, size: count, modified_at: time, used_by: texts })),
    total: count,
  }),
  PromptFile: shape({ path: text, content: text, size: count, modified_at: time }),
  PromptUpdate: strictRequest({ content: described(text, "At most 1 MiB.") }),
  PromptUpdated: shape({ ...done, path: text }),
  PromptsReloaded: shape({ ...done, reloaded: count }),
};
