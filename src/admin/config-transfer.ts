// POST /admin/config/export and import: the configuration as text.

import { sectionNames } from "../config/change/capability.ts";
import type { SectionChange } from "../config/change/change.ts";
import { changesBySection } from "../config/change/diff.ts";
import {
  type DocumentFormat,
  MAXIMUM_IMPORT_BYTES,
  parseDocument,
  serializeDocument,
} from "../config/files/serialize.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { toFieldProblem } from "../config/values/problems.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { anyOf } from "../openapi/json-schema.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import { type Call, maySeeSecrets } from "../server/endpoint.ts";
import { messageOf, reloadResults } from "./change-view.ts";
import {
  CONFIGURATION_SCHEMAS,
  ConfigExport,
  ConfigImported,
  ExportRequest,
  ImportPreview,
  ImportRequest,
} from "./config-schemas.ts";
import {
  adminGroup,
  answer,
  authorOf,
  noteChange,
  requireElevated,
  requireSections,
  toTimestamp,
  versioned,
} from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { invalidFields, toValidationError, unknownSectionProblem, unwrap } from "./refusals.ts";
import { baseVersionOf } from "./request.ts";

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);

export function configTransferRoutes({
  store,
  clock,
  log,
}: Pick<AdminParts, "store" | "clock" | "log">): DescribedEndpoint[] {
  return [
    endpoint("POST /admin/config/export", {
      id: "exportConfig",
      role: "viewer",
      summary: "The configuration as YAML, JSON or TOML",
      body: { schema: ExportRequest, optional: true, example: { format: "yaml" } },
      answers: [versioned(ConfigExport, "The text.")],
      errors: [404],
      async handle(call, read) {
        const {
          format = "yaml",
          sections,
          include_sensitive: includeSensitive = false,
          include_defaults: includeDefaults = true,
        } = await read();
        requireSections(sections);
        if (includeSensitive) {
          const { name } = requireElevated(call);
          log.warn({ user: name }, "the configuration is exported with its secrets");
        }
        const { version } = store.current;
        const document = store.view({ sections: sections ?? everySection(), includeSensitive, includeDefaults });
        const content = await serializeDocument(document, format);
        const body = {
          format,
          content,
          exported_at: toTimestamp(clock.wallTime()),
          sections_exported: Object.keys(document),
          version,
          checksum: `sha256:${new Bun.CryptoHasher("sha256").update(content).digest("hex")}`,
        };
        return answer(call, body, { version });
      },
    }),
    endpoint("POST /admin/config/import", {
      id: "importConfig",
      role: "admin",
      summary: "Take over a configuration in YAML, JSON or TOML",
      body: {
        schema: ImportRequest,
        example: { format: "yaml", content: "logging:\n  level: debug\n", dry_run: true },
      },
      changes: true,
      answers: [versioned(anyOf(ImportPreview, ConfigImported), "Taken over or staged; or what would be.")],
      errors: [422],
      async handle(call, read) {
        const wanted = await read();
        const { format, content, version, merge = false, apply = true, dry_run = false } = wanted;
        const { confirm_variables: confirmedVariables = [] } = wanted;
        if (confirmedVariables.length > 0) mayConfirm(call, apply, confirmedVariables);
        const document = await readContent(content, format);
        const change: SectionChange = {
          sections: document,
          mode: merge ? "merge" : "replace",
          isImport: true,
          confirmedVariables,
          baseVersion: baseVersionOf(call, version, store.current.version),
          ...authorOf(call, "import", `import of ${format}${merge ? ", merged" : ""}`),
        };
        if (dry_run) return await previewImport(call, store, change);

        const sections = Object.keys(document);
        const timestamp = toTimestamp(clock.wallTime());
        const shared = { sections_imported: sections, imported_sections: sections, timestamp };
        if (!apply) {
          const { staged, warnings } = unwrap(await store.staging.stage(change), { invalid: ERRORS.importInvalid });
          const names = staged.map(({ section }) => section);
          const body = {
            success: true as const,
            message: `${names.join(", ")}: staged; POST /admin/config/apply applies them.`,
            version: store.current.version,
            validation: { valid: true, errors: [], warnings },
            hot_reload_results: {},
            applied: false,
            staged: names,
            ...shared,
          };
          return answer(call, body, { version: store.current.version });
        }
        const done = unwrap(await store.apply(change), { invalid: ERRORS.importInvalid });
        noteChange(call, done);
        const body = {
          success: true as const,
          message: messageOf(
            done,
            sections.length === 1 ? "1 section was imported" : `${sections.length} sections were imported`,
            false,
          ),
          version: done.version,
          validation: { valid: true, errors: [], warnings: done.warnings },
          hot_reload_results: reloadResults(Object.keys({ ...done.previous, ...done.current }), done),
          applied: done.applied,
          ...shared,
          changes: changesBySection(done.changes),
        };
        return answer(call, body, { version: done.version });
      },
    }),
  ];

  /** Throws 400 and 403. A page that rides on the sign-in of a browser confirms nothing. */
  function mayConfirm({ administrator }: Call, apply: boolean, variables: readonly string[]): void {
    const param = "confirm_variables";
    if (!apply)
      throw new GatewayError(ERRORS.invalidRequest, "confirm_variables belongs to an import that is applied at once.", {
        param,
      });
    if (administrator === undefined || !maySeeSecrets(administrator) || administrator.session !== undefined) {
      const message =
        "confirm_variables needs credentials in the request itself (admin.auth.method): not the method none, nor the sign-in of a browser.";
      throw new GatewayError(ERRORS.forbidden, message, { param });
    }
    log.warn({ user: administrator.name, variables }, "an import may name variables of the environment");
  }
}

function everySection(): string[] {
  const { sections, extensions } = sectionNames();
  return [...sections, ...extensions];
}

async function previewImport(call: Call, store: ConfigStore, change: SectionChange) {
  const { version } = store.current;
  // The same refusals as without the dry run, but problems of the content are the answer.
  const result = await store.validate(change);
  if (!result.ok && result.error.kind === "unknown_section") {
    const errors = [toValidationError(unknownSectionProblem(result.error.requested))];
    return answer(
      call,
      { valid: false, dry_run: true, changes_preview: {}, sections_affected: [], errors, warnings: [] },
      { version },
    );
  }
  const found = unwrap(result);
  const body = {
    valid: found.valid,
    dry_run: true as const,
    changes_preview: changesBySection(found.changes),
    sections_affected: [...new Set(found.changes.map(({ section }) => section))],
    errors: found.problems.map(toFieldProblem).map(toValidationError),
    warnings: found.warnings,
    ...(found.valid && { estimated_impact: found.impact }),
  };
  return answer(call, body, { version });
}

async function readContent(content: string, as: DocumentFormat): Promise<Mapping> {
  const parsed = await parseDocument(content, as);
  if (!parsed.ok) {
    if (parsed.tooLarge) {
      const message = `content: larger than the ${MAXIMUM_IMPORT_BYTES} bytes that an import may have.`;
      const details = { limit_bytes: MAXIMUM_IMPORT_BYTES };
      throw new GatewayError(ERRORS.payloadTooLarge, message, { param: "content", details });
    }
    throw invalidFields(
      parsed.problems.map(({ line, message }) => ({
        field: "content",
        message: line === undefined ? message : `line ${line}: ${message}`,
      })),
    );
  }
  if (Object.keys(parsed.document).length === 0) {
    throw invalidFields([{ field: "content", message: "has no section" }]);
  }
  return parsed.document;
}
