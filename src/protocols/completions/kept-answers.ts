// Text completions that are kept and given again.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import {
  hasFinishedChoices,
  isStored,
  isWholeChunkStream,
  joinChunks,
  joinLists,
  WITHOUT_EFFECT,
} from "../kept-chunks.ts";

export const completionsKept: KeptAnswers = {
  withoutEffect: WITHOUT_EFFECT,
  countsWhenAsked: true,
  hasSideEffect: isStored,
  isWhole: hasFinishedChoices,
  isWholeStream: isWholeChunkStream,
  asStream,
  asWhole,
};

/** Of each choice its text whole, then its end; then the usage. */
function asStream(text: string, includeUsage: boolean): string | undefined {
  const answer = parseObject(text);
  if (answer === undefined || !Array.isArray(answer.choices)) return undefined;
  const { choices, usage, ...envelope } = answer;
  let events = "";
  const send = (chunkChoices: unknown[], chunkUsage: unknown) => {
    const chunk = { ...envelope, choices: chunkChoices, ...(includeUsage && { usage: chunkUsage }) };
    events += `data: ${JSON.stringify(chunk)}\n\n`;
  };
  for (const choice of choices as unknown[]) {
    if (!isObject(choice) || typeof choice.text !== "string") return undefined;
    send([{ ...choice, finish_reason: null }], null);
    send([{ ...choice, text: "", logprobs: null }], null);
  }
  if (includeUsage && isPresent(usage)) send([], usage);
  return `${events}data: [DONE]\n\n`;
}

function asWhole(events: string): string | undefined {
  const choices = new Map<number, JsonObject>();
  const joined = joinChunks(events, (choice) => joinChoice(choices, choice));
  if (joined === undefined || choices.size === 0) return undefined;
  const ordered = [...choices.values()].sort((left, right) => Number(left.index) - Number(right.index));
  if (ordered.some(({ finish_reason }) => typeof finish_reason !== "string")) return undefined;
  const { members, usage } = joined;
  return JSON.stringify({ ...members, choices: ordered, ...(usage !== undefined && { usage }) });
}

/** False when it holds something whose joining is not known. */
function joinChoice(choices: Map<number, JsonObject>, piece: unknown): boolean {
  if (!isObject(piece)) return false;
  const { index = 0, text, logprobs, ...rest } = piece;
  if (typeof index !== "number") return false;
  const choice: JsonObject = choices.get(index) ?? { text: "", index, logprobs: null, finish_reason: null };
  choices.set(index, choice);
  if (isPresent(text)) {
    if (typeof text !== "string") return false;
    choice.text = `${choice.text}${text}`;
  }
  if (isPresent(logprobs)) {
    if (!isObject(logprobs)) return false;
    choice.logprobs = joinLists(isObject(choice.logprobs) ? choice.logprobs : {}, logprobs);
    if (choice.logprobs === null) return false;
  }
  for (const [key, value] of Object.entries(rest)) if (isPresent(value)) choice[key] = value;
  return true;
}
