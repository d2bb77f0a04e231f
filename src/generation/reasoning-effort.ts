// Which reasoning effort a backend is sent, given the one that the client asked for.

import { isObject, type JsonObject } from "../lib/json.ts";
import { EFFORTS, type Effort } from "./request.ts";

/** What a kind of backend knows of efforts. */
export interface EffortHabits {
  name: string;
  efforts: ModelEfforts;
  /**
   * The nested form in a chat request: known as such; or its members beside the effort
   * are kept for a router that may stand there. Undefined: the form is not known.
   */
  nestedReasoning?: "known" | "kept";
}

interface EffortTarget {
  kind: EffortHabits;
  /** The model as the backend knows it. */
  model: string;
}

interface NormalisedEffort {
  /** Undefined: the member is left out. */
  effort: Effort | undefined;
  /** Why it is another one than asked for. */
  reason?: string;
}

export function isEffort(value: unknown): value is Effort {
  return (EFFORTS as readonly unknown[]).includes(value);
}

/** Up to which budget an effort is meant. */
const LOW_BUDGET = 4_096;
const MEDIUM_BUDGET = 16_384;

/** For models that have efforts only. */
export function effortOfBudget(budget: number): "low" | "medium" | "high" {
  if (budget <= LOW_BUDGET) return "low";
  return budget <= MEDIUM_BUDGET ? "medium" : "high";
}

/** What a family of models makes of an effort; an effort that is not named stays as it is. */
interface EffortRules {
  /** The family cannot think on demand: no effort is sent at all. */
  unsupported?: true;
  changes: Partial<Record<Effort, Effort>>;
  /** Those that the family has, to choose from; left out: all that stay as they are. Others are for the backend to refuse. */
  levels?: readonly Effort[];
}

/** By the names of models, without namespace; the first match counts. All others are asked for what the client asked. */
type ModelEfforts = readonly (readonly [RegExp, EffortRules])[];

const AS_ASKED: EffortRules = { changes: {} };
const UNSUPPORTED: EffortRules = { unsupported: true, changes: {} };
const OPENAI_REASONING: EffortRules = { changes: { xhigh: "high", max: "high", auto: "medium" } };
const OPENAI_WITH_XHIGH: EffortRules = { changes: { max: "xhigh", auto: "medium" } };
const OPENAI_WITH_MAX: EffortRules = { changes: { auto: "medium" } };
const GEMINI_FLASH: EffortRules = { changes: { xhigh: "high", max: "high", auto: "medium" } };
/** Thinking cannot be switched off; the encoder takes the lowest level that the model has for minimal. */
const GEMINI_OTHER: EffortRules = { changes: { ...GEMINI_FLASH.changes, none: "minimal" } };

const UP_TO_HIGH: readonly Effort[] = ["low", "medium", "high"];
const UP_TO_XHIGH: readonly Effort[] = [...UP_TO_HIGH, "xhigh"];

/** Of models that nothing is known of. */
export const USUAL_EFFORTS: ModelEfforts = [[/^/, { changes: { xhigh: "high", auto: "medium" } }]];

/**
 * From the list of models in the official SDK (openai 7.55, resources/shared ChatModel and AllModels) and the efforts per
 * model in @ai-sdk/openai 4.0.118 (docs/03-openai.mdx, "Request Capabilities"): o-series low to high; gpt-5 and 5.1 up to
 * high; xhigh from 5.2 on and in gpt-5.1-codex-max; max from 5.6 on. gpt-5-chat does not reason, later chat variants do.
 * From the words on `effort` in the SDK (ReasoningEffort): none from 5.1 on, minimal in gpt-5 alone, gpt-5-pro only high.
 * Variants named codex always reason.
 */
export const OPENAI_EFFORTS: ModelEfforts = [
  [/^(?:gpt-[34]|gpt-35|chatgpt-4o|gpt-audio|gpt-realtime|davinci|babbage)/, UNSUPPORTED],
  [/^gpt-5-chat/, UNSUPPORTED],
  [/^gpt-5\.1-codex-max/, { ...OPENAI_WITH_XHIGH, levels: UP_TO_XHIGH }],
  [/^gpt-5(?:\.[01])?-codex/, { ...OPENAI_REASONING, levels: UP_TO_HIGH }],
  [/^gpt-5(?:\.0)?-pro/, { ...OPENAI_REASONING, levels: ["high"] }],
  [/^gpt-5\.1(?:-|$)/, { ...OPENAI_REASONING, levels: ["none", ...UP_TO_HIGH] }],
  [/^gpt-5(?:\.0)?(?:-|$)/, { ...OPENAI_REASONING, levels: ["minimal", ...UP_TO_HIGH] }],
  [/^gpt-5\.[2-5]-codex/, { ...OPENAI_WITH_XHIGH, levels: UP_TO_XHIGH }],
  [/^gpt-5\.[2-5]-pro/, { ...OPENAI_WITH_XHIGH, levels: ["medium", "high", "xhigh"] }],
  [/^gpt-5\.[2-5](?:-|$)/, { ...OPENAI_WITH_XHIGH, levels: ["none", ...UP_TO_XHIGH] }],
  [
    /^gpt-(?:5\.(?:[6-9]|\d\d+)|[6-9]|\d\d+)(?:[.-]|$)/,
    { ...OPENAI_WITH_MAX, levels: ["none", ...UP_TO_XHIGH, "max"] },
  ],
  [/^/, { ...OPENAI_REASONING, levels: UP_TO_HIGH }],
];

/** Gemini thinks from 2.5 on (ai.google.dev/gemini-api/docs/thinking). */
export const GEMINI_EFFORTS: ModelEfforts = [
  [/^gemini-(?:1\.|2\.0)/, UNSUPPORTED],
  [/flash/, GEMINI_FLASH],
  [/^/, GEMINI_OTHER],
];

/** "ft:gpt-4o:team::id" and "openai/gpt-4o" are gpt-4o. */
function baseName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1).replace(/^ft:/, "");
}

function rulesFor({ kind, model }: EffortTarget): EffortRules {
  const name = baseName(model);
  return kind.efforts.find(([pattern]) => pattern.test(name))?.[1] ?? AS_ASKED;
}

function supportsReasoning(target: EffortTarget): boolean {
  return rulesFor(target).unsupported !== true;
}

export function normaliseEffort(effort: Effort, target: EffortTarget): NormalisedEffort {
  const rules = rulesFor(target);
  if (rules.unsupported) return { effort: undefined, reason: `${target.model} does not reason` };
  const changed = rules.changes[effort];
  if (changed === undefined) return { effort };
  return {
    effort: changed,
    reason: `${target.model} on a backend of type ${target.kind.name} does not know ${effort}`,
  };
}

/** The efforts to choose from, in the order of how long they take. Nothing chosen means auto. */
export function effortLevels(target: EffortTarget): Effort[] {
  const { unsupported, changes, levels = EFFORTS } = rulesFor(target);
  if (unsupported) return [];
  return EFFORTS.filter((effort) => effort !== "auto" && levels.includes(effort) && changes[effort] === undefined);
}

/** The members beside the effort that routers in front of many vendors know. */
const OTHER_MEMBERS = ["enabled", "max_tokens", "exclude", "summary"] as const;

/**
 * The top-level members of a chat body that goes on as it is which must be other ones; undefined: none. A member whose
 * value is undefined is to be removed. Values that no format knows are left for the backend to refuse.
 */
export function chatEffort(body: JsonObject, target: EffortTarget): JsonObject | undefined {
  const { reasoning_effort: flat, reasoning } = body;
  if (flat === undefined && reasoning === undefined) return undefined;
  const changes: JsonObject = {};
  if (isEffort(flat)) {
    const { effort } = normaliseEffort(flat, target);
    if (effort !== flat) changes.reasoning_effort = effort;
  }
  if (target.kind.nestedReasoning === "known") Object.assign(changes, nestedEffort(body, target));
  else if (reasoning !== undefined) {
    const asked = isObject(reasoning) ? reasoning.effort : undefined;
    const kept = keptReasoning(body, target);
    if (kept === undefined || asked !== undefined) changes.reasoning = kept;
    if ((flat === undefined || flat === null) && asked !== undefined && asked !== null) {
      const effort = isEffort(asked) ? normaliseEffort(asked, target).effort : asked;
      if (effort !== undefined) changes.reasoning_effort = effort;
    }
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** What chatEffort takes out of a chat body besides the effort, in the client's words. */
export function lostReasoning({ reasoning }: JsonObject, target: EffortTarget): string[] {
  if (!isObject(reasoning) || keepsNested(target)) return [];
  return OTHER_MEMBERS.filter((member) => reasoning[member] !== undefined && reasoning[member] !== null).map(
    (member) => `reasoning.${member}`,
  );
}

/** The members beside the effort that stay in the body of a chat client's request; undefined: none. */
export function keptReasoning({ reasoning }: JsonObject, target: EffortTarget): JsonObject | undefined {
  if (!isObject(reasoning) || !keepsNested(target)) return undefined;
  const { effort: _, ...others } = reasoning;
  return Object.keys(others).length === 0 ? undefined : others;
}

function keepsNested(target: EffortTarget): boolean {
  return target.kind.nestedReasoning !== undefined && supportsReasoning(target);
}

/** The same for a format that has the effort among other members of `reasoning`. */
export function nestedEffort({ reasoning }: JsonObject, target: EffortTarget): JsonObject | undefined {
  if (!isObject(reasoning)) return undefined;
  if (!supportsReasoning(target)) return { reasoning: undefined };
  const { effort: asked } = reasoning;
  if (!isEffort(asked)) return undefined;
  const { effort } = normaliseEffort(asked, target);
  return effort === asked ? undefined : { reasoning: { ...reasoning, effort } };
}
