// Reads recorded bodies of every client format into the neutral model.

import { Collector } from "../generation/collect.ts";
import type { ContentPart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Usage } from "../generation/usage.ts";
import { isObject, type JsonObject, parseJson, parseObject } from "../lib/json.ts";
import { AnswerFailed, type BackendProtocol } from "../protocols/protocol.ts";
import { bothHalves } from "../protocols/registry.ts";
import { readEvents } from "../protocols/sse.ts";
import { standardError } from "../upstream/error-body.ts";
import type { RecordedBody } from "./recording.ts";

export interface ReadAnswer {
  parts: readonly ContentPart[];
  /** Undefined where the answer is not complete. */
  finish?: string;
  usage?: Usage;
  error?: string;
}

const decoder = new TextDecoder();

/** Undefined where the body is no whole request of the format. */
export function readAsked(
  operation: string,
  { content }: Pick<RecordedBody, "content">,
): GenerationRequest | undefined {
  const body = parseObject(decoder.decode(content));
  const format = bothHalves(operation);
  if (body === undefined || format === undefined) return undefined;
  try {
    return format.client.decodeRequest(body);
  } catch {
    return undefined;
  }
}

/** What of an answer can be read; what was cut off is missing. @param value - what JSON says, where it was read before */
export function readAnswer(
  operation: string,
  { content, contentType, value }: Pick<RecordedBody, "content" | "contentType"> & { value?: unknown },
  status: number,
): ReadAnswer | undefined {
  const { backend } = bothHalves(operation) ?? {};
  if (backend === undefined) return undefined;
  const text = value === undefined ? decoder.decode(content) : "";
  const whole = value ?? parseJson(text);
  // A stream that broke off had begun well.
  if (status >= 400 && (isObject(whole) || content.length === 0))
    return { parts: [], error: standardError(status, content).message };
  if (isObject(whole) && !backend.readsStreamsAlone) return readWhole(backend, whole);
  const collector = new Collector();
  const stream = backend.streamDecoder();
  try {
    for (const { data, name } of eventsIn(text, whole, contentType)) {
      for (const event of stream.push(data, name)) collector.push(event);
    }
    for (const event of stream.end()) collector.push(event);
  } catch {
    // What was read before is shown.
  }
  return readingOf(collector);
}

function readWhole(backend: BackendProtocol, whole: JsonObject): ReadAnswer | undefined {
  try {
    const { parts, finish, usage } = backend.decodeResponse(whole);
    return { parts, finish: finish.reason, ...(usage !== undefined && { usage }) };
  } catch (error) {
    return error instanceof AnswerFailed ? { parts: [], error: error.message } : undefined;
  }
}

function eventsIn(text: string, whole: unknown, contentType: string): { data: string; name?: string | undefined }[] {
  if (Array.isArray(whole)) return whole.map((value) => ({ data: JSON.stringify(value) }));
  if (whole !== undefined) return [{ data: JSON.stringify(whole) }];
  if (contentType.includes("event-stream")) return readEvents(text);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((data) => ({ data }));
}

function readingOf(collector: Collector): ReadAnswer {
  const { parts, failure } = collector;
  const result = collector.result();
  return {
    parts,
    ...(result !== undefined && { finish: result.finish.reason }),
    ...(result?.usage !== undefined && { usage: result.usage }),
    ...(failure !== undefined && { error: failure.message }),
  };
}

/** The text of an answer, without thoughts. */
export function answerText(parts: readonly ContentPart[]): string {
  return parts.map((part) => (part.type === "text" || part.type === "refusal" ? part.text : "")).join("");
}

/** Every text of an answer. */
export function* answerTexts(parts: readonly ContentPart[]): Generator<string> {
  for (const part of parts) {
    if ("text" in part) yield part.text;
    else if (part.type === "tool-call") yield `${part.name} ${part.arguments}`;
  }
}
