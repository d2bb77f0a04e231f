// A whole chat answer told as a stream, and the other way round. Both hold the same members in nearly the same places, so
// that nothing is lost (docs/decisions/0036).

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { joinChunks, TEXT_FIELDS } from "../joined-chunks.ts";
import { eventData } from "../sse.ts";

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

/** The chat completion that a stream tells piece by piece. */
export function asWhole(events: string): string | undefined {
  const { members, usage, choices, isExact } = joinChunks(eventData(events), "delta");
  const isWhole = choices.length > 0 && choices.every(({ fields }) => typeof fields.finish_reason === "string");
  if (!isExact || !isWhole) return undefined;
  return JSON.stringify({
    ...members,
    object: "chat.completion",
    choices: choices.map(({ fields, message, toolCalls, logprobs }) => ({
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
