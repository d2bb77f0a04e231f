// Why an admin request is refused.

import { sectionNames } from "../config/change/capability.ts";
import type { ChangeError, Result } from "../config/change/change.ts";
import { type FieldProblem, toFieldProblem } from "../config/values/problems.ts";
import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";

/** A body may have thousands of problems; a reader needs the first ones. */
const MAXIMUM_PROBLEMS = 100;

/** Lists the fields in details.validation_errors[{field, error, value?}]. */
export function invalidFields(
  problems: readonly FieldProblem[],
  definition: ErrorDefinition = ERRORS.validation,
): GatewayError {
  const [first] = problems;
  const validation_errors = problems
    .slice(0, MAXIMUM_PROBLEMS)
    .map(({ field, message, value }) => ({ field, error: message, ...(value !== undefined && { value }) }));
  return new GatewayError(definition, first === undefined ? "Not valid." : sentenceOf(first, problems.length - 1), {
    ...(first !== undefined && first.field !== "" && { param: first.field }),
    details: { validation_errors },
  });
}

function sentenceOf(first: FieldProblem, moreCount: number): string {
  const text = describe(first);
  if (moreCount > 0) return `${text} (and ${moreCount} more).`;
  return text.endsWith("?") ? text : `${text}.`;
}

function describe({ field, message }: FieldProblem): string {
  return field === "" ? `The body ${message}` : `${field}: ${message}`;
}

interface RefusalOptions {
  /** The error for a change that is not valid; default 400. */
  invalid?: ErrorDefinition;
  /** The field as the caller knows it. */
  fieldOf?: (field: string) => string;
}

export function toRefusal(
  error: ChangeError,
  { invalid, fieldOf = (field) => field }: RefusalOptions = {},
): GatewayError {
  switch (error.kind) {
    case "validation":
      return invalidFields(
        error.problems.map(toFieldProblem).map((problem) => ({ ...problem, field: fieldOf(problem.field) })),
        invalid,
      );
    case "conflict":
      return conflict(error);
    case "unknown_section":
      if (invalid === undefined) return unknownSection(error.requested);
      return invalidFields([unknownSectionProblem(error.requested)], invalid);
    case "unknown_version":
      return unknownVersion(error.version);
    case "too_large":
      return new GatewayError(
        ERRORS.payloadTooLarge,
        `The configuration would be larger than ${error.limitBytes} bytes.`,
        { details: { limit_bytes: error.limitBytes } },
      );
    case "nothing_staged":
      return new GatewayError(ERRORS.validation, nothingStagedText(error), {
        param: "sections",
        details: { requested_sections: error.requested, pending_sections: error.pending },
      });
    case "storage":
      return new GatewayError(ERRORS.changesUnavailable, `The change could not be kept: ${error.message}.`);
    case "busy":
      return new GatewayError(ERRORS.changesUnavailable, "Too many changes are waiting. Try again in 1 s.", {
        headers: { "Retry-After": "1" },
      });
  }
}

/** The value of a result, or its refusal thrown. */
export function unwrap<Value>(result: Result<Value>, options?: RefusalOptions): Value {
  if (result.ok) return result.value;
  throw toRefusal(result.error, options);
}

function conflict({ expectedVersion, currentVersion, sections }: ChangeError & { kind: "conflict" }): GatewayError {
  const what =
    sections === undefined
      ? `The change was made for version ${expectedVersion} of the configuration`
      : `${sections.join(", ")}: changed by someone else since version ${expectedVersion}`;
  const hint = sections === undefined ? "" : " `force` applies the staged change all the same.";
  return new GatewayError(ERRORS.conflict, `${what}; the current version is ${currentVersion}.${hint}`, {
    details: {
      expected_version: expectedVersion,
      current_version: currentVersion,
      ...(sections !== undefined && { sections }),
    },
  });
}

function nothingStagedText({ requested, pending }: ChangeError & { kind: "nothing_staged" }): string {
  if (pending.length === 0) return "There are no pending changes to apply.";
  const missing = requested.filter((name) => !pending.includes(name));
  return `sections: no change is pending for ${missing.join(", ")}; pending: ${pending.join(", ")}.`;
}

export function unknownSection(requested: string): GatewayError {
  const { sections, extensions } = sectionNames();
  const name = shortened(requested);
  return new GatewayError(ERRORS.routeNotFound, `There is no configuration section '${name}'.`, {
    details: { requested_section: name, available_sections: [...sections, ...extensions] },
  });
}

/** A problem of a section or a document as an answer tells it. */
export function toValidationError(problem: FieldProblem) {
  const { field, message, ...rest } = problem;
  return { field, message, code: "VALIDATION_ERROR", ...rest };
}

/** The same inside an imported document, where it is one of the things that are not valid. */
export function unknownSectionProblem(requested: string): FieldProblem {
  const { sections, extensions } = sectionNames();
  const near = nearest(requested.slice(0, 100), [...sections, ...extensions]);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  return { field: shortened(requested), message: `is no section of the configuration${hint}` };
}

export function unknownVersion(version: number | string): GatewayError {
  return new GatewayError(
    ERRORS.routeNotFound,
    `There is no version ${version} of the configuration; GET /admin/config/history lists those that are kept.`,
    { param: "version", details: { requested_version: version } },
  );
}

/** A name from a client, as far as it is repeated. */
export function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
