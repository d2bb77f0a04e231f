// Going on exactly where a text stopped: which backends do, when they are given it as the beginning of their answer, and
// for which requests.

import type { Backend } from "../backends/backend.ts";
import type { Prefill } from "../backends/kind.ts";
import { formatOf, type Operation, servedBy } from "../backends/operations.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { JsonObject } from "../lib/json.ts";
import { passThrough } from "../protocols/registry.ts";

/** Whether a backend goes on behind the last turn of a request for the operation. */
export function goesOnExactly(backend: Backend, operation: Operation, model: string): boolean {
  const served = servedBy(backend.paths, operation);
  if (served === undefined || prefillMembers(backend.kind, served) === undefined) return false;
  if (served !== operation && passThrough(formatOf(operation)).goesOnAlone) return false;
  return passThrough(formatOf(served)).goesOn?.(model) !== false;
}

/** The members that ask for it. */
export function prefillMembers({ prefill }: { prefill?: Prefill }, operation: Operation): JsonObject | undefined {
  return prefill?.[operation];
}

/** Members with which engines bind an answer to a form of their own. */
const FORMS = [
  "ebnf",
  "grammar",
  "guided_choice",
  "guided_grammar",
  "guided_json",
  "guided_regex",
  "json_schema",
  "regex",
  "structural_tag",
  "structured_outputs",
];

/**
 * Whether the rest of an answer can be had at all. An engine holds only what it writes itself against the form that the
 * client has asked for, and would begin that again behind the text; vLLM's `echo` would repeat the text.
 */
export function canBeContinued({ responseFormat, toolChoice, extensions }: GenerationRequest): boolean {
  if (responseFormat !== undefined && responseFormat.type !== "text") return false;
  if (toolChoice?.type === "required" || toolChoice?.type === "tool") return false;
  if (toolChoice?.type === "allowed" && toolChoice.mode === "required") return false;
  return extensions.echo !== true && !FORMS.some((name) => Object.hasOwn(extensions, name));
}
