// PUT and PATCH of sections, and POST validate: changes of the configuration, made at once, staged, or only tried.

import { describeSection, longSpelling } from "../config/change/capability.ts";
import type { SectionChange } from "../config/change/change.ts";
import { sectionJsonSchema } from "../config/schema/schema-export.ts";
import { toFieldProblem } from "../config/values/problems.ts";
import { isMapping } from "../config/values/values.ts";
import { anything } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { eachSection, sectionBody, sectionPatch } from "../openapi/section-schemas.ts";
import type { Call } from "../server/endpoint.ts";
import { changesOf, messageOf, reloadOf } from "./change-view.ts";
import {
  CONFIGURATION_SCHEMAS,
  ConfigValidation,
  SectionChanged,
  sectionName,
  ValidateRequest,
} from "./config-schemas.ts";
import { adminGroup, answer, authorOf, dryRun, noteChange, requireSections, versioned } from "./endpoint.ts";
import { droppedKeyWarnings } from "./key-record.ts";
import type { AdminParts } from "./parts.ts";
import { isDryRun, queryOf, readFlag } from "./query.ts";
import { invalidFields, shortened, toValidationError, unknownSectionProblem, unwrap } from "./refusals.ts";
import { baseVersionOf, bodyIsMissing, readVersion } from "./request.ts";

type ConfigWriteParts = Pick<AdminParts, "store" | "identify">;

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);
const MERGE_PATCH_TYPES = ["application/json", "application/merge-patch+json"];
const applyNow = queryParameter("apply", "false: the change is staged, without a version.", {
  type: "boolean",
  default: true,
});

export function configWriteRoutes(parts: ConfigWriteParts): DescribedEndpoint[] {
  return [
    endpoint("PUT /admin/config/{section...}", {
      id: "replaceConfigSection",
      role: "admin",
      summary: "Replace a section",
      description: "A masked secret that comes back means: unchanged.",
      parameters: [sectionName, applyNow, dryRun],
      body: { schema: anything, isChecked: false },
      variants: {
        parameter: "section",
        values: () => eachSection((name) => ({ body: { schema: sectionBody(name) } })),
      },
      changes: true,
      answers: [versioned(SectionChanged, "Replaced, or staged.")],
      handle: (call, read) => changeSection(call, read, parts, "replace"),
    }),
    endpoint("PATCH /admin/config/{section...}", {
      id: "patchConfigSection",
      role: "admin",
      summary: "Change a section by a JSON merge patch",
      parameters: [sectionName, applyNow, dryRun],
      body: { schema: anything, isChecked: false },
      variants: {
        parameter: "section",
        values: () => eachSection((name) => ({ body: { schema: sectionPatch(name), types: MERGE_PATCH_TYPES } })),
      },
      changes: true,
      answers: [versioned(SectionChanged, "Changed, or staged.")],
      handle: (call, read) => changeSection(call, read, parts, "merge"),
    }),
    endpoint("POST /admin/config/validate", {
      id: "validateConfig",
      role: "admin",
      summary: "Whether a section would be accepted, and what it would change",
      body: {
        schema: ValidateRequest,
        example: { section: "logging", config: { level: "debug" } },
      },
      answers: [jsonAnswer(ConfigValidation, "The result, also for a section that is not valid.")],
      errors: [503],
      async handle(call, read) {
        const { section, config, dry_run = true } = await read();
        if (describeSection(section) === undefined) {
          const { message } = unknownSectionProblem(section);
          const error = toValidationError({ field: "section", message, value: shortened(section) });
          return answer(call, { valid: false, errors: [error], warnings: [] });
        }
        const { elevated } = authorOf(call, "api", "validate");
        const change = { sections: { [section]: config }, mode: "replace" as const, elevated };
        const { valid, problems, warnings, changes, impact } = unwrap(await parts.store.validate(change));
        const { hot_reload_capability } = reloadOf(section, changes, false);
        const estimated_impact = valid ? impact : "None: the configuration is not valid and would be refused.";
        return answer(call, {
          valid,
          errors: problems.map(toFieldProblem).map(toValidationError),
          warnings,
          hot_reload_capability,
          info: { hot_reload_capability: longSpelling(hot_reload_capability), estimated_impact },
          ...(dry_run && valid && { changes: changesOf(changes, section) }),
        });
      },
    }),
  ];
}

async function changeSection(
  call: Call<"section">,
  read: () => Promise<unknown>,
  parts: ConfigWriteParts,
  mode: "replace" | "merge",
) {
  const { store } = parts;
  const name = call.parameters.section;
  requireSections([name]);
  const { value, version } = readSection(name, await read());
  const query = queryOf(call);
  const isDry = isDryRun(query);
  const warnings: string[] = [];
  const change: SectionChange = {
    sections: { [name]: value },
    mode,
    baseVersion: baseVersionOf(call, version, store.current.version),
    dryRun: isDry,
    checked: (before, after) => void warnings.push(...droppedKeyWarnings(before, after, parts.identify)),
    ...authorOf(call, "api", `${mode === "replace" ? "PUT" : "PATCH"} ${name}`),
  };
  if (!readFlag(query, "apply", true)) return await stageSection(call, name, parts, change);

  const done = unwrap(await store.apply(change));
  noteChange(call, done);
  const body = {
    success: true as const,
    message: messageOf(done, `Section '${name}' was ${mode === "replace" ? "replaced" : "changed"}`, isDry),
    section: name,
    version: done.version,
    ...reloadOf(name, done.changes, done.applied),
    applied: done.applied,
    ...(isDry && { dry_run: true as const, estimated_impact: done.impact }),
    warnings: [...done.warnings, ...warnings],
    previous: done.previous[name] ?? null,
    current: done.current[name] ?? null,
    ...(mode === "merge" && { merged_config: done.current[name] ?? null }),
    changes: changesOf(done.changes, name),
  };
  return answer(call, body, { version: done.version });
}

async function stageSection(call: Call, name: string, { store }: ConfigWriteParts, change: SectionChange) {
  const { warnings, changes } = unwrap(await store.staging.stage(change));
  const { version } = store.current;
  const running = store.view({ sections: [name] })[name] ?? null;
  const isDry = change.dryRun === true;
  const body = {
    success: true as const,
    message: isDry
      ? `Nothing was staged: this is a dry run.`
      : `The change of section '${name}' is staged; POST /admin/config/apply applies it.`,
    section: name,
    version,
    ...reloadOf(name, changes, false),
    applied: false,
    staged: !isDry,
    ...(isDry && { dry_run: true as const }),
    pending_sections: store.staging.list().map(({ section }) => section),
    warnings,
    previous: running,
    current: running,
    changes: changesOf(changes, name),
  };
  return answer(call, body, { version });
}

/** The section itself, or wrapped in {config}; with the version that the change was made for, if that is given. */
function readSection(name: string, body: unknown): { value: unknown; version: number | undefined } {
  if (body === undefined) throw bodyIsMissing();
  const keys = isMapping(body) ? Object.keys(body) : [];
  const isWrapped = keys.includes("config") && keys.every((key) => key === "config" || key === "version");
  if (isMapping(body) && isWrapped)
    return { value: requireValue(name, body.config), version: readVersion(body.version) };
  if (isMapping(body) && keys.includes("version") && !mayHaveField(name, "version")) {
    const { version, ...value } = body;
    return { value, version: readVersion(version) };
  }
  return { value: requireValue(name, body), version: undefined };
}

/** In a merge patch null would mean to remove the section, which must not happen by accident. */
function requireValue(name: string, value: unknown): unknown {
  if (typeof value === "object" && value !== null) return value;
  throw invalidFields([{ field: name, message: "expected the section as a JSON object, or a list for backends" }]);
}

function mayHaveField(name: string, field: string): boolean {
  const { properties = {}, additionalProperties } = sectionJsonSchema(name) ?? {};
  return Object.hasOwn(properties, field) || additionalProperties !== false;
}
