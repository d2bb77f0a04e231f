// A whole generateContent answer told as a stream, and the other way round. An event is an answer object, so that a whole
// answer is a stream of one event.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { mayLoseDigits } from "../../lib/json-digits.ts";
import { objectOf, objectsOf } from "../reading.ts";

/** Line breaks of JSON stand between its tokens alone: an event has none. */
export function wholeAsEvent(answer: string): string {
  return `data: ${answer.trim().replaceAll(/[\r\n]+/g, " ")}\n\n`;
}

interface JoinedCandidate {
  members: JsonObject;
  content: JsonObject;
  parts: JsonObject[];
}

/**
 * The whole answer that events have told piece by piece; undefined where something came whose joining is not known.
 * @param data - of each event
 */
export function joinAnswers(data: readonly string[]): JsonObject | undefined {
  const candidates = new Map<unknown, JoinedCandidate>();
  let members: JsonObject = {};
  for (const text of data) {
    const answer = parseObject(text);
    if (answer === undefined) return undefined;
    const { candidates: ofChunk, ...rest } = answer;
    members = { ...members, ...rest };
    for (const candidate of objectsOf(ofChunk)) if (!joinCandidate(candidates, candidate, text)) return undefined;
  }
  if (candidates.size === 0) return members;
  const joined = [...candidates.values()].map((candidate) => ({
    content: { ...candidate.content, parts: candidate.parts },
    ...candidate.members,
  }));
  return { candidates: joined, ...members };
}

function joinCandidate(candidates: Map<unknown, JoinedCandidate>, piece: JsonObject, text: string): boolean {
  const { content, ...members } = piece;
  const index = members.index ?? 0;
  const known = candidates.get(index);
  // Some send the metadata of what they found in every event, as far as they know it.
  const candidate = known ?? { members: {}, content: { role: "model" }, parts: [] };
  if (known === undefined) candidates.set(index, candidate);
  for (const [name, value] of Object.entries(members)) if (isPresent(value)) candidate.members[name] = value;
  const { parts, ...rest } = objectOf(content);
  Object.assign(candidate.content, rest);
  for (const part of objectsOf(parts)) {
    if (isObject(part.functionCall) && mayLoseDigits(text)) return false;
    joinPart(candidate.parts, part);
  }
  return true;
}

/** Texts of one kind that follow one another are one part; a signature ends it. */
function joinPart(parts: JsonObject[], part: JsonObject): void {
  const last = parts.at(-1);
  const goesOn =
    last !== undefined &&
    typeof last.text === "string" &&
    typeof part.text === "string" &&
    last.thought === part.thought &&
    !isPresent(last.thoughtSignature);
  if (goesOn) parts[parts.length - 1] = { ...last, ...part, text: `${last.text}${part.text}` };
  else if (part.text !== "" || isPresent(part.thoughtSignature)) parts.push(part);
}
