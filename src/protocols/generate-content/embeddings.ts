// Embeddings of the OpenAI format -> batchEmbedContents, or Vertex AI's embedContent and predict, and back. One entry of `input` gives one vector: a text, one
// content part, or a list of parts that are embedded together. Parts other than text are for multimodal models only.
//
// Accepted parts: {type: "text" | "input_text", text}, {type: "image_url" | "input_image", image_url: {url} or url},
// {type: "input_audio", input_audio: {data, format}}, {type: "audio_url" | "video_url", ...: {url} or url},
// {type: "file", file: {file_data, filename}} and {type: "input_file", file_data or file_url, filename}. Media are data:
// URLs or addresses of files that Google's own file storage holds; others are not fetched.

import { DropList, type Dropped } from "../../generation/dropped.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { parseDataUrl } from "../../media/data-url.ts";
import { invalidField, missingField, wrongType } from "../fields.ts";
import { DecodeError, type Dialect } from "../protocol.ts";
import { nonEmptyText, objectOf, objectsOf, optionalNumber, optionalText, textOf } from "../reading.ts";
import { typeOfUrl } from "./media.ts";
import { baseName } from "./model-rules.ts";
import { type GeminiPart, optionalCount } from "./wire.ts";

/** What the answer needs to know of its request. */
export interface EmbeddingContext {
  /** The model as the client asked for it. */
  model: string;
  encoding: "float" | "base64";
  /** How many vectors each body asks for. */
  counts: readonly number[];
  /** Used when the backend does not count. */
  estimatedTokens: number;
  /** The model's shortened vectors have to be brought to length 1, as clients of this format expect it. */
  normalises: boolean;
}

interface EmbeddingTarget {
  model: string;
  kind?: Pick<Dialect, "embeds">;
}

interface EncodedEmbeddings {
  /** To be sent one by one or together; their answers go to decodeEmbeddings in the same order. */
  bodies: JsonObject[];
  context: EmbeddingContext;
  dropped: readonly Dropped[];
}

const MAX_BATCH = 100;
const MAX_IMAGES = 6;
const MEBIBYTE = 1024 * 1024;
const MAX_INLINE_BYTES = 20 * MEBIBYTE;

const MULTIMODAL = /^gemini-embedding-(?:[2-9]|[1-9]\d)(?:[.-]|$)/;

const FILE_STORAGE = /^https:\/\/generativelanguage\.googleapis\.com\/(?:v\w+\/)?files\//;

const TASK_TYPES: ReadonlySet<unknown> = new Set([
  "SEMANTIC_SIMILARITY",
  "CLASSIFICATION",
  "CLUSTERING",
  "RETRIEVAL_DOCUMENT",
  "RETRIEVAL_QUERY",
  "QUESTION_ANSWERING",
  "FACT_VERIFICATION",
  "CODE_RETRIEVAL_QUERY",
]);

/** Members that the format of the backend has a word for, or that say how to answer. */
const KNOWN: ReadonlySet<string> = new Set(["model", "input", "dimensions", "encoding_format", "task_type", "title"]);

/** Whether a model embeds more than text. */
export function isMultimodal(model: string): boolean {
  return MULTIMODAL.test(baseName(model));
}

interface EmbeddingForm {
  /** Inputs of one request, at most. */
  most(model: string): number;
  encode(items: readonly EmbeddingItem[], settings: JsonObject, model: string): JsonObject;
}

/** What the two APIs of Google's take: @google/genai 2.32, embedContentParametersPrivateToMldev and ...ToVertex. */
const FORMS: Readonly<Record<NonNullable<Dialect["embeds"]>, EmbeddingForm>> = {
  batch: {
    most: () => MAX_BATCH,
    encode(items, settings, name) {
      const model = `models/${name.replace(/^models\//, "")}`;
      return { requests: items.map(({ parts }) => ({ model, content: { parts }, ...settings })) };
    },
  },
  predict: {
    // Google, "Get text embeddings": a Gemini model takes one input in a request.
    most: (model) => (baseName(model).startsWith("gemini-") ? 1 : MAX_BATCH),
    encode(items, { taskType: task_type, title, outputDimensionality }) {
      const instances = items.map(({ parts }) => ({ content: textIn(parts), ...compact({ task_type, title }) }));
      return { instances, ...(outputDimensionality !== undefined && { parameters: { outputDimensionality } }) };
    },
  },
  content: {
    most: () => 1,
    encode([item], settings) {
      const embedContentConfig = Object.keys(settings).length > 0 ? settings : undefined;
      return { content: { role: "user", parts: item?.parts }, ...compact({ embedContentConfig }) };
    },
  },
};

/** How many inputs one request may have. */
export function mostInputs({ model, kind }: EmbeddingTarget): number {
  return FORMS[kind?.embeds ?? "batch"].most(model);
}

function textIn(parts: readonly GeminiPart[]): string {
  return parts.map(({ text }) => textOf(text)).join("\n");
}

/** @param body - a request as readEmbeddingRequest has checked it */
export function encodeEmbeddings(body: JsonObject, target: EmbeddingTarget): EncodedEmbeddings {
  const items = readMultimodalInput(body.input, target.model);
  const dropped = new DropList();
  const settings = encodeSettings(body);
  const { encode } = FORMS[target.kind?.embeds ?? "batch"];
  const most = mostInputs(target);
  for (const member of Object.keys(body)) if (!KNOWN.has(member)) dropped.add(member);
  const bodies: JsonObject[] = [];
  const counts: number[] = [];
  for (let start = 0; start < items.length; start += most) {
    const batch = items.slice(start, start + most);
    bodies.push(encode(batch, settings, target.model));
    counts.push(batch.length);
  }
  return {
    bodies,
    context: {
      model: nonEmptyText(body.model) ?? target.model,
      encoding: body.encoding_format === "base64" ? "base64" : "float",
      counts,
      estimatedTokens: items.reduce((sum, item) => sum + item.tokens, 0),
      normalises: settings.outputDimensionality !== undefined && !isMultimodal(target.model),
    },
    dropped: dropped.entries,
  };
}

function encodeSettings({ dimensions, task_type: taskType, title }: JsonObject): JsonObject {
  if (isPresent(taskType) && !TASK_TYPES.has(taskType)) {
    throw invalidField("task_type", `expected one of ${[...TASK_TYPES].join(", ")}.`);
  }
  return compact({
    taskType: optionalText(taskType),
    title: nonEmptyText(title),
    outputDimensionality: optionalNumber(dimensions),
  });
}

interface EmbeddingItem {
  parts: GeminiPart[];
  /** A guess: a token for every 4 bytes of text, and TOKENS_PER_FILE for each file. */
  tokens: number;
}

const BYTES_PER_TOKEN = 4;
/** What a picture costs; of the length of audio and video nothing is known here. */
const TOKENS_PER_FILE = 258;

/** The entries of `input`, checked; throws a 400 that names the entry for what the model cannot embed. */
export function readMultimodalInput(input: unknown, model: string): EmbeddingItem[] {
  const reading: Reading = { model, images: 0 };
  if (typeof input === "string") return [readText(input, "input")];
  if (!Array.isArray(input)) throw wrongType("input", "a string or an array", input);
  if (input.length === 0) throw invalidField("input", "must not be empty.");
  return input.map((entry, index) => readEntry(entry, `input[${index}]`, reading));
}

interface Reading {
  model: string;
  /** Images of the whole request so far. */
  images: number;
}

function readEntry(entry: unknown, path: string, reading: Reading): EmbeddingItem {
  if (typeof entry === "string") return readText(entry, path);
  if (typeof entry === "number") throw tokenIds("input");
  if (isObject(entry)) {
    const { content } = entry;
    if (Array.isArray(content) && entry.type === undefined) return readParts(content, `${path}.content`, reading);
    return readPart(entry, path, reading);
  }
  if (!Array.isArray(entry)) throw wrongType(path, "a text or content parts", entry);
  if (entry.length > 0 && entry.every((token) => typeof token === "number")) throw tokenIds(path);
  return readParts(entry, path, reading);
}

function tokenIds(path: string): Error {
  return invalidField(path, "this model's backend takes texts, no token ids.");
}

function readParts(parts: readonly unknown[], path: string, reading: Reading): EmbeddingItem {
  if (parts.length === 0) throw invalidField(path, "must not be empty.");
  const items = parts.map((part, index) => readEntryPart(part, `${path}[${index}]`, reading));
  return { parts: items.flatMap((item) => item.parts), tokens: items.reduce((sum, item) => sum + item.tokens, 0) };
}

function readEntryPart(part: unknown, path: string, reading: Reading): EmbeddingItem {
  if (typeof part === "string") return readText(part, path);
  if (!isObject(part)) throw wrongType(path, "a content part", part);
  return readPart(part, path, reading);
}

function readText(text: unknown, path: string): EmbeddingItem {
  if (typeof text !== "string") throw missingField(path, "a string.");
  if (text === "") throw invalidField(path, "must not be empty.");
  return { parts: [{ text }], tokens: Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN) };
}

type MediaKind = "image" | "audio" | "video" | "document";

interface Media {
  kind: MediaKind;
  /** A data: URL or an address. */
  url: string;
  path: string;
}

function readPart(part: JsonObject, path: string, reading: Reading): EmbeddingItem {
  if (part.type === "text" || part.type === "input_text") return readText(part.text, `${path}.text`);
  const media = readMedia(part, path);
  if (media === undefined) throw invalidField(`${path}.type`, `parts of type ${say(part.type)} cannot be embedded.`);
  if (!isMultimodal(reading.model)) {
    throw invalidField(
      path,
      `the model ${reading.model} embeds text only, but this part is of type ${say(part.type)}.`,
    );
  }
  const encoded = encodeMedia(media);
  const { mimeType = "" } = (encoded.inlineData ?? encoded.fileData) as { mimeType?: string };
  if (media.kind === "image" || mimeType.startsWith("image/")) {
    reading.images++;
    if (reading.images > MAX_IMAGES) throw invalidField("input", `a request may have at most ${MAX_IMAGES} images.`);
  }
  return { parts: [encoded], tokens: TOKENS_PER_FILE };
}

function say(type: unknown): string {
  return typeof type === "string" ? JSON.stringify(type.slice(0, 80)) : "unknown";
}

function readMedia(part: JsonObject, path: string): Media | undefined {
  switch (part.type) {
    case "image_url":
    case "input_image":
      return { kind: "image", ...urlIn(part, "image_url", path) };
    case "audio_url":
      return { kind: "audio", ...urlIn(part, "audio_url", path) };
    case "video_url":
    case "input_video":
      return { kind: "video", ...urlIn(part, "video_url", path) };
    case "input_audio":
      return readAudio(part.input_audio, `${path}.input_audio`);
    case "file":
      return readFile(objectOf(part.file), `${path}.file`);
    case "input_file":
      return readFile(part, path);
    default:
      return undefined;
  }
}

function urlIn(part: JsonObject, field: string, path: string): Pick<Media, "url" | "path"> {
  const holder = part[field];
  const url = nonEmptyText(isObject(holder) ? holder.url : holder);
  if (url === undefined) throw missingField(`${path}.${field}`, "a data: URL.");
  return { url, path: `${path}.${field}` };
}

const AUDIO_TYPES: ReadonlyMap<string, string> = new Map([["mp3", "audio/mpeg"]]);

function readAudio(audio: unknown, path: string): Media {
  const { data: given, format: named } = objectOf(audio);
  const data = nonEmptyText(given);
  const format = nonEmptyText(named);
  if (data === undefined) throw missingField(`${path}.data`, "the audio in base64.");
  if (format === undefined) throw missingField(`${path}.format`, '"wav" or "mp3".');
  const url = data.startsWith("data:") ? data : `data:${AUDIO_TYPES.get(format) ?? `audio/${format}`};base64,${data}`;
  return { kind: "audio", url, path: `${path}.data` };
}

function readFile(file: JsonObject, path: string): Media {
  const url = nonEmptyText(file.file_url);
  if (url !== undefined) return { kind: "document", url, path: `${path}.file_url` };
  const data = nonEmptyText(file.file_data);
  if (data === undefined) throw missingField(`${path}.file_data`, "a data: URL; files cannot be embedded by their id.");
  if (/^(?:data:|https?:)/.test(data)) return { kind: "document", url: data, path: `${path}.file_data` };
  const mediaType = typeOfUrl(nonEmptyText(file.filename) ?? "") ?? "application/pdf";
  return { kind: "document", url: `data:${mediaType};base64,${data}`, path: `${path}.file_data` };
}

function encodeMedia({ kind, url, path }: Media): GeminiPart {
  if (FILE_STORAGE.test(url)) return { fileData: { fileUri: url } };
  const parsed = parseDataUrl(url);
  if (parsed === undefined) throw invalidField(path, "expected a data: URL with base64.");
  const { mediaType, base64, decodedBytes } = parsed;
  if (decodedBytes === 0) throw invalidField(path, "the file is empty.");
  if (decodedBytes > MAX_INLINE_BYTES) {
    throw invalidField(path, `a file may have at most ${MAX_INLINE_BYTES / MEBIBYTE} MiB.`);
  }
  const isRight = kind === "document" ? mediaType !== "" : mediaType.startsWith(`${kind}/`);
  if (!isRight)
    throw invalidField(path, `expected ${kind === "document" ? "a media type" : `${kind}/...`} in the URL.`);
  return { inlineData: { mimeType: mediaType, data: base64 } };
}

/** @param answers - one for each body, in the same order */
export function decodeEmbeddings(answers: readonly unknown[], context: EmbeddingContext): JsonObject {
  if (answers.length !== context.counts.length) throw new DecodeError("is incomplete: a batch has no answer");
  const data: JsonObject[] = [];
  let counted: number | undefined = 0;
  for (const [index, answer] of answers.entries()) {
    const vectors = vectorsOf(answer);
    if (vectors.length !== context.counts[index]) throw new DecodeError("has not as many embeddings as were asked for");
    for (const vector of vectors) {
      const embedding = encodeVector(context.normalises ? normalise(vector) : vector, context.encoding);
      data.push({ object: "embedding", index: data.length, embedding });
    }
    const tokens = tokensOf(answer);
    counted = counted === undefined || tokens === undefined ? undefined : counted + tokens;
  }
  const tokens = counted ?? context.estimatedTokens;
  return { object: "list", data, model: context.model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** batchEmbedContents says embeddings[{values}], embedContent embedding{values}, predict predictions[{embeddings}]. */
function vectorsOf(answer: unknown): number[][] {
  if (!isObject(answer)) throw new DecodeError("is no JSON object");
  const embeddings = isObject(answer.embedding) ? [answer.embedding] : embeddingsIn(answer);
  return embeddings.map(({ values }) => {
    if (!Array.isArray(values) || values.length === 0 || !values.every((value) => typeof value === "number")) {
      throw new DecodeError("has an embedding without numbers");
    }
    return values;
  });
}

function embeddingsIn({ embeddings, predictions }: JsonObject): JsonObject[] {
  return predictions === undefined
    ? objectsOf(embeddings)
    : objectsOf(predictions).map((prediction) => objectOf(prediction.embeddings));
}

function tokensOf(answer: unknown): number | undefined {
  if (isObject(answer) && answer.predictions !== undefined) return countedByPredict(answer);
  const usage = objectOf(objectOf(answer).usageMetadata);
  return optionalCount(usage.promptTokenCount) ?? optionalCount(usage.totalTokenCount);
}

/** Each prediction counts its own tokens. */
function countedByPredict(answer: JsonObject): number | undefined {
  const counts = embeddingsIn(answer).map(({ statistics }) => optionalCount(objectOf(statistics).token_count));
  return counts.reduce((sum, count) => (sum === undefined || count === undefined ? undefined : sum + count), 0);
}

const ENOUGH = 1e-6;

function normalise(vector: number[]): number[] {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  if (length === 0 || Math.abs(length - 1) < ENOUGH) return vector;
  return vector.map((value) => value / length);
}

/** base64: 32-bit floats, little endian. */
function encodeVector(vector: number[], encoding: EmbeddingContext["encoding"]): number[] | string {
  if (encoding === "float") return vector;
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
