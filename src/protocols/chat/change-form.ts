// A whole chat answer told as a stream, and the other way round. Both hold the same members in nearly the same places, so
// that nothing is lost (docs/decisions/0036).

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { joinChunks, joinLists } from "../kept-chunks.ts";

/** Texts of a message that come in pieces, in the order in which models write them. */
const TEXT_FIELDS = ["reasoning_content", "reasoning", "content", "refusal"] as const;

/** The events of a chat completion: per choice the role, each text whole, the tool calls, the finish; then the usage. */
export function asStream(text: string, includeUsage: boolean): string | undefined {
  const completion = parseObject(text);
  if (completion === undefined || !Array.isArray(completion.choices)) return undefined;
  const { choices, usage, object: _object, ...rest } = completion;
  const envelope = { ...rest, object: "chat.completion.chunk" };
  const events: string[] = [];
  const send = (chunkChoices: JsonObject[], chunkUsage: unknown) => {
    const chunk = { ...envelope, choices: chunkChoices, ...(includeUsage && { usage: chunkUsage }) };
    events.push(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  for (const choice of choices as unknown[]) {
    if (!isObject(choice) || !isObject(choice.message)) return undefined;
    const { index, message, finish_reason, logprobs = null, ...choiceRest } = choice;
    const { role = "assistant", tool_calls, ...fields } = message as JsonObject;
    // Sound is sent in pieces of a form of its own.
    if (isPresent(fields.audio)) return undefined;
    let ownLogprobs = logprobs;
    const sendDelta = (delta: JsonObject) => {
      send([{ index, delta, logprobs: ownLogprobs, finish_reason: null }], null);
      ownLogprobs = null;
    };
    const first: JsonObject = { role, content: typeof fields.content === "string" ? "" : null };
    const texts: JsonObject[] = [];
    for (const field of TEXT_FIELDS) {
      const value = fields[field];
      if (typeof value === "string" && value !== "") texts.push({ [field]: value });
      else if (field !== "content" && field in fields) first[field] = value;
      delete fields[field];
    }
    Object.assign(first, fields);
    const hasTokens = isPresent(logprobs);
    ownLogprobs = null;
    sendDelta(first);
    for (const delta of texts) {
      // The tokens of an answer are those of its text.
      if (hasTokens && ("content" in delta || "refusal" in delta)) ownLogprobs = logprobs;
      sendDelta(delta);
    }
    if (Array.isArray(tool_calls)) {
      for (const [callIndex, call] of tool_calls.entries()) {
        if (!isObject(call)) return undefined;
        sendDelta({ tool_calls: [{ index: callIndex, ...call }] });
      }
    }
    send([{ index, delta: {}, logprobs: null, finish_reason, ...choiceRest }], null);
  }
  if (includeUsage && isPresent(usage)) send([], usage);
  events.push("data: [DONE]\n\n");
  return events.join("");
}

interface JoinedChoice {
  fields: JsonObject;
  message: JsonObject;
  toolCalls: Map<unknown, JsonObject>;
  logprobs: JsonObject | null;
}

/** The chat completion that a stream tells piece by piece. */
export function asWhole(events: string): string | undefined {
  const choices = new Map<number, JoinedChoice>();
  const joinedChunks = joinChunks(events, (delta) => joinChoice(choices, delta));
  if (joinedChunks === undefined || choices.size === 0) return undefined;
  const { members, usage } = joinedChunks;
  const joined = [...choices.values()].sort((left, right) => Number(left.fields.index) - Number(right.fields.index));
  if (joined.some(({ fields }) => typeof fields.finish_reason !== "string")) return undefined;
  return JSON.stringify({
    ...members,
    object: "chat.completion",
    choices: joined.map(({ fields, message, toolCalls, logprobs }) => ({
      ...fields,
      message: {
        role: "assistant",
        content: null,
        ...message,
        ...(toolCalls.size > 0 && { tool_calls: [...toolCalls.values()] }),
      },
      logprobs,
    })),
    ...(usage !== undefined && { usage }),
  });
}

/** Adds one choice of a chunk; false when it holds something whose joining is not known. */
function joinChoice(choices: Map<number, JoinedChoice>, chunkChoice: unknown): boolean {
  if (!isObject(chunkChoice)) return false;
  const { index = 0, delta, logprobs, ...rest } = chunkChoice;
  if (typeof index !== "number") return false;
  const choice: JoinedChoice = choices.get(index) ?? {
    fields: { index },
    message: {},
    toolCalls: new Map(),
    logprobs: null,
  };
  choices.set(index, choice);
  for (const [key, value] of Object.entries(rest)) if (isPresent(value)) choice.fields[key] = value;
  if (isPresent(logprobs)) {
    if (!isObject(logprobs)) return false;
    choice.logprobs = joinLists(choice.logprobs ?? {}, logprobs);
    if (choice.logprobs === null) return false;
  }
  if (!isPresent(delta)) return true;
  if (!isObject(delta)) return false;
  return Object.entries(delta).every(([key, value]) => {
    if (!isPresent(value)) {
      if (key === "refusal" || key === "content") choice.message[key] ??= null;
      return true;
    }
    if (key === "role") choice.message.role = value;
    else if (key === "tool_calls")
      return Array.isArray(value) && value.every((call) => joinCall(choice.toolCalls, call));
    else if ((TEXT_FIELDS as readonly string[]).includes(key) && typeof value === "string") {
      choice.message[key] = `${choice.message[key] ?? ""}${value}`;
    } else return false;
    return true;
  });
}

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
