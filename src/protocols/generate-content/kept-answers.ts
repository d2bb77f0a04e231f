// generateContent answers that are kept and given again.

import { isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import { nonEmptyText, objectOf, objectsOf } from "../reading.ts";
import { eventData } from "../sse.ts";
import { hasError } from "./errors.ts";
import { camelCase, either, generationConfigOf, objectsIn } from "./members.ts";
import { joinAnswers, wholeAsEvent } from "./whole-as-event.ts";

/** Functions that the client runs itself: to offer them does nothing. */
const CLIENTS_OWN: ReadonlySet<string> = new Set(["functionDeclarations", "computerUse"]);

/** What the vendor only looks up for the model, and may find changed the next time. */
const LOOKS_UP: ReadonlySet<string> = new Set([
  ...["googleSearch", "googleSearchRetrieval", "urlContext", "googleMaps", "fileSearch"],
]);

/** Parts that do nothing but say something, or ask the client to do it. */
const SAID = ["text", "functionCall", "inlineData"] as const;

const ENDINGS: ReadonlySet<unknown> = new Set(["STOP", "MAX_TOKENS"]);

export const contentKept: KeptAnswers = {
  withoutEffect: new Set(["labels"]),
  temperatureOf: (body) => generationConfigOf(body).temperature,
  hasSideEffect: (body) =>
    body.store === true || toolsOf(body).some((name) => !CLIENTS_OWN.has(name) && !LOOKS_UP.has(name)),
  dependsOnMore: (body) =>
    nonEmptyText(either(body, "cachedContent", "cached_content")) !== undefined ||
    toolsOf(body).some((name) => LOOKS_UP.has(name)),
  isWhole,
  isWholeStream(text) {
    const answer = joinAnswers(eventData(text));
    return answer !== undefined && isWhole(answer);
  },
  asStream(text) {
    const answer = parseObject(text);
    return answer !== undefined && isWhole(answer) ? wholeAsEvent(text) : undefined;
  },
  asWhole(events) {
    const answer = joinAnswers(eventData(events));
    return answer && JSON.stringify(answer);
  },
};

function toolsOf({ tools }: JsonObject): string[] {
  return objectsIn(tools).flatMap((tool) =>
    Object.keys(tool)
      .filter((name) => isPresent(tool[name]))
      .map(camelCase),
  );
}

function isWhole(answer: JsonObject): boolean {
  const candidates = objectsOf(answer.candidates);
  if (hasError(answer) || candidates.length === 0) return false;
  return candidates.every(({ finishReason, content }) => {
    const parts = objectsOf(objectOf(content).parts);
    return ENDINGS.has(finishReason) && parts.every((part) => SAID.some((name) => isPresent(part[name])));
  });
}
