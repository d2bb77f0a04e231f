// GET /admin/config/history, one version of it, and POST /admin/config/rollback/{version}.

import { z } from "zod";
import { changesBySection } from "../config/change/diff.ts";
import { MAXIMUM_HISTORY_PAGE } from "../config/store/history.ts";
import type { VersionEntry } from "../config/store/versions.ts";
import type { Call, Endpoint } from "../server/endpoint.ts";
import { isSection, messageOf } from "./config-write.ts";
import { adminRoute, answer, authorOf, requireSections, type StoreOf, toTimestamp } from "./endpoint.ts";
import { invalidFields, unknownSection, unknownVersion, unwrap } from "./refusals.ts";
import { type BodyParts, baseVersionOf, queryOf, readFields, readWholeNumber, toWholeNumber } from "./request.ts";

export interface ConfigHistoryParts extends BodyParts {
  store: StoreOf<"current" | "history">;
}

const DEFAULT_PAGE = 20;

export function configHistoryRoutes(parts: ConfigHistoryParts): Endpoint[] {
  return [
    adminRoute("GET", "/admin/config/history", (call) => history(call, parts), ["limit", "offset", "section"]),
    adminRoute("GET", "/admin/config/history/{version...}", (call) => oneVersion(call, parts)),
    adminRoute("POST", "/admin/config/rollback/{version...}", (call) => rollback(call, parts)),
  ];
}

function history(call: Call, { store }: ConfigHistoryParts): Response {
  const query = queryOf(call);
  const limit = Math.min(readWholeNumber(query, "limit", 1, DEFAULT_PAGE), MAXIMUM_HISTORY_PAGE);
  const offset = readWholeNumber(query, "offset", 0, 0);
  const section = query.get("section") ?? undefined;
  if (section !== undefined && !isSection(section)) throw unknownSection(section);
  const { version: current } = store.current;
  const { entries, total } = store.history.page({ limit, offset, ...(section !== undefined && { section }) });
  const body = {
    history: entries.map((entry) => versionView(entry, current)),
    total_entries: total,
    current_version: current,
  };
  return answer(call, body, { version: current });
}

/** With the whole configuration of that version, secrets masked. */
function oneVersion(call: Call<"version">, { store }: ConfigHistoryParts): Response {
  const target = toTarget(call.parameters.version);
  const record = store.history.version(target);
  if (record === undefined) throw unknownVersion(String(target));
  return answer(call, { ...versionView(record, store.current.version), config: record.document });
}

function versionView(entry: VersionEntry, current: number): object {
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
  };
}

const rollbackRequest = z.strictObject({
  sections: z.array(z.string()).min(1, "name at least one section, or leave the key out").optional(),
  dry_run: z.boolean().default(false),
  version: z.int().min(0).optional(),
});

async function rollback(call: Call<"version">, parts: ConfigHistoryParts): Promise<Response> {
  const { store } = parts;
  const target = toTarget(call.parameters.version);
  const { sections, dry_run: dryRun, version } = await readFields(rollbackRequest, call, parts);
  requireSections(sections, isSection);
  const done = unwrap(
    await store.history.rollback(target, {
      ...authorOf(call, "rollback", describe(target, sections)),
      dryRun,
      ...(sections !== undefined && { sections: [...new Set(sections)] }),
      baseVersion: baseVersionOf(call, version, store.current.version),
    }),
  );
  const what = `The configuration is that of version ${target} again${sections ? ` in ${sections.join(", ")}` : ""}`;
  const body = {
    success: true,
    message: messageOf(done, what, dryRun),
    previous_version: done.previousVersion,
    new_version: dryRun ? null : done.version,
    sections_rolled_back: done.sections,
    changes: changesBySection(done.changes),
    ...(dryRun && { dry_run: true, estimated_impact: done.impact }),
    warnings: done.warnings,
  };
  return answer(call, body, { version: done.version });
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
