// Problems of a document as the admin API tells them.

import type { JsonSchema } from "../schema/schema-export.ts";
import { schemaAt } from "../schema/schema-path.ts";
import { holdsSecrets, isSecret, isUrl } from "../schema/section-patterns.ts";
import type { ConfigProblem, PathProblem } from "../values/problems.ts";
import { formatPath, type Mapping, type Path, valueAt } from "../values/values.ts";
import type { ValidationError } from "./change.ts";

export interface ValidationContext {
  document: Mapping;
  schema: JsonSchema;
  /** A path with the keys as the caller wrote them. */
  writtenPath?: ((path: Path) => Path) | undefined;
  /** In the configuration file. */
  lineOf?: ((path: Path) => number | undefined) | undefined;
}

/** With the value as written, where it can be shown, and the place as it was written. */
export function locateValidationError(problem: PathProblem, context: ValidationContext): ValidationError {
  const { document, schema, writtenPath = (path) => path, lineOf } = context;
  const path = writtenPath(problem.path);
  const value = shownValue(problem.path, document, schema);
  const line = problem.overridden ? undefined : lineOf?.(path);
  const { variable, message } = problem;
  const isNamed = variable === undefined || message.includes(variable);
  return {
    ...toValidationError({ path, message: isNamed ? message : `${message} (set by the variable ${variable})` }),
    ...(value !== undefined && { value }),
    ...(line !== undefined && { line }),
  };
}

export function toValidationError({ path, message }: PathProblem): ValidationError {
  return { field: formatPath(path), message, code: "VALIDATION_ERROR" };
}

/** A problem inside the file that api_keys.api_keys_file names. */
export function toIncludedFileError({ path, message, file, line }: ConfigProblem): ValidationError {
  const place = [file, line, path].filter((part) => part !== undefined && part !== "").join(":");
  return { field: "api_keys.api_keys_file", message: `${place}: ${message}`, code: "VALIDATION_ERROR" };
}

const MAXIMUM_SHOWN_LENGTH = 200;

/** Only plain values at keys that the schema knows: what stands in a wrong place may be a secret. */
function shownValue(path: Path, document: Mapping, schema: JsonSchema): unknown {
  const value = valueAt(document, path);
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined;
  if (path.length < 2 || schemaAt(schema, path) === undefined) return undefined;
  if (isSecret(path) || isUrl(path)) return undefined;
  // Text beside a secret, or in place of what holds one, could be the secret in the wrong line.
  if (typeof value === "string" && (holdsSecrets(path.slice(0, -1)) || holdsSecrets(path))) return undefined;
  return typeof value === "string" && value.length > MAXIMUM_SHOWN_LENGTH ? undefined : value;
}
