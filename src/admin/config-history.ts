// GET /admin/config/history, one version of it, and POST /admin/config/rollback/{version}.

import { changesBySection, replacedFields } from "../config/change/diff.ts";
import { MAXIMUM_HISTORY_PAGE } from "../config/store/history.ts";
import type { VersionEntry } from "../config/store/versions.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import { messageOf } from "./change-view.ts";
import {
  CONFIGURATION_SCHEMAS,
  ConfigHistory,
  ConfigRolledBack,
  ConfigVersionRecord,
  RollbackRequest,
} from "./config-schemas.ts";
import { adminGroup, answer, authorOf, noteChange, requireSections, toTimestamp, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf, readNumber, toWholeNumber } from "./query.ts";
import { invalidFields, unknownVersion, unwrap } from "./refusals.ts";
import { baseVersionOf } from "./request.ts";

const DEFAULT_PAGE = 20;

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);
const versionNumber = pathParameter("version", "Number of a version.", { type: "integer", minimum: 1 });

export function configHistoryRoutes({ store }: Pick<AdminParts, "store">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/config/history", {
      id: "listConfigVersions",
      role: "viewer",
      summary: "Versions of the configuration, the newest first",
      parameters: [
        queryParameter("limit", "Most versions of a page; a larger number means 100.", {
          type: "integer",
          minimum: 1,
          default: DEFAULT_PAGE,
        }),
        queryParameter("offset", "Versions to pass over.", { type: "integer", minimum: 0, default: 0 }),
        queryParameter("section", "Only versions that changed this section."),
      ],
      answers: [versioned(ConfigHistory, "A page of versions.")],
      errors: [404],
      handle(call) {
        const query = queryOf(call);
        const limit = Math.min(readNumber(query, "limit", 1) ?? DEFAULT_PAGE, MAXIMUM_HISTORY_PAGE);
        const offset = readNumber(query, "offset", 0) ?? 0;
        const section = query.get("section") ?? undefined;
        requireSections(section === undefined ? undefined : [section]);
        const { version: current } = store.current;
        const { entries, total } = store.history.page({ limit, offset, ...(section !== undefined && { section }) });
        const history = entries.map((entry) => versionView(entry, current));
        return answer(call, { history, total_entries: total, current_version: current }, { version: current });
      },
    }),
    endpoint("GET /admin/config/history/{version...}", {
      id: "readConfigVersion",
      role: "viewer",
      summary: "One version, with its whole configuration",
      parameters: [versionNumber],
      answers: [jsonAnswer(ConfigVersionRecord, "The version; secrets are masked.")],
      handle(call) {
        const target = toTarget(call.parameters.version);
        const record = store.history.version(target);
        if (record === undefined) throw unknownVersion(String(target));
        return answer(call, { ...versionView(record, store.current.version), config: record.document });
      },
    }),
    endpoint("POST /admin/config/rollback/{version...}", {
      id: "rollBackConfig",
      role: "admin",
      summary: "Make a new version with the content of an earlier one",
      parameters: [versionNumber],
      body: { schema: RollbackRequest, optional: true, example: { dry_run: true } },
      changes: true,
      answers: [versioned(ConfigRolledBack, "Rolled back, or what would be.")],
      async handle(call, read) {
        const target = toTarget(call.parameters.version);
        const { sections, dry_run: dryRun = false, version } = await read();
        requireSections(sections);
        const done = unwrap(
          await store.history.rollback(target, {
            ...authorOf(call, "rollback", describe(target, sections)),
            dryRun,
            ...(sections !== undefined && { sections: [...new Set(sections)] }),
            baseVersion: baseVersionOf(call, version, store.current.version),
          }),
        );
        noteChange(call, done);
        const where = sections === undefined ? "" : ` in ${sections.join(", ")}`;
        const body = {
          success: true as const,
          message: messageOf(done, `The configuration is that of version ${target} again${where}`, dryRun),
          previous_version: done.previousVersion,
          new_version: dryRun ? null : done.version,
          sections_rolled_back: done.sections,
          changes: changesBySection(done.changes),
          ...(dryRun && { dry_run: true as const, estimated_impact: done.impact }),
          warnings: done.warnings,
        };
        return answer(call, body, { version: done.version });
      },
    }),
  ];
}

function versionView(entry: VersionEntry, current: number) {
  const { version, appliedAtMs, sectionsChanged, source, user, description, changes } = entry;
  return {
    version,
    timestamp: toTimestamp(appliedAtMs),
    sections_changed: sectionsChanged,
    source,
    user: user ?? null,
    description: description ?? null,
    rollback_available: version !== current,
    changes: changesBySection(changes),
    replaced: replacedFields(changes),
  };
}

function toTarget(text: string): number {
  const target = toWholeNumber(text);
  if (target !== undefined) return target;
  // A number that no version can have is no malformed request.
  if (/^\d+$/.test(text)) throw unknownVersion(text.slice(0, 40));
  throw invalidFields([{ field: "version", message: "expected the number of a version, such as 3" }]);
}

function describe(target: number, sections: readonly string[] | undefined): string {
  return `rollback to version ${target}${sections === undefined ? "" : ` of ${sections.join(", ")}`}`.slice(0, 200);
}
