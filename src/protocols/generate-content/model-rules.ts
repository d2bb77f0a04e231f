// What a model takes, read from its name: Google says it in its documentation only, not in the list of models.

/** "models/gemini-3-pro" and "google/gemini-3-pro" are gemini-3-pro. */
export function baseName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1).toLowerCase();
}

export interface ModelRules {
  /**
   * What becomes of thought signatures: "required" on the calls of the current turn, "optional", or "none" for models
   * that do not know them.
   */
  signatures: "required" | "optional" | "none";
  /** Images and documents may stand inside of a functionResponse. */
  mediaInResults: boolean;
  /** JSON as the form of the answer can be asked for. */
  jsonFormat: boolean;
  /** Declared functions may stand beside a form of the answer, and beside the web search. */
  mixesTools: boolean;
  /** Calls that follow the schema can be had without forcing a call (mode VALIDATED). */
  validatedCalls: boolean;
  /** There is a place for instructions of their own. */
  systemInstruction: boolean;
}

const CURRENT: ModelRules = {
  signatures: "required",
  mediaInResults: true,
  jsonFormat: true,
  mixesTools: true,
  validatedCalls: true,
  systemInstruction: true,
};
const SECOND: ModelRules = { ...CURRENT, signatures: "optional", mediaInResults: false, mixesTools: false };
const OLD: ModelRules = { ...SECOND, signatures: "none", validatedCalls: false };
const GEMMA: ModelRules = { ...OLD, jsonFormat: false, systemInstruction: false };

/** First match counts. */
const FAMILIES: readonly (readonly [RegExp, ModelRules])[] = [
  [/^gemma/, GEMMA],
  [/^gemini-(?:1\.|2\.0)/, OLD],
  [/^gemini-2\.5/, SECOND],
  [/^gemini-robotics-er-1\.5/, SECOND],
  // gemini-flash-latest and its like follow the newest generation.
  [/^gemini-(?:[3-9]|\d\d|(?:pro|flash|flash-lite)-latest)/, CURRENT],
];

/** Models of unknown name get what every one of them takes. */
const UNKNOWN = SECOND;

export function rulesOf(model: string): ModelRules {
  const name = baseName(model);
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? UNKNOWN;
}
