// Text completions that are kept and given again.

import { isObject, isPresent, parseObject } from "../../lib/json.ts";
import { joinChunks } from "../joined-chunks.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import { hasFinishedChoices, isStored, isWholeChunkStream, storingNothing, WITHOUT_EFFECT } from "../kept-chunks.ts";
import { eventData } from "../sse.ts";

export const completionsKept: KeptAnswers = {
  withoutEffect: WITHOUT_EFFECT,
  countsWhenAsked: true,
  hasSideEffect: isStored,
  keepingNothing: storingNothing,
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
  const { members, usage, choices, isExact } = joinChunks(eventData(events), "text");
  const isWhole = choices.length > 0 && choices.every(({ fields }) => typeof fields.finish_reason === "string");
  if (!isExact || !isWhole) return undefined;
  const texts = choices.map(({ fields: { index, ...fields }, message, logprobs }) => {
    return { text: message.content ?? "", index, logprobs, ...fields };
  });
  return JSON.stringify({ ...members, choices: texts, ...(usage !== undefined && { usage }) });
}
