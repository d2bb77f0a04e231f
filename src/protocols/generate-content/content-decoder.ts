// contents and systemInstruction of a client -> neutral messages. Never throws: a part of an unknown form is kept as it was
// written, for Gemini backends only.
//
// Calls and their results belong together by an id, which older clients leave out: the results then belong to the calls of
// their name that have none yet, in their order.

import type {
  ContentPart,
  MediaSource,
  Message,
  OpaquePart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../../generation/content.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText, objectOf, optionalText, textOf } from "../reading.ts";
import { isForeignMark, sealOf } from "./foreign-signature.ts";
import { either, objectsIn } from "./members.ts";

export function decodeContents(contents: unknown): Message[] {
  const calls = new CallIds();
  return objectsIn(contents).map(({ role, parts }) => ({
    role: role === "model" ? "assistant" : "user",
    parts: objectsIn(parts).flatMap((part) => decodePart(part, calls)),
  }));
}

/** A content, a part of one, or a text. */
export function decodeInstruction(instruction: unknown): TextPart[] {
  if (typeof instruction === "string") return instruction === "" ? [] : [{ type: "text", text: instruction }];
  const { parts, text } = objectOf(instruction);
  const texts = [...objectsIn(parts).map((part) => part.text), text];
  return texts.flatMap((each) => (typeof each === "string" && each !== "" ? [{ type: "text", text: each }] : []));
}

/** Ids of calls and results, made where the client gives none: by their order, so that a longer conversation has the same. */
class CallIds {
  readonly #open: { id: string; name: string; isMade: boolean }[] = [];
  #made = 0;

  ofCall(given: unknown, name: string): string {
    const said = nonEmptyText(given);
    const id = said ?? this.#make();
    this.#open.push({ id, name, isMade: said === undefined });
    return id;
  }

  ofResult(given: unknown, name: string): string {
    const said = nonEmptyText(given);
    const place = this.#open.findIndex((call) =>
      said === undefined || call.isMade ? call.name === name : call.id === said,
    );
    const [call] = place < 0 ? [] : this.#open.splice(place, 1);
    return call?.id ?? said ?? this.#make();
  }

  #make(): string {
    return `call_${this.#made++}`;
  }
}

function decodePart(part: JsonObject, calls: CallIds): ContentPart[] {
  const { text } = part;
  const signature = either(part, "thoughtSignature", "thought_signature");
  if (part.thought === true && typeof text === "string") {
    const seal = sealOf(signature);
    return text === "" && seal.origin === undefined ? [] : [{ type: "reasoning", text, ...seal }];
  }
  const own = isForeignMark(signature) ? undefined : nonEmptyText(signature);
  if (typeof text === "string") {
    return text === "" && own === undefined ? [] : [{ type: "text", text, ...compact({ signature: own }) }];
  }
  const call = either(part, "functionCall", "function_call");
  if (isObject(call)) return [decodeCall(call, own, calls)];
  const response = either(part, "functionResponse", "function_response");
  if (isObject(response)) return [decodeResult(response, calls)];
  return [decodeMedia(part) ?? opaque(part)];
}

function opaque(value: JsonObject): OpaquePart {
  return { type: "opaque", protocol: "generate-content", value };
}

function decodeCall(call: JsonObject, signature: string | undefined, calls: CallIds): ToolCallPart {
  const name = textOf(call.name);
  return {
    type: "tool-call",
    id: calls.ofCall(call.id, name),
    name,
    arguments: JSON.stringify(call.args ?? {}),
    ...compact({ signature }),
  };
}

function decodeResult({ id, name, response, parts }: JsonObject, calls: CallIds): ToolResultPart {
  const { text, isError } = decodeOutcome(response);
  const files = objectsIn(parts).flatMap((part): ToolResultPart["parts"] => {
    const media = decodeMedia(part);
    if (media?.type === "image" || media?.type === "document") return [media];
    return [{ type: "text", text: JSON.stringify(part) }];
  });
  return {
    type: "tool-result",
    callId: calls.ofResult(id, textOf(name)),
    ...compact({ name: optionalText(name), isError: isError || undefined }),
    parts: text === "" && files.length > 0 ? files : [{ type: "text", text }, ...files],
  };
}

/** The documentation names "output" for what a function gives, and "error" for its failure; any other object is the output. */
function decodeOutcome(response: unknown): { text: string; isError: boolean } {
  const members = objectOf(response);
  const [name, ...others] = Object.keys(members);
  if (name === undefined) return { text: "", isError: false };
  const isSingle = others.length === 0;
  if (isSingle && name === "error") return { text: textIn(members.error), isError: true };
  if (isSingle && (name === "output" || name === "result")) return { text: textIn(members[name]), isError: false };
  return { text: JSON.stringify(members), isError: false };
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

type GivenMedia = Extract<ContentPart, { type: "image" | "document" | "audio" | "video" }>;

function decodeMedia(part: JsonObject): GivenMedia | undefined {
  const inline = either(part, "inlineData", "inline_data");
  if (isObject(inline)) {
    const mediaType = mediaTypeOf(inline) ?? "application/octet-stream";
    return typeof inline.data === "string"
      ? mediaPart(mediaType, { kind: "base64", mediaType, data: standardBase64(inline.data) })
      : undefined;
  }
  const file = either(part, "fileData", "file_data");
  if (!isObject(file)) return undefined;
  const url = nonEmptyText(either(file, "fileUri", "file_uri"));
  const mediaType = mediaTypeOf(file);
  return url === undefined ? undefined : mediaPart(mediaType ?? "", { kind: "url", url, ...compact({ mediaType }) });
}

export function mediaTypeOf(holder: JsonObject): string | undefined {
  return nonEmptyText(either(holder, "mimeType", "mime_type"));
}

function mediaPart(mediaType: string, source: MediaSource): GivenMedia {
  const [family] = mediaType.split("/", 1);
  if (family === "image" || family === "audio" || family === "video") return { type: family, source };
  return { type: "document", source };
}

/** Google's JSON takes both alphabets, with padding or without; other formats take the standard one alone. */
function standardBase64(data: string): string {
  const standard = data.replaceAll("-", "+").replaceAll("_", "/");
  return standard.padEnd(Math.ceil(standard.length / 4) * 4, "=");
}
