// What a document would be as the next version: checked as a whole, fenced where it did not come from the file, and
// compared with what runs.

import { fenceProblems } from "../change/api-fence.ts";
import { isWithin } from "../change/capability.ts";
import type { SectionChange } from "../change/change.ts";
import type { LeftOut } from "../change/credentials.ts";
import { diffDocuments, type FieldChange } from "../change/diff.ts";
import type { Draft, DraftBase } from "../change/draft.ts";
import { type DocumentSurroundings, type PreparedDocument, prepareDocument } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { effectWarnings } from "../compile/without-effect.ts";
import { withDefaults } from "../schema/defaults.ts";
import { specOf } from "../schema/section-patterns.ts";
import { resolvePath } from "../values/paths.ts";
import type { Problem, Source } from "../values/problems.ts";
import { isNestedTooDeeply, isSameOrAround, type Mapping, type Path } from "../values/values.ts";
import type { RevokedSecrets } from "./revoked-secrets.ts";
import { leftOutOfRevoked, revokedProblems, withoutRevoked } from "./screen.ts";
import type { Standing } from "./standing.ts";

export interface RunningConfiguration extends DraftBase {
  snapshot: ConfigSnapshot;
}

/** A document, and where it comes from: the file may hold anything, a change through the API stays inside the fence. */
export interface ProposedDocument
  extends Pick<SectionChange, "elevated" | "isImport" | "confirmedVariables">,
    Partial<Pick<Draft, "kept" | "writtenPath" | "leftOut">> {
  document: Mapping;
  sections: readonly string[];
  /** A change that cannot be kept is applied nevertheless: the file itself keeps it. */
  fromFile?: { standing?: Standing };
  /** Fields in which an edit of the file replaces what was changed through the API. */
  replaced?: readonly Path[];
  /** The version whose state is restored. */
  restoredVersion?: number;
  lineOf?: Source["lineOf"];
  /** The fence compares with this, defaults filled in; by default with the running configuration. */
  base?: Mapping;
  /** Further documents whose content may stand in the new one. */
  known?: readonly Mapping[];
}

interface AssessParts extends DocumentSurroundings {
  revoked: RevokedSecrets;
  nowMs: number;
}

/** Every document that did not come from the file passes the fence here, and is screened for revoked secrets. */
export async function assess(given: ProposedDocument, running: RunningConfiguration, surroundings: AssessParts) {
  const screened = screen(given, running, surroundings);
  const candidate = { ...given, document: screened.document };
  const { writtenPath, lineOf } = candidate;
  const prepared = await prepareDocument(candidate.document, {
    ...surroundings,
    baseDir: running.snapshot.baseDir,
    problems:
      candidate.fromFile === undefined
        ? [...screened.problems, ...(await fenced(candidate, running, surroundings.home))]
        : [],
    source: { lineOf },
    ...(writtenPath && { writtenPath }),
  });
  const effective = withDefaults(prepared.document);
  return {
    prepared,
    leftOut: [...(given.leftOut ?? []), ...screened.fields.map(leftOutOfRevoked)],
    problems: [...prepared.problems, ...prepared.crossProblems],
    effective,
    changes: withReplaced(diffDocuments(running.effective, effective), candidate.replaced),
  };
}

interface Screened extends LeftOut {
  problems: Problem[];
}

/** The edit of a file was screened when it was merged. */
function screen(
  candidate: ProposedDocument,
  { document: running }: RunningConfiguration,
  { env, revoked, nowMs }: AssessParts,
): Screened {
  const { document, restoredVersion, isImport = false, fromFile, sections } = candidate;
  const none = { document, fields: [], problems: [] };
  // Too deep for every walk over it; preparing it says so.
  if (fromFile !== undefined || isNestedTooDeeply(document)) return none;
  const parts = { running, revoked, env, nowMs };
  if (restoredVersion === undefined && !isImport) {
    return { ...none, problems: revokedProblems(document, sections, parts) };
  }
  return { ...none, ...withoutRevoked(document, parts, restoredVersion) };
}

/** Changes that replace something say so. */
export function withReplaced(changes: FieldChange[], replaced: readonly Path[] = []): FieldChange[] {
  if (replaced.length === 0) return changes;
  return changes.map((change) =>
    replaced.some((path) => isSameOrAround(path, change.path)) ? { ...change, replaced: true } : change,
  );
}

async function fenced(
  { document, base, known = [], kept = [], elevated = false, confirmedVariables }: ProposedDocument,
  { snapshot, effective }: RunningConfiguration,
  home: string | undefined,
): Promise<Problem[]> {
  // Too deep for every walk over it; preparing it says so.
  if (isNestedTooDeeply(document)) return [];
  const { baseDir, path, settings, overrides } = snapshot;
  const dataDir = resolvePath(settings.server.data_dir, baseDir, home);
  return await fenceProblems(
    {
      olds: [base ?? effective, ...known.map(withDefaults)],
      next: withDefaults(document),
      kept,
      elevated,
      confirmedVariables,
    },
    { baseDir, hasFile: path !== undefined, dataDir, home, overrides },
  );
}

/** Warnings for the author of these changes, or of these section names. */
export function warningsOf(
  changes: readonly FieldChange[],
  { prepared: { compiled, overrides }, leftOut }: { prepared: PreparedDocument; leftOut: readonly string[] },
  named: readonly string[],
): string[] {
  const warnings = [...leftOut];
  for (const { path } of changes) {
    const name = path.join(".");
    const spec = specOf(path[0]);
    const isOneOf = (fields: readonly string[] = []) => fields.some((field) => isWithin(path.slice(1), field));
    if (isOneOf(spec?.restartFields)) warnings.push(`${name} takes effect after a restart`);
  }
  for (const { variable, path } of overrides) {
    const list = path.findIndex((segment) => typeof segment === "number");
    const fixed = list === -1 ? path : path.slice(0, list);
    const isTouched = changes.some((change) => isSameOrAround(fixed, change.path));
    if (isTouched) warnings.push(`${path.join(".")} is set by the environment variable ${variable}, which wins`);
  }
  const touched = [...named, ...changes.map(({ section }) => section)];
  return [...warnings, ...(compiled === undefined ? [] : effectWarnings(compiled.settings, touched))];
}
