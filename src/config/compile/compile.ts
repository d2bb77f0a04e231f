// Document -> settings: environment overrides, expansion, validation. Every change of the configuration passes here.

import { documentJsonSchema, type JsonSchema } from "../schema/schema-export.ts";
import { acceptsType, schemaAt } from "../schema/schema-path.ts";
import { isTopLevelKey, resolveAliases } from "../schema/section-patterns.ts";
import { type ConfigDocument, documentSchema, type Settings } from "../sections/registry.ts";
import { type Environment, expandVariables, hasReference } from "../values/expand.ts";
import { elsewhere, type Problem } from "../values/problems.ts";
import { formatPath, isNestedTooDeeply, type Mapping, mapStrings, type Path } from "../values/values.ts";
import { coerceText } from "./coerce.ts";
import { describeIssues } from "./describe-issues.ts";
import { applyOverrides } from "./environment.ts";

interface Compilation {
  /** With canonical keys, strings as written, without what the environment sets: it must not reach a saved version. */
  document: ConfigDocument;
  /** The validated document: overrides applied, strings expanded. */
  input: Mapping;
  /** Undefined when there are problems. */
  settings: Settings | undefined;
  /** With the defaults in place of these sections; undefined when nothing can be said of any section. */
  settingsWithout(sections: ReadonlySet<string>): Settings | undefined;
  problems: Problem[];
  /** Fields that the environment sets, which win over the document. */
  overrides: readonly { variable: string; path: Path }[];
  /** A problem that a later check found, with the variable that set the value and the keys as they were written. */
  attribute(problem: Problem): Problem;
}

/** `${VARIABLE}` is not expanded in overrides: a secret handed over by the environment is taken literally. */
export function compileDocument(written: Mapping, env: Environment): Compilation {
  const aliases = withCanonicalKeys(written);
  const problems: Problem[] = [...aliases.problems];
  const expanded = expandStrings(aliases.document, env, documentJsonSchema);
  problems.push(...expanded.problems);
  const overridden = applyOverrides(expanded.document, env);
  problems.push(...overridden.problems);

  const parsed = isNestedTooDeeply(overridden.document)
    ? undefined
    : documentSchema.safeParse(overridden.document, { reportInput: false });
  if (parsed === undefined) problems.push({ path: [], message: "is nested too deeply" });

  // A value that failed to expand cannot be valid either; one problem per mistake is enough.
  const issues = parsed?.error ? describeIssues(parsed.error.issues, overridden.document, documentJsonSchema) : [];
  problems.push(...elsewhere(issues, problems).map(withOrigin));

  function withOrigin(problem: Problem): Problem {
    const variable = variableAt(overridden.overrides, problem.path);
    if (variable !== undefined) return { ...problem, variable, overridden: true };
    const sources = expanded.variables.get(formatPath(problem.path));
    if (sources === undefined) return problem;
    return { ...problem, message: `${problem.message} (the value comes from ${sources.join(", ")})` };
  }

  const asWritten = (problem: Problem): Problem => ({ ...problem, path: aliases.writtenPath(problem.path) });
  return {
    document: aliases.document as ConfigDocument,
    input: overridden.document,
    settings: problems.length === 0 ? parsed?.data : undefined,
    settingsWithout(sections) {
      if (parsed === undefined) return undefined;
      const others = Object.entries(overridden.document).filter(([name]) => !sections.has(name));
      return documentSchema.safeParse(Object.fromEntries(others)).data;
    },
    problems: problems.map(asWritten),
    overrides: overridden.overrides,
    attribute: (problem) => asWritten(withOrigin(problem)),
  };
}

/** A section whose every line is commented out reads as null; it means the defaults. Other keys are unknown with any value. */
export function withCanonicalKeys(written: Mapping): ReturnType<typeof resolveAliases> {
  const isLeftOut = (key: string, value: unknown) => value === null && isTopLevelKey(key);
  return resolveAliases(Object.fromEntries(Object.entries(written).filter((entry) => !isLeftOut(...entry))));
}

/** With a schema, text that expands to another type than it allows becomes of that type. */
export function expandStrings(document: Mapping, env: Environment, schema?: () => JsonSchema) {
  const problems: Problem[] = [];
  const variables = new Map<string, string[]>();
  const expanded = mapStrings(document, (text, path) => {
    if (!hasReference(text)) return text;
    const expansion = expandVariables(text, env);
    problems.push(...expansion.problems.map((problem) => ({ path, ...problem })));
    if (expansion.variables.length > 0) variables.set(formatPath(path), expansion.variables);
    const governing = schema && schemaAt(schema(), path);
    // `weight: ${WEIGHT}` is a string only because it had to be written as one.
    if (governing === undefined || acceptsType(governing, "string")) return expansion.text;
    return coerceText(governing, expansion.text);
  });
  return { document: expanded as Mapping, problems, variables };
}

/** The variable that set the value at a path, or the nearest value around it: whole values stand before their parts. */
function variableAt(overrides: Compilation["overrides"], path: Path): string | undefined {
  return overrides.findLast((override) => override.path.every((segment, index) => segment === path[index]))?.variable;
}
