// Requests and answers of the admin API for the configuration and prompt files, as JSON Schema.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { done, dryRun, fieldChanges, madeFor, version } from "../openapi/change-schemas.ts";
import {
  anyObject,
  anyOf,
  anything,
  component,
  constant,
  count,
  described,
  flag,
  list,
  mapOf,
  namedShape,
  oneOfTexts,
  orNull,
  ref,
  schemasOf,
  shape,
  strictRequest,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { pathParameter } from "../openapi/operation.ts";
import { SECTION_NAMES, sectionRef } from "../openapi/section-schemas.ts";

/** Names a section in paths. */
export const sectionName = pathParameter("section", "Name of a section.", oneOfTexts(...SECTION_NAMES));

const capability = oneOfTexts("immediate", "gradual", "requires_restart");
/** Members of GET of a section, besides the section. */
export const sectionFacts = { hot_reload_capability: capability, description: text, version };
const longCapability = oneOfTexts("immediate_update", "gradual_update", "requires_restart");
const sectionChanges = described(mapOf(fieldChanges), "By section, and by the path of the field.");
export type SectionChanges = ValueOf<typeof sectionChanges>;
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
const ConfigValidationError = namedShape(
  "ConfigValidationError",
  { field: text, message: text, code: text },
  { value: anything, line: count },
);
const validation = { valid: flag, errors: list(ConfigValidationError), warnings: texts };
const someSections = { ...texts, minItems: 1 };
/** A section as it may be sent to be checked: null would be none. */
const anyValue: JsonSchema = { type: ["object", "array", "string", "number", "boolean"] };

/** Fields that an edit of the file set, and that the API had changed since the file was applied last. */
export const replacedFieldNames = described(
  texts,
  "Fields that the edited file set again, in place of what was changed through the admin API.",
);

const configVersion = {
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

export const ConfigSummary = namedShape("ConfigSummary", {
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
});
export type ConfigSummary = ValueOf<typeof ConfigSummary>;
export const FullConfig = namedShape("FullConfig", {
  config: ref("Config"),
  hot_reload_enabled: flag,
  last_modified: time,
  version,
});
export const ConfigSectionInfo = namedShape("ConfigSectionInfo", {
  name: text,
  description: text,
  hot_reload_capability: capability,
});
export type ConfigSectionInfo = ValueOf<typeof ConfigSectionInfo>;
export const ConfigSections = namedShape("ConfigSections", {
  sections: list(ConfigSectionInfo),
  total: described(count, "Number of sections, without extensions."),
  extensions: described(list(ConfigSectionInfo), "Further sections."),
});
export type ConfigSections = ValueOf<typeof ConfigSections>;
export const ConfigSchema = component("ConfigSchema", described(anyObject, "JSON Schema (draft-07)."));
export const HotReloadStatus = namedShape("HotReloadStatus", {
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
});
export const SectionChanged = namedShape(
  "SectionChanged",
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
);
export const StagedSections = namedShape("StagedSections", {
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
});
export type StagedSections = ValueOf<typeof StagedSections>;
export const StagedDiscarded = namedShape("StagedDiscarded", { ...done, discarded_sections: texts });
export const ValidateRequest = component(
  "ValidateRequest",
  strictRequest({ section: text, config: anyValue }, { dry_run: flag }),
);
export const ConfigValidation = namedShape("ConfigValidation", validation, {
  hot_reload_capability: capability,
  info: shape({ hot_reload_capability: longCapability, estimated_impact: text }),
  changes: fieldChanges,
});
export const ApplyRequest = component(
  "ApplyRequest",
  strictRequest({}, { sections: someSections, force: flag, dry_run: flag, ...madeFor }),
);
export const ConfigApplied = namedShape(
  "ConfigApplied",
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
);
export const ExportRequest = component(
  "ExportRequest",
  strictRequest(
    {},
    {
      format,
      sections: someSections,
      include_sensitive: described(flag, "Needs elevated permission."),
      include_defaults: flag,
    },
  ),
);
export const ConfigExport = namedShape("ConfigExport", {
  format,
  content: text,
  exported_at: time,
  sections_exported: texts,
  version,
  checksum: described(text, "sha256: and hexadecimal digits, of the content."),
});
export type ConfigExport = ValueOf<typeof ConfigExport>;
export const ImportRequest = component(
  "ImportRequest",
  strictRequest(
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
);
export const ImportPreview = namedShape(
  "ImportPreview",
  {
    ...validation,
    dry_run: constant(true),
    changes_preview: sectionChanges,
    sections_affected: texts,
  },
  { estimated_impact: text },
);
export type ImportPreview = ValueOf<typeof ImportPreview>;
export const ConfigImported = namedShape(
  "ConfigImported",
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
);
export type ConfigImported = ValueOf<typeof ConfigImported>;
export const ConfigVersion = namedShape("ConfigVersion", configVersion);
export type ConfigVersion = ValueOf<typeof ConfigVersion>;
export const ConfigHistory = namedShape("ConfigHistory", {
  history: list(ConfigVersion),
  total_entries: count,
  current_version: version,
});
export type ConfigHistory = ValueOf<typeof ConfigHistory>;
export const ConfigVersionRecord = namedShape("ConfigVersionRecord", { ...configVersion, config: anything });
export const RollbackRequest = component(
  "RollbackRequest",
  strictRequest({}, { sections: someSections, dry_run: flag, ...madeFor }),
);
export const ConfigRolledBack = namedShape(
  "ConfigRolledBack",
  {
    ...done,
    previous_version: version,
    new_version: orNull(version),
    sections_rolled_back: texts,
    changes: sectionChanges,
    warnings: texts,
  },
  dryRun,
);
export const PromptFiles = namedShape("PromptFiles", {
  prompts: list(shape({ path: text, size: count, modified_at: time, used_by: texts })),
  total: count,
});
export type PromptFileList = ValueOf<typeof PromptFiles>;
export const PromptFile = namedShape("PromptFile", { path: text, content: text, size: count, modified_at: time });
export type PromptFile = ValueOf<typeof PromptFile>;
export const PromptUpdate = component("PromptUpdate", strictRequest({ content: described(text, "At most 1 MiB.") }));
export const PromptUpdated = namedShape("PromptUpdated", { ...done, path: text });
export const PromptsReloaded = namedShape("PromptsReloaded", { ...done, reloaded: count });

export const CONFIGURATION_SCHEMAS = schemasOf(
  ConfigSummary,
  FullConfig,
  ConfigSections,
  ConfigSectionInfo,
  ConfigSchema,
  HotReloadStatus,
  SectionChanged,
  StagedSections,
  StagedDiscarded,
  ValidateRequest,
  ConfigValidation,
  ConfigValidationError,
  ApplyRequest,
  ConfigApplied,
  ExportRequest,
  ConfigExport,
  ImportRequest,
  ImportPreview,
  ConfigImported,
  ConfigHistory,
  ConfigVersion,
  ConfigVersionRecord,
  RollbackRequest,
  ConfigRolledBack,
  PromptFiles,
  PromptFile,
  PromptUpdate,
  PromptUpdated,
  PromptsReloaded,
);
