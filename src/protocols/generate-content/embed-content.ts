// Embeddings for clients of this format: embedContent asks for one vector, batchEmbedContents for several. All parts of a
// content give one vector. Backends of the OpenAI format are asked with one text for each.

import { DropList, type Dropped } from "../../generation/dropped.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField, missingField, wrongType } from "../fields.ts";
import { DecodeError } from "../protocol.ts";
import { numberOf, objectOf, objectsOf, wholeNumberOf } from "../reading.ts";
import type { RequestSummary } from "../request-summary.ts";
import { inCamelCase, listOf, objectsIn } from "./members.ts";
import { checkContent, countingSummary, modelIn } from "./read-request.ts";

/** The most that Google takes in one batch. */
const MAX_BATCH = 100;

/** A request for one vector. */
export function readEmbedRequest(body: JsonObject, path: string): RequestSummary {
  const model = modelIn(path);
  checkEmbedded(body, "");
  return countingSummary(model);
}

export function readBatchRequest(body: JsonObject, path: string): RequestSummary {
  const model = modelIn(path);
  const { requests } = body;
  if (!isPresent(requests)) throw missingField("requests", "an array of {model, content} objects.");
  if (!Array.isArray(requests)) throw wrongType("requests", "an array", requests);
  if (requests.length === 0 || requests.length > MAX_BATCH) {
    throw invalidField("requests", `expected 1 to ${MAX_BATCH} requests, got ${requests.length}.`);
  }
  for (const [index, request] of requests.entries()) {
    if (!isObject(request)) throw wrongType(`requests[${index}]`, "an object", request);
    checkEmbedded(request, `requests[${index}].`);
  }
  return countingSummary(model);
}

function checkEmbedded(request: JsonObject, path: string): void {
  if (!isPresent(request.content)) throw missingField(`${path}content`, "a content with parts.");
  checkContent(request.content, `${path}content`);
  if (listOf(objectOf(request.content).parts).length === 0) {
    throw invalidField(`${path}content.parts`, "must hold at least one part.");
  }
}

/** Each request of a batch names the model again; undefined where the backend knows it by the same name. */
export function batchFor(body: JsonObject, model: string): JsonObject | undefined {
  const name = `models/${model}`;
  const requests = objectsOf(body.requests);
  if (requests.every((request) => request.model === name)) return undefined;
  return { requests: requests.map((request) => ({ ...request, model: name })) };
}

interface EncodedTexts {
  body: JsonObject;
  dropped: readonly Dropped[];
}

/** The body of an embeddings request of the OpenAI format. Throws a 400 that names the part which is no text. */
export function encodeTexts(body: JsonObject, model: string, isBatch: boolean): EncodedTexts {
  const dropped = new DropList();
  const requests = isBatch ? objectsOf(body.requests) : [body];
  const input = requests.map(({ content }, index) =>
    textOf(content, isBatch ? `requests[${index}].content` : "content"),
  );
  const settings = requests.map(inCamelCase);
  const [dimensions, ...others] = settings.map(({ outputDimensionality }) => numberOf(outputDimensionality));
  const other = others.findIndex((each) => each !== dimensions);
  if (other >= 0) {
    const field = `requests[${other + 1}].outputDimensionality`;
    throw invalidField(field, "this model's backend gives vectors of one size per request.");
  }
  for (const name of ["taskType", "title"]) {
    if (settings.some((request) => isPresent(request[name]))) dropped.add(name);
  }
  return { body: { model, input, ...compact({ dimensions }) }, dropped: dropped.entries };
}

function textOf(content: unknown, path: string): string {
  const texts = objectsIn(objectOf(content).parts).map(({ text }, index) => {
    if (typeof text === "string") return text;
    throw invalidField(`${path}.parts[${index}]`, "this model's backend embeds text only.");
  });
  return texts.join("\n");
}

/** An answer of the OpenAI format -> the client's. */
export function decodeVectors(answer: unknown, count: number, isBatch: boolean): JsonObject {
  const { data, usage } = objectOf(answer);
  const vectors = [...objectsOf(data)].sort((one, other) => Number(one.index) - Number(other.index));
  const embeddings = vectors.map(({ embedding }) => {
    if (!Array.isArray(embedding)) throw new DecodeError("has an embedding without numbers");
    return { values: embedding as unknown[] };
  });
  if (embeddings.length !== count) throw new DecodeError("has not as many embeddings as were asked for");
  const tokens = wholeNumberOf(objectOf(usage).prompt_tokens);
  const told = tokens === undefined ? {} : { usageMetadata: { promptTokenCount: tokens } };
  return { ...(isBatch ? { embeddings } : { embedding: embeddings[0] }), ...told };
}

/** How many vectors a request asks for. */
export function vectorsAsked(body: JsonObject, isBatch: boolean): number {
  return isBatch ? objectsOf(body.requests).length : 1;
}
