// What the chunks of a stream say together, as of chat and of text completions: for a stream that is kept as a whole answer,
// and for one that broke off and goes on at another backend.

import { isObject, isPresent, type JsonObject, parseObject } from "../lib/json.ts";

interface JoinedChoice {
  /** Members of the choice besides its texts and tokens; the last values count. */
  fields: JsonObject;
  /** Of a text completion, its text is the content. */
  message: JsonObject;
  toolCalls: Map<unknown, JsonObject>;
  logprobs: JsonObject | null;
  /** The same thought may stand in both of its members: of each piece it is taken from one. */
  thought: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
  /** A chunk gave a reason to finish. */
  hasEnded: boolean;
  /** Members of which it is not known how their pieces are joined, and whether one of their values says anything. */
  unknown: Map<string, boolean>;
}

interface JoinedChunks {
  /** Besides choices and counts. */
  members: JsonObject;
  usage: unknown;
  /** By their index. */
  choices: readonly JoinedChoice[];
  /** Every event was a chunk, and every member of it can be joined. */
  isExact: boolean;
}

/** Texts of a message that come in pieces, in the order in which models write them. */
export const TEXT_FIELDS = ["reasoning_content", "reasoning", "content", "refusal"] as const;

const TEXTS: ReadonlySet<string> = new Set(TEXT_FIELDS);

/**
 * @param data - of each event, up to [DONE]
 * @param says - the member of a choice that says something: some backends send both, with the same text
 */
export function joinChunks(data: Iterable<string>, says: "delta" | "text"): JoinedChunks {
  const choices = new Map<unknown, JoinedChoice>();
  const members: JsonObject = {};
  let usage: unknown;
  let isExact = true;
  for (const text of data) {
    if (text.trim() === "[DONE]") break;
    const chunk = parseObject(text);
    if (!Array.isArray(chunk?.choices)) {
      isExact = false;
      if (chunk === undefined) continue;
    }
    const { choices: ofChunk, usage: counts, ...rest } = chunk as JsonObject;
    // Azure opens its streams with a chunk that has empty ids; later values fill them.
    for (const [name, value] of Object.entries(rest)) {
      if (!isPresent(members[name]) || members[name] === "" || members[name] === 0) members[name] = value;
    }
    if (isPresent(counts)) usage = counts;
    for (const choice of Array.isArray(ofChunk) ? (ofChunk as unknown[]) : []) {
      if (isObject(choice)) joinChoice(choices, choice, says);
      else isExact = false;
    }
  }
  const sorted = [...choices.values()].sort((left, right) => Number(left.fields.index) - Number(right.fields.index));
  const isKnown = ({ fields, unknown }: JoinedChoice) => typeof fields.index === "number" && unknown.size === 0;
  return { members, usage, choices: sorted, isExact: isExact && sorted.every(isKnown) };
}

function joinChoice(choices: Map<unknown, JoinedChoice>, piece: JsonObject, says: "delta" | "text"): void {
  const { index = 0, delta, text, message, logprobs, ...rest } = piece;
  const said = says === "text" ? text : delta;
  let choice = choices.get(index);
  if (choice === undefined) {
    choice = newChoice(index);
    choices.set(index, choice);
  }
  for (const [name, value] of Object.entries(rest)) if (isPresent(value)) choice.fields[name] = value;
  choice.hasEnded ||= isSet(rest.finish_reason);
  if (isPresent(logprobs)) joinTokens(choice, logprobs);
  // Some send the whole message in one chunk.
  if (isPresent(message)) noteUnknown(choice, "message", message);
  if (!isPresent(said)) return;
  if (says === "text") joinDelta(choice, { content: said });
  else if (isObject(said)) joinDelta(choice, said);
  else noteUnknown(choice, says, said);
}

function newChoice(index: unknown): JoinedChoice {
  const counts = { thought: "", pieces: 0, hasEnded: false };
  return { fields: { index }, message: {}, toolCalls: new Map(), logprobs: null, ...counts, unknown: new Map() };
}

function noteUnknown({ unknown }: JoinedChoice, name: string, value: unknown): void {
  unknown.set(name, unknown.get(name) === true || isSet(value));
}

/** Whether a value says anything. */
export function isSet(value: unknown): boolean {
  return isPresent(value) && value !== "" && !(Array.isArray(value) && value.length === 0);
}

function joinDelta(choice: JoinedChoice, delta: JsonObject): void {
  const { message } = choice;
  const { content, reasoning, reasoning_content: thought } = delta;
  const said = typeof thought === "string" && thought !== "" ? thought : typeof reasoning === "string" ? reasoning : "";
  choice.thought += said;
  if (isSet(content) || said !== "") choice.pieces++;
  for (const [name, value] of Object.entries(delta)) {
    if (!isPresent(value)) {
      if (name === "refusal" || name === "content") message[name] ??= null;
    } else if (name === "role") message.role = value;
    else if (name === "tool_calls") {
      if (!Array.isArray(value) || !value.every((call) => joinCall(choice.toolCalls, call))) {
        noteUnknown(choice, name, value);
      }
    } else if (TEXTS.has(name) && typeof value === "string") {
      message[name] = `${message[name] ?? ""}${value}`;
    } else noteUnknown(choice, name, value);
  }
}

/** Lists of tokens, one after the other. */
function joinTokens(choice: JoinedChoice, more: unknown): void {
  if (!isObject(more)) {
    noteUnknown(choice, "logprobs", more);
    return;
  }
  choice.logprobs ??= {};
  const { logprobs } = choice;
  for (const [name, value] of Object.entries(more)) {
    const before = logprobs[name];
    if (!isPresent(value)) logprobs[name] ??= null;
    else if (!Array.isArray(value)) noteUnknown(choice, "logprobs", value);
    else if (Array.isArray(before)) for (const entry of value as unknown[]) before.push(entry);
    else logprobs[name] = [...(value as unknown[])];
  }
}

/** False when the fragment holds something whose joining is not known. */
function joinCall(calls: Map<unknown, JsonObject>, fragment: unknown): boolean {
  if (!isObject(fragment)) return false;
  const { index = calls.size, ...parts } = fragment;
  const call = calls.get(index) ?? {};
  calls.set(index, call);
  for (const [key, value] of Object.entries(parts)) {
    if (!isPresent(value)) continue;
    const known = call[key];
    if (isObject(value)) {
      // function {name, arguments} or custom {name, input}
      const body: JsonObject = isObject(known) ? known : {};
      call[key] = body;
      for (const [name, piece] of Object.entries(value)) {
        if (!isPresent(piece)) continue;
        if (typeof piece !== "string") return false;
        // Some engines repeat the name in every fragment.
        if (name !== "name" || body.name !== piece) body[name] = `${body[name] ?? ""}${piece}`;
      }
    } else if (typeof value !== "string") return false;
    else if (known === undefined || known === "") call[key] = value;
    else if (known !== value && value !== "") return false;
  }
  return true;
}
