// Images of the OpenAI format -> generateContent and back. One request gives one image; several are asked for side by side
// and their answers joined.

import { DropList, type Dropped } from "../../generation/dropped.ts";
import type { Failure } from "../../generation/result.ts";
import { compact, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { resolveImageModel } from "../../names.ts";
import { AnswerFailed } from "../protocol.ts";
import { nonEmptyText, objectOf, objectsOf, optionalText, textOf } from "../reading.ts";
import { addCounts } from "../token-counts.ts";
import { decodeError, hasError } from "./errors.ts";
import { decodeFinish } from "./finish-reason.ts";
import { baseName } from "./model-rules.ts";
import { decodeUsage } from "./usage.ts";
import { optionalCount } from "./wire.ts";

/** What Google is asked for, by the size of the OpenAI format. */
interface ImageShape {
  aspectRatio: string;
  imageSize: "1K" | "2K" | "4K";
}

const SQUARE: ImageShape = { aspectRatio: "1:1", imageSize: "1K" };

const SHAPES: ReadonlyMap<string, ImageShape> = new Map([
  ["auto", SQUARE],
  ["256x256", SQUARE],
  ["512x512", SQUARE],
  ["1024x1024", SQUARE],
  ["1536x1024", { aspectRatio: "3:2", imageSize: "1K" }],
  ["1024x1536", { aspectRatio: "2:3", imageSize: "1K" }],
  ["1024x1792", { aspectRatio: "9:16", imageSize: "1K" }],
  ["1792x1024", { aspectRatio: "16:9", imageSize: "1K" }],
  ["2048x2048", { aspectRatio: "1:1", imageSize: "2K" }],
  ["4096x4096", { aspectRatio: "1:1", imageSize: "4K" }],
]);

/** What every image model of Google's draws. */
const RATIOS: ReadonlySet<string> = new Set(
  ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"], //
);

/** Models before the third generation refuse a size; theirs is 1K. */
const WITHOUT_SIZE = /^gemini-[12][.-]/;

/** Members that have a word in the other format, that say how to answer, or that change nothing. */
const KNOWN: ReadonlySet<string> = new Set(["model", "prompt", "n", "size", "response_format", "stream", "user"]);

interface EncodedImageRequest {
  body: JsonObject;
  dropped: readonly Dropped[];
}

/** @param value - a request that has been read and checked; its `n` is the caller's affair */
export function encodeImageRequest(value: JsonObject, { model }: { model: string }): EncodedImageRequest {
  const dropped = new DropList();
  for (const [name, wish] of Object.entries(value)) if (!KNOWN.has(name) && isPresent(wish)) dropped.add(name);
  const imageConfig = imageConfigFor(nonEmptyText(value.size) ?? "auto", model, dropped);
  return {
    body: {
      contents: [{ role: "user", parts: [{ text: textOf(value.prompt) }] }],
      generationConfig: {
        // The text becomes the revised prompt.
        responseModalities: ["TEXT", "IMAGE"],
        ...compact({ imageConfig }),
      },
    },
    dropped: dropped.entries,
  };
}

function imageConfigFor(size: string, model: string, dropped: DropList): JsonObject | undefined {
  const shape = SHAPES.get(size) ?? shapeOf(size);
  if (shape === undefined) {
    dropped.add("size", "the model draws in fixed aspect ratios only");
    return undefined;
  }
  const { aspectRatio, imageSize } = shape;
  if (!WITHOUT_SIZE.test(baseName(model))) return { aspectRatio, imageSize };
  if (imageSize !== "1K") dropped.add("size", "the model draws in 1K only");
  return { aspectRatio };
}

/** For models that have no table of sizes. */
function shapeOf(size: string): ImageShape | undefined {
  const [, width, height] = (/^(\d{2,5})x(\d{2,5})$/.exec(size) ?? []).map(Number);
  if (width === undefined || height === undefined) return undefined;
  const divisor = commonDivisor(width, height);
  const aspectRatio = `${width / divisor}:${height / divisor}`;
  if (!RATIOS.has(aspectRatio)) return undefined;
  const longest = Math.max(width, height);
  return { aspectRatio, imageSize: longest >= 4096 ? "4K" : longest >= 2048 ? "2K" : "1K" };
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other);
}

/** The names that are sent for the models of the table where the backend has none of its own. */
const GOOGLE_NAMES: ReadonlyMap<string, string> = new Map([
  ["nano-banana", "gemini-2.5-flash-image"],
  ["nano-banana-pro", "gemini-3-pro-image"],
]);

/**
 * The name that Google knows an image model by.
 * @param listed - the models of the backend: of several names of one model, the one that it has is sent
 */
export function googleImageModel(listed: readonly string[], model: string): string {
  const canonical = resolveImageModel(baseName(model));
  const usual = canonical === undefined ? undefined : GOOGLE_NAMES.get(canonical);
  if (usual === undefined || (isGoogleName(model) && listed.includes(model))) return model;
  const own = listed.find((name) => isGoogleName(name) && resolveImageModel(baseName(name)) === canonical);
  return own ?? (isGoogleName(model) ? model : usual);
}

function isGoogleName(name: string): boolean {
  return baseName(name).startsWith("gemini-");
}

interface ImageAnswerContext {
  /** Unix time in seconds. */
  created: number;
  responseFormat: "url" | "b64_json";
}

/** Throws AnswerFailed for an answer without an image. */
export function decodeImageAnswer(
  answer: JsonObject,
  { created, responseFormat }: ImageAnswerContext,
): JsonObject & { data: JsonObject[] } {
  if (hasError(answer)) throw new AnswerFailed(decodeError(200, answer));
  const parts = objectsOf(answer.candidates)
    .flatMap(({ content }) => objectsOf(objectOf(content).parts))
    // Sketches that the model made while it thought.
    .filter(({ thought }) => thought !== true);
  const pictures = parts.map(pictureOf).filter((picture) => picture !== undefined);
  if (pictures.length === 0) throw new AnswerFailed(failureWithoutImage(answer));
  const text = parts.map((part) => textOf(part.text)).join("");
  const revised = text.trim() === "" ? {} : { revised_prompt: text.trim() };
  const data = pictures.map(({ mediaType, base64 }) => ({
    ...(responseFormat === "url" ? { url: `data:${mediaType};base64,${base64}` } : { b64_json: base64 }),
    ...revised,
  }));
  return { created, data, ...compact({ usage: encodeCounts(answer.usageMetadata) }) };
}

function pictureOf({ inlineData, inline_data }: JsonObject): { mediaType: string; base64: string } | undefined {
  const media = objectOf(inlineData ?? inline_data);
  const mediaType = textOf(media.mimeType ?? media.mime_type).toLowerCase();
  const base64 = nonEmptyText(media.data);
  return mediaType.startsWith("image/") && base64 !== undefined ? { mediaType, base64 } : undefined;
}

/** Why there is no image, without the model's own words, which may repeat the prompt. */
function failureWithoutImage({ promptFeedback, candidates }: JsonObject): Failure {
  const blockReason = nonEmptyText(objectOf(promptFeedback).blockReason);
  if (blockReason !== undefined)
    return blocked(`The prompt was blocked by the backend's safety rules (${blockReason}).`);
  const [candidate] = objectsOf(candidates);
  const reason = nonEmptyText(candidate?.finishReason);
  if (reason !== undefined && decodeFinish(reason, false).reason === "content-filter")
    return blocked(`The image was blocked by the backend's safety rules (${reason}).`);
  const hasText = objectsOf(objectOf(candidate?.content).parts).some(({ text }) => nonEmptyText(text) !== undefined);
  const instead = hasText ? "text and no image" : "no image";
  return {
    message: `The backend answered with ${instead}${reason === undefined ? "" : ` (${reason})`}.`,
    status: 502,
    type: "backend_error",
    code: "no_image",
  };
}

function blocked(message: string): Failure {
  return { message, status: 400, type: "invalid_request_error", code: "content_policy_violation", param: "prompt" };
}

function encodeCounts(metadata: unknown): JsonObject | undefined {
  const usage = decodeUsage(metadata);
  if (usage === undefined) return undefined;
  const { promptTokensDetails, candidatesTokensDetails } = objectOf(metadata);
  const { input, output } = usage;
  return {
    total_tokens: input.total + output.total,
    input_tokens: input.total,
    output_tokens: output.total,
    input_tokens_details: byModality(promptTokensDetails, { text_tokens: input.total, image_tokens: 0 }),
    output_tokens_details: byModality(candidatesTokensDetails, { text_tokens: 0, image_tokens: output.total }),
  };
}

/** @param untold - where the backend does not say which tokens were which */
function byModality(details: unknown, untold: JsonObject): JsonObject {
  const counts = objectsOf(details);
  if (counts.length === 0) return untold;
  const countOf = (modality: string) =>
    counts
      .filter((count) => optionalText(count.modality) === modality)
      .reduce((sum, { tokenCount }) => sum + (optionalCount(tokenCount) ?? 0), 0);
  return { text_tokens: countOf("TEXT"), image_tokens: countOf("IMAGE") };
}

/** The answers of requests that were made side by side as one, in their order; each is one of decodeImageAnswer's. */
export function joinImageAnswers(bodies: readonly Uint8Array[]): Uint8Array {
  const decoder = new TextDecoder();
  const answers = bodies.map((body) => parseObject(decoder.decode(body)) ?? {});
  const usage = answers.map((answer) => answer.usage as JsonObject | undefined).reduce(addCounts, undefined);
  const data = answers.flatMap((answer) => objectsOf(answer.data));
  return new TextEncoder().encode(JSON.stringify({ created: answers[0]?.created ?? 0, data, ...compact({ usage }) }));
}
