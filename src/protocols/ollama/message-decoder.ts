// The messages of an Ollama client -> the neutral conversation. Calls often come back without an id, and results name the
// tool alone: they are put together by their order.

import type {
  ContentPart,
  ImagePart,
  Message,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../../generation/content.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { normalizeBase64, splitDataUrl } from "../../media/data-url.ts";
import { sniffBase64 } from "../../media/media-types.ts";
import { invalidField, missingField } from "../fields.ts";
import { nonEmptyText, objectsOf, textOf, textsOf } from "../reading.ts";

export interface Conversation {
  system: TextPart[];
  messages: Message[];
}

interface Reading extends Conversation {
  /** Calls of the last turn whose results have not come yet. */
  open: Pick<ToolCallPart, "id" | "name">[];
  /** How many ids were given to calls and results that came without one. */
  named: number;
  /** The message that takes the results of neighbouring tool messages. */
  results: Message | undefined;
}

/** @param messages - checked as readChatRequest does it */
export function decodeMessages(messages: readonly JsonObject[]): Conversation {
  const reading: Reading = { system: [], messages: [], open: [], named: 0, results: undefined };
  for (const [index, message] of messages.entries()) decodeMessage(reading, message, `messages[${index}]`);
  return { system: reading.system, messages: reading.messages };
}

function decodeMessage(reading: Reading, message: JsonObject, path: string): void {
  if (message.role === "tool") {
    addResult(reading, message, path);
    return;
  }
  reading.results = undefined;
  const text: TextPart = { type: "text", text: textOf(message.content) };
  switch (message.role) {
    case "system":
      if (reading.messages.length === 0) reading.system.push(text);
      else reading.messages.push({ role: "system", parts: [text] });
      return;
    case "assistant":
      reading.messages.push({ role: "assistant", parts: decodeAssistant(reading, message, text, path) });
      return;
    default:
      reading.messages.push({ role: "user", parts: withImages(message.images, text, `${path}.images`) });
  }
}

/** Pictures stand before the text that speaks of them. */
export function withImages(images: unknown, text: TextPart, path: string): (ImagePart | TextPart)[] {
  const pictures = textsOf(images).map((image, index) => decodeImage(image, `${path}[${index}]`));
  return text.text === "" && pictures.length > 0 ? pictures : [...pictures, text];
}

/** Base64 alone, as the format has it, or the data URL that some clients send. */
function decodeImage(image: string, path: string): ImagePart {
  const { payload = image } = splitDataUrl(image) ?? {};
  const data = normalizeBase64(payload)?.base64;
  const mediaType = data === undefined ? undefined : sniffBase64(data);
  if (data === undefined || mediaType?.startsWith("image/") !== true) {
    throw invalidField(path, "expected a picture in base64: PNG, JPEG, GIF or WebP.");
  }
  return { type: "image", source: { kind: "base64", mediaType, data } };
}

function decodeAssistant(reading: Reading, message: JsonObject, text: TextPart, path: string): ContentPart[] {
  const thought = textOf(message.thinking);
  const calls = objectsOf(message.tool_calls).map((entry, index): ToolCallPart => {
    const called = isObject(entry.function) ? entry.function : undefined;
    const name = nonEmptyText(called?.name);
    if (name === undefined) throw missingField(`${path}.tool_calls[${index}].function.name`, "the name of the tool.");
    const { arguments: given } = called as JsonObject;
    const written = typeof given === "string" ? given : JSON.stringify(given ?? {});
    return { type: "tool-call", id: nonEmptyText(entry.id) ?? nextId(reading), name, arguments: written };
  });
  reading.open = calls.map(({ id, name }) => ({ id, name }));
  const parts: ContentPart[] = [];
  if (thought !== "") parts.push({ type: "reasoning", text: thought });
  if (text.text !== "") parts.push(text);
  parts.push(...calls);
  // An answer of nothing is replayed as it was.
  return parts.length > 0 ? parts : [text];
}

function addResult(reading: Reading, message: JsonObject, path: string): void {
  // `name` is what clients wrote before there was `tool_name`.
  const name = nonEmptyText(message.tool_name) ?? nonEmptyText(message.name);
  const text: TextPart = { type: "text", text: textOf(message.content) };
  const result: ToolResultPart = compact({
    type: "tool-result",
    callId: takeCall(reading, nonEmptyText(message.tool_call_id), name),
    name,
    parts: withImages(message.images, text, `${path}.images`),
  });
  if (reading.results === undefined) {
    reading.results = { role: "user", parts: [] };
    reading.messages.push(reading.results);
  }
  reading.results.parts.push(result);
}

/** The id of the call that a result belongs to: the one it names, else the first open one of the tool that it names. */
function takeCall(reading: Reading, id: string | undefined, name: string | undefined): string {
  const { open } = reading;
  const place = open.findIndex((call) =>
    id === undefined ? name === undefined || call.name === name : call.id === id,
  );
  const [taken] = place < 0 ? [] : open.splice(place, 1);
  return taken?.id ?? id ?? nextId(reading);
}

function nextId(reading: Reading): string {
  return `tool_${reading.named++}`;
}
