// What backends and operators say of what a model takes besides text, in the shapes in which they say it.

import { type Intake, MEDIA, type Medium } from "../generation/intake.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

/**
 * Of an entry of a model list: `input_modalities`, alone or in `architecture` (llama.cpp, OpenRouter, xAI), else
 * `capabilities` with a member for each (Mistral, LM Studio), `inputModalities` in capitals (Bedrock). Undefined: it says nothing.
 */
export function intakeInList(entry: JsonObject): Intake | undefined {
  const { architecture, input_modalities, capabilities, inputModalities } = entry;
  if (Array.isArray(inputModalities)) return intakeOf((medium) => inputModalities.includes(medium.toUpperCase()));
  const named = isObject(architecture) ? architecture.input_modalities : input_modalities;
  if (Array.isArray(named) && named.length > 0) return intakeOf((medium) => named.includes(medium));
  return isObject(capabilities) ? intakeOfFlags(capabilities) : undefined;
}

/** Reads an answer of llama.cpp's /props. */
export function intakeInProps(answer: unknown): Intake | undefined {
  return isObject(answer) && isObject(answer.modalities) ? intakeOfFlags(answer.modalities) : undefined;
}

/** Of Ollama's /api/show. Versions before 0.6.4 have no capabilities. */
export function intakeInShow(answer: unknown): Intake | undefined {
  if (!isObject(answer) || !Array.isArray(answer.capabilities)) return undefined;
  return intakeOfCapabilities(answer.capabilities);
}

/** Reads a list of everything that a model can do. */
export function intakeOfCapabilities(capabilities: readonly unknown[]): Intake {
  return intakeOf((medium) => capabilities.includes(medium === "image" ? "vision" : medium));
}

function intakeOf(takes: (medium: Medium) => boolean): Intake {
  return Object.fromEntries(MEDIA.map((medium) => [medium, takes(medium)]));
}

function intakeOfFlags(flags: JsonObject): Intake | undefined {
  const known = MEDIA.flatMap((medium) => {
    const takes = flags[medium === "image" ? "vision" : medium];
    return typeof takes === "boolean" ? [[medium, takes] as const] : [];
  });
  return known.length === 0 ? undefined : Object.fromEntries(known);
}
