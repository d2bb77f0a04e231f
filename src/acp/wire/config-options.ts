// What a person can choose for a session: its mode, its model, and how long the model thinks.

import { MODES, type Mode } from "../../agent/agent.ts";
import { EFFORTS, type Effort } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { OfferedModel } from "../parts.ts";

/** The model thinks as long as it does by itself. */
export const OWN_EFFORT = "default";

const MODE_NAMES: Readonly<Record<Mode, { name: string; description: string }>> = {
  code: { name: "Code", description: "Reads, edits and runs, and asks before it changes something." },
  architect: { name: "Architect", description: "Reads and plans. It changes nothing." },
  ask: { name: "Ask", description: "Answers questions about the project." },
};

const EFFORT_NAMES: Readonly<Record<Effort, string>> = {
  none: "None",
  minimal: "Minimal",
  auto: "Automatic",
  low: "Low",
  medium: "Medium",
  high: "High",
  xhigh: "Very high",
  max: "Maximum",
};

interface Chosen {
  mode: Mode;
  /** Undefined: no model has been there yet. */
  model: string | undefined;
  effort: Effort | undefined;
}

export function isMode(value: unknown): value is Mode {
  return (MODES as readonly unknown[]).includes(value);
}

export function encodeModes(currentModeId: Mode): JsonObject {
  return { currentModeId, availableModes: MODES.map((id) => ({ id, ...MODE_NAMES[id] })) };
}

/** The complete list, which is what every answer and update must have. */
export function encodeConfigOptions({ mode, model, effort }: Chosen, offered: readonly OfferedModel[]): JsonObject[] {
  const modes = MODES.map((value) => ({ value, ...MODE_NAMES[value] }));
  const options: JsonObject[] = [select("mode", "Mode", mode, modes)];
  if (model === undefined) return options;
  options.push(select("model", "Model", model, modelChoices(model, offered)));
  const efforts = effortsOf(model, offered);
  if (efforts.length > 0) {
    const choices = efforts.map((value) => ({ value, name: EFFORT_NAMES[value] }));
    const list = [{ value: OWN_EFFORT, name: "Default" }, ...choices];
    options.push(select("thought_level", "Thinking", effort ?? OWN_EFFORT, list));
  }
  return options;
}

/** From the quickest to the slowest. */
export function effortsOf(model: string, offered: readonly OfferedModel[]): readonly Effort[] {
  const efforts = offered.find(({ id }) => id === model)?.efforts ?? [];
  return EFFORTS.filter((effort) => efforts.includes(effort));
}

/** The session's model is among them in any case: a client shows no value that is not on the list. */
function modelChoices(model: string, offered: readonly OfferedModel[]): JsonObject[] {
  const choices: JsonObject[] = offered.map(({ id, name, description }) =>
    description === undefined ? { value: id, name } : { value: id, name, description },
  );
  return offered.some(({ id }) => id === model) ? choices : [{ value: model, name: model }, ...choices];
}

/** The id of each option is its category. */
function select(category: string, name: string, currentValue: string, options: JsonObject[]): JsonObject {
  return { id: category, name, category, type: "select", currentValue, options };
}
