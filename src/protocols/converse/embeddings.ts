// Embeddings of the OpenAI format -> InvokeModel of Titan and of Cohere, and back. Sources: the user guide of Amazon Bedrock
// ("Amazon Titan Text Embeddings models", "Cohere Embed models").

import { DropList, type Dropped } from "../../generation/dropped.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField, wrongType } from "../fields.ts";
import { DecodeError } from "../protocol.ts";
import { arrayOf, nonEmptyText, objectOf, optionalNumber, wholeNumberOf } from "../reading.ts";

interface EncodedTexts {
  body: JsonObject;
  /** What the answer needs to know of its request. */
  asked: AskedVectors;
  dropped: readonly Dropped[];
}

interface AskedVectors {
  isBase64: boolean;
  count: number;
  /** Used when the backend does not count. */
  estimatedTokens: number;
}

interface EmbeddingFamily {
  models: RegExp;
  /** Texts in one request. */
  most: number;
  /** @param task - what the vectors are for, in the words of the vendor */
  encode(texts: readonly string[], dimensions: number | undefined, task: string | undefined): JsonObject;
  vectors(answer: JsonObject): unknown;
}

const FAMILIES: readonly EmbeddingFamily[] = [
  {
    models: /titan-embed/,
    most: 1,
    encode: ([inputText], dimensions) => ({ inputText, ...compact({ dimensions }) }),
    vectors: ({ embedding }) => [embedding],
  },
  {
    models: /cohere\.embed|cohere-embed|embed-(?:english|multilingual|v4)/,
    most: 96,
    encode: (texts, dimensions, task = "search_document") => ({
      texts,
      input_type: task,
      ...(dimensions !== undefined && { output_dimension: dimensions, embedding_types: ["float"] }),
    }),
    vectors: ({ embeddings }) => (isObject(embeddings) ? embeddings.float : embeddings),
  },
];

/** Cohere's words; the models of Titan have none. */
const TASKS: ReadonlySet<unknown> = new Set(["search_document", "search_query", "classification", "clustering"]);

/** Members that a backend has a word for, or that say how to answer. */
const KNOWN: ReadonlySet<string> = new Set(["model", "input", "dimensions", "encoding_format", "input_type"]);

const BYTES_PER_TOKEN = 4;

function familyOf(model: string): EmbeddingFamily {
  const name = model.toLowerCase();
  const family = FAMILIES.find(({ models }) => models.test(name));
  if (family !== undefined) return family;
  throw invalidField(
    "model",
    `${JSON.stringify(model)} is not known to embed texts; use a model of Titan or of Cohere.`,
  );
}

/** The models that familyOf() knows. */
export const EMBEDDING_MODELS = new RegExp(FAMILIES.map(({ models }) => models.source).join("|"), "i");

/** How many texts a model takes in one request. */
export function mostTexts(model: string): number {
  return familyOf(model).most;
}

/** @param body - a request as readEmbeddingRequest has checked it, with no more texts than the model takes */
export function encodeTexts(body: JsonObject, model: string): EncodedTexts {
  const family = familyOf(model);
  const texts = textsIn(body.input);
  const dropped = new DropList();
  const { input_type: task } = body;
  if (isPresent(task) && !TASKS.has(task)) {
    throw invalidField("input_type", `expected one of ${[...TASKS].join(", ")}.`);
  }
  for (const member of Object.keys(body)) if (!KNOWN.has(member)) dropped.add(member);
  return {
    body: family.encode(texts, optionalNumber(body.dimensions), nonEmptyText(task)),
    asked: {
      isBase64: body.encoding_format === "base64",
      count: texts.length,
      estimatedTokens: texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN), 0),
    },
    dropped: dropped.entries,
  };
}

function textsIn(input: unknown): string[] {
  const list = Array.isArray(input) ? input : [input];
  return list.map((text: unknown, index) => {
    const field = Array.isArray(input) ? `input[${index}]` : "input";
    if (typeof text === "number" || Array.isArray(text)) {
      throw invalidField(field, "this model's backend takes texts, no token ids.");
    }
    if (typeof text !== "string") throw wrongType(field, "a text", text);
    if (text === "") throw invalidField(field, "must not be empty.");
    return text;
  });
}

/** @param model - as the client asked for it */
export function decodeVectors(answer: unknown, { isBase64, count, estimatedTokens }: AskedVectors, model: string) {
  const value = objectOf(answer);
  const vectors = FAMILIES.map((family) => arrayOf(family.vectors(value))).find(
    (list) => list.every(isVector) && list.length > 0,
  );
  if (vectors === undefined) throw new DecodeError("has no embedding");
  if (vectors.length !== count) throw new DecodeError("has not as many embeddings as were asked for");
  const data = vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: isBase64 ? inBase64(vector as number[]) : vector,
  }));
  const tokens = wholeNumberOf(value.inputTextTokenCount) ?? estimatedTokens;
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((entry) => typeof entry === "number");
}

/** 32-bit floats, little endian. */
function inBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
