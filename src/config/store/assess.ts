// What a document would be as the next version: checked as a whole, fenced where it did not come from the file, and
// compared with what runs.

import { fenceProblems } from "../change/api-fence.ts";
import { diffDocuments, type FieldChange } from "../change/diff.ts";
import { type Prepared, prepareDocument, type Surroundings } from "../compile/prepare.ts";
import { effectWarnings } from "../compile/without-effect.ts";
import { withDefaults } from "../schema/defaults.ts";
import { resolvePath } from "../values/paths.ts";
import type { Problem } from "../values/problems.ts";
import { isNestedTooDeeply } from "../values/values.ts";
import type { Assessment, Candidate, Running } from "./inside.ts";
import { warningsOfChanges } from "./publish.ts";

/** Every document that did not come from the file passes the fence here. */
export async function assess(candidate: Candidate, running: Running, surroundings: Surroundings): Promise<Assessment> {
  const { document, writtenPath, lineOf } = candidate;
  const prepared = await prepareDocument(document, {
    ...surroundings,
    baseDir: running.snapshot.baseDir,
    problems: candidate.fromFile === undefined ? await fenced(candidate, running, surroundings.home) : [],
    source: { lineOf },
    ...(writtenPath && { writtenPath }),
  });
  const effective = withDefaults(prepared.document);
  return {
    prepared,
    problems: [...prepared.problems, ...prepared.crossProblems],
    effective,
    changes: diffDocuments(running.effective, effective),
  };
}

async function fenced(
  { document, base, known = [], kept = [], elevated = false }: Candidate,
  { snapshot, effective }: Running,
  home: string | undefined,
): Promise<Problem[]> {
  // Too deep for every walk over it; preparing it says so.
  if (isNestedTooDeeply(document)) return [];
  const { baseDir, path, settings, overrides } = snapshot;
  const dataDir = resolvePath(settings.server.data_dir, baseDir, home);
  return await fenceProblems(
    { base: base ?? effective, known: known.map(withDefaults), next: withDefaults(document), kept, elevated },
    { baseDir, hasFile: path !== undefined, dataDir, home, overrides },
  );
}

/** What whoever makes these changes, or names these sections, should know. */
export function warningsOf(
  changes: readonly FieldChange[],
  { compiled, overrides }: Prepared,
  named: readonly string[],
): string[] {
  const touched = [...named, ...changes.map(({ section }) => section)];
  return [
    ...warningsOfChanges(changes, overrides),
    ...(compiled === undefined ? [] : effectWarnings(compiled.settings, touched)),
  ];
}
