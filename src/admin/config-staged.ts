// /admin/config/staged and POST /admin/config/apply: staged changes, listed, forgotten, or applied as one version.

import { changesBySection } from "../config/change/diff.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { changesOf, messageOf, reloadResults } from "./change-view.ts";
import {
  ApplyRequest,
  CONFIGURATION_SCHEMAS,
  ConfigApplied,
  StagedDiscarded,
  StagedSections,
} from "./config-schemas.ts";
import { adminGroup, answer, authorOf, noteChange, requireSections, toTimestamp, versioned } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./query.ts";
import { unwrap } from "./refusals.ts";
import { baseVersionOf } from "./request.ts";

const endpoint = adminGroup("Configuration", CONFIGURATION_SCHEMAS);

export function configStagedRoutes({ store }: Pick<AdminParts, "store">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/config/staged", {
      id: "listStagedConfig",
      role: "viewer",
      summary: "Staged changes",
      answers: [versioned(StagedSections, "The changes.")],
      handle(call) {
        const { version } = store.current;
        const staged = store.staging
          .list()
          .map(({ section, baseVersion, stagedAtMs, source, user, description, changes, conflict }) => ({
            section,
            base_version: baseVersion,
            timestamp: toTimestamp(stagedAtMs),
            source,
            user: user ?? null,
            description: description ?? null,
            conflict,
            changes: changesOf(changes, section),
          }));
        return answer(call, { staged, total: staged.length, current_version: version }, { version });
      },
    }),
    endpoint("DELETE /admin/config/staged", {
      id: "discardStagedConfig",
      role: "admin",
      summary: "Forget staged changes",
      parameters: [queryParameter("section", "Only those of this section.")],
      answers: [jsonAnswer(StagedDiscarded, "Forgotten.")],
      errors: [404, 503],
      async handle(call) {
        const section = queryOf(call).get("section");
        const sections = section === null ? undefined : [section];
        requireSections(sections);
        const discarded = unwrap(await store.staging.discard(sections));
        const what =
          discarded.length === 0
            ? "There were no staged changes"
            : `Staged changes of ${discarded.join(", ")} are gone`;
        return answer(call, { success: true, message: `${what}.`, discarded_sections: discarded });
      },
    }),
    endpoint("POST /admin/config/apply", {
      id: "applyConfig",
      role: "admin",
      summary: "Apply staged sections as one version",
      body: { schema: ApplyRequest, optional: true, example: {} },
      changes: true,
      answers: [versioned(ConfigApplied, "Applied.")],
      errors: [404],
      async handle(call, read) {
        const { sections, force = false, version, dry_run: isDry = false } = await read();
        requireSections(sections);
        const done = unwrap(
          await store.staging.apply({
            sections: sections && [...new Set(sections)],
            force,
            dryRun: isDry,
            baseVersion: baseVersionOf(call, version, store.current.version),
            ...authorOf(call, "api", "apply staged changes"),
          }),
        );
        noteChange(call, done);
        const applied = Object.keys({ ...done.previous, ...done.current });
        const body = {
          success: true as const,
          message: messageOf(done, `Staged changes of ${applied.join(", ")} were applied`, isDry),
          applied_sections: isDry ? [] : applied,
          results: reloadResults(applied, done),
          version: done.version,
          timestamp: toTimestamp(done.appliedAtMs),
          ...(isDry && { dry_run: true as const, estimated_impact: done.impact }),
          changes: changesBySection(done.changes),
          warnings: done.warnings,
        };
        return answer(call, body, { version: done.version });
      },
    }),
  ];
}
