// POST /admin/config/export and import: the configuration as text.

import { createHash } from "node:crypto";
import { z } from "zod";
import { sectionNames } from "../config/change/capability.ts";
import { changesBySection } from "../config/change/diff.ts";
import {
  DOCUMENT_FORMATS,
  type DocumentFormat,
  MAXIMUM_IMPORT_BYTES,
  parseDocument,
  serializeDocument,
} from "../config/files/serialize.ts";
import { toFieldProblem } from "../config/values/problems.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { anyOf, ref } from "../openapi/json-schema.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { messageOf, reloadResults } from "./change-view.ts";
import { CONFIGURATION_SCHEMAS } from "./config-schemas.ts";
import {
  adminGroup,
  answer,
  authorOf,
  requireElevated,
  requireSections,
  type StoreOf,
  toTimestamp,
  versioned,
} from "./endpoint.ts";
import { invalidFields, toValidationError, unknownSectionProblem, unwrap } from "./refusals.ts";
import { baseVersionOf } from "./request.ts";

export interface ConfigTransferParts {
  store: StoreOf<"current" | "view" | "apply" | "staging" | "validate">;
  clock: { now(): number; wallTime(): number };
  log: { warn(fields: object, message: string): void };
}

const format = z.enum(DOCUMENT_FORMATS);

const exportRequest = z.strictObject({
  format: format.default("yaml"),
  sections: z.array(z.string()).min(1, "name at least one section, or leave the key out").optional(),
  include_sensitive: z.boolean().default(false),
  include_defaults: z.boolean().default(true),
});

const importRequest = z.strictObject({
  format,
  content: z.string(),
  apply: z.boolean().default(true),
  dry_run: z.boolean().default(false),
  merge: z.boolean().default(false),
  version: z.int().min(0).optional(),
});

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);

export function configTransferRoutes(parts: ConfigTransferParts): DescribedEndpoint[] {
  return [
    endpoint("POST /admin/config/export", {
      id: "exportConfig",
      summary: "The configuration as YAML, JSON or TOML",
      body: { schema: ref("ExportRequest"), fields: exportRequest, optional: true, example: { format: "yaml" } },
      answers: [versioned("ConfigExport", "The text.")],
      errors: [404],
      handle: async (call, read) => await exportConfig(call, await read(), parts),
    }),
    endpoint("POST /admin/config/import", {
      id: "importConfig",
      summary: "Take over a configuration in YAML, JSON or TOML",
      body: {
        schema: ref("ImportRequest"),
        fields: importRequest,
        example: { format: "yaml", content: "logging:\n  level: debug\n", dry_run: true },
      },
      changes: true,
      answers: [
        versioned(anyOf(ref("ImportPreview"), ref("ConfigImported")), "Taken over or staged; or what would be."),
      ],
      errors: [422],
      handle: async (call, read) => await importConfig(call, await read(), parts),
    }),
  ];
}

async function exportConfig(
  call: Call,
  request: z.output<typeof exportRequest>,
  { store, clock, log }: ConfigTransferParts,
): Promise<Response> {
  requireSections(request.sections);
  if (request.include_sensitive) {
    const { name } = requireElevated(call);
    log.warn({ user: name }, "the configuration is exported with its secrets");
  }
  const { version } = store.current;
  const document = store.view({
    sections: request.sections ?? everySection(),
    includeSensitive: request.include_sensitive,
    includeDefaults: request.include_defaults,
  });
  const content = await serializeDocument(document, request.format);
  const body = {
    format: request.format,
    content,
    exported_at: toTimestamp(clock.wallTime()),
    sections_exported: Object.keys(document),
    version,
    checksum: `sha256:${createHash("sha256").update(content).digest("hex")}`,
  };
  return answer(call, body, { version });
}

function everySection(): string[] {
  const { sections, extensions } = sectionNames();
  return [...sections, ...extensions];
}

async function importConfig(
  call: Call,
  request: z.output<typeof importRequest>,
  { store, clock }: ConfigTransferParts,
): Promise<Response> {
  const document = await readContent(request.content, request.format);
  const change = {
    sections: document,
    mode: request.merge ? ("merge" as const) : ("replace" as const),
    baseVersion: baseVersionOf(call, request.version, store.current.version),
    ...authorOf(call, "import", `import of ${request.format}${request.merge ? ", merged" : ""}`),
  };
  if (request.dry_run) return await previewImport(call, store, change);

  const sections = Object.keys(document);
  const shared = { sections_imported: sections, imported_sections: sections, timestamp: toTimestamp(clock.wallTime()) };
  if (!request.apply) {
    const { staged, warnings } = unwrap(await store.staging.stage(change), { invalid: ERRORS.importInvalid });
    const names = staged.map(({ section }) => section);
    const body = {
      success: true,
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
  const body = {
    success: true,
    message: messageOf(done, `${sections.length} sections were imported`, false),
    version: done.version,
    validation: { valid: true, errors: [], warnings: done.warnings },
    hot_reload_results: reloadResults(Object.keys({ ...done.previous, ...done.current }), done),
    applied: done.applied,
    ...shared,
    changes: changesBySection(done.changes),
  };
  return answer(call, body, { version: done.version });
}

async function previewImport(
  call: Call,
  store: ConfigTransferParts["store"],
  change: Parameters<ConfigTransferParts["store"]["apply"]>[0],
): Promise<Response> {
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
    dry_run: true,
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
