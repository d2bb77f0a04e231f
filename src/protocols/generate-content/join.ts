// Going on with a stream of a generateContent client: which answers can be continued, and what is asked for.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { nonEmptyText, objectOf, objectsOf, textOf } from "../reading.ts";
import { prefillOf } from "../seam.ts";
import type { SseEvent } from "../sse.ts";
import { limitsLeft, type SentAnswer, type StreamJoin, splitAtErrorMember } from "../stream-join.ts";
import { hasError } from "./errors.ts";
import { FOREIGN_MARK } from "./foreign-signature.ts";
import { listOf } from "./members.ts";
import { createStreamEncoder } from "./stream-encoder.ts";

export const contentJoin: StreamJoin = { readSent, splitAtError: splitAtErrorMember, askForRest };

/** Where the client's answer stands. */
interface Progress {
  id: string;
  text: string;
  thinking: string;
  /** Text since the last part that is none. */
  run: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
  hasStarted: boolean;
}

function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  const progress: Progress = { id: "", text: "", thinking: "", run: "", pieces: 0, hasStarted: false };
  for (const { data } of events) {
    const answer = parseObject(data);
    if (answer !== undefined && !follow(progress, answer)) return undefined;
  }
  const { id, text, run, pieces, hasStarted } = progress;
  return {
    text,
    pieces,
    openText: run.length,
    hidesThoughts: text !== "",
    askToGoOn: (request) => askToGoOn(request, progress),
    encoder: hasStarted ? (context) => createStreamEncoder(context, { id, run }) : undefined,
  };
}

/** False when nothing can be joined behind this event: the client has got an error, or more than text. */
function follow(progress: Progress, answer: JsonObject): boolean {
  if (hasError(answer) || isPresent(answer.promptFeedback)) return false;
  const candidates = objectsOf(answer.candidates);
  progress.id ||= textOf(answer.responseId);
  if (candidates.length === 0) return true;
  const [{ content, finishReason, index } = {}] = candidates;
  const isOnly = candidates.length === 1 && (index === undefined || index === 0);
  if (!isOnly || nonEmptyText(finishReason) !== undefined) return false;
  progress.hasStarted = true;
  return objectsOf(objectOf(content).parts).every((part) => followPart(progress, part));
}

function followPart(progress: Progress, { text, thought }: JsonObject): boolean {
  if (typeof text !== "string") return false;
  if (text !== "") progress.pieces++;
  if (thought === true) {
    progress.thinking += text;
    progress.run = "";
  } else {
    progress.text += text;
    progress.run += text;
  }
  return true;
}

function askToGoOn(request: JsonObject, { text, thinking, pieces }: Progress): JsonObject | undefined {
  const prefill = prefillOf(text);
  const contents = contentsBehind(listOf(request.contents), prefill, thinking);
  const name = isObject(request.generationConfig) ? "generationConfig" : "generation_config";
  const config = objectOf(request[name]);
  const left = limitsLeft(config, ["maxOutputTokens", "max_output_tokens"], pieces);
  return contents && { contents, ...(Object.keys(left).length > 0 && { [name]: { ...config, ...left } }) };
}

/** With what was sent as the beginning of the last turn; undefined where that cannot be prolonged. */
function contentsBehind(contents: readonly unknown[], text: string, thinking: string): unknown[] | undefined {
  const last = contents.at(-1);
  if (!isObject(last) || last.role !== "model") {
    // The mark keeps the thinking from backends that would ask for its proof.
    const thoughts = thinking === "" ? [] : [{ text: thinking, thought: true, thoughtSignature: FOREIGN_MARK }];
    return [...contents, { role: "model", parts: [...thoughts, { text }] }];
  }
  const parts = listOf(last.parts);
  const open = parts.at(-1);
  if (thinking !== "" || !isObject(open) || typeof open.text !== "string" || open.thought === true) return undefined;
  return [...contents.slice(0, -1), { ...last, parts: [...parts.slice(0, -1), { ...open, text: open.text + text }] }];
}

function askForRest({ contents }: JsonObject, text: string, prompt: string): JsonObject {
  const turns = [
    { role: "model", parts: [{ text }] },
    { role: "user", parts: [{ text: prompt }] },
  ];
  return { contents: [...listOf(contents), ...turns] };
}
