// A small client of Gemini's API, as strict about answers as its documentation.

import {
  type Ask,
  type AskPart,
  count,
  emptyReading,
  type JsonObject,
  object,
  objects,
  type ReadError,
  type Reading,
  type ReadPart,
  type ReadUsage,
  text,
  type WireClient,
  type WireEvent,
} from "../ask.ts";

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export const generateContentClient: WireClient = {
  name: "generate-content",
  path: (model, stream) => `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  headers: { "x-goog-api-key": "sk-sekret-client" },
  finishes: {
    stop: "STOP",
    "stop-sequence": "STOP",
    length: "MAX_TOKENS",
    "tool-calls": "STOP",
    "content-filter": "SAFETY",
  },
  write: writeContents,
  follow(body, reading, outcomes, question) {
    const calls = reading.parts.filter((part) => part.type === "call");
    const parts = [
      ...outcomes.map((outcome, index) => {
        const { id = "", name = "" } = calls[index] ?? {};
        return writeResult({ type: "result", id, ...outcome }, name);
      }),
      ...(question === undefined ? [] : [{ text: question }]),
    ];
    return { ...body, contents: [...objects(body.contents), ...reading.replay, { role: "user", parts }] };
  },
  readWhole: (body) => readChunks([body]),
  readStream: readContentStream,
  readError: readContentError,
};

function readContentError(body: JsonObject): ReadError {
  const { code, message, status } = object(body.error);
  return { type: typeof code === "number" ? text(status) : `no error body: ${code}`, message: text(message) };
}

function writeContents(ask: Ask, model: string): JsonObject {
  const names = new Map<string, string>();
  for (const { parts } of ask.turns) for (const part of parts) if (part.type === "call") names.set(part.id, part.name);
  const { generationConfig: moreConfig, ...more } = ask.more ?? {};
  const generationConfig = { ...writeConfig(ask), ...object(moreConfig) };
  const config = writeChoice(ask);
  return {
    model,
    ...(ask.system !== undefined && { systemInstruction: { parts: [{ text: ask.system }] } }),
    contents: ask.turns.map(({ role, parts }) => ({
      role: role === "assistant" ? "model" : role,
      parts: parts.map((part) => writePart(part, names)),
    })),
    ...(ask.tools && {
      tools: [
        {
          functionDeclarations: ask.tools.map(({ name, description, schema }) => ({
            name,
            description,
            parametersJsonSchema: schema,
          })),
        },
      ],
    }),
    ...(config && { toolConfig: { functionCallingConfig: config } }),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...more,
  };
}

function writeConfig({ maxTokens, temperature, topP, stop, schema, json, effort, thoughts }: Ask): JsonObject {
  const thinking = {
    ...(thoughts && { includeThoughts: true }),
    ...(effort !== undefined && { thinkingLevel: effort.toUpperCase() }),
  };
  return {
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(stop && { stopSequences: stop }),
    ...((schema !== undefined || json) && { responseMimeType: "application/json" }),
    ...(schema && { responseJsonSchema: schema }),
    ...(Object.keys(thinking).length > 0 && { thinkingConfig: thinking }),
  };
}

function writeChoice({ toolChoice }: Ask): JsonObject | undefined {
  if (toolChoice === undefined) return undefined;
  if (typeof toolChoice === "object") return { mode: "ANY", allowedFunctionNames: [toolChoice.name] };
  return { mode: { auto: "AUTO", none: "NONE", required: "ANY" }[toolChoice] };
}

function writePart(part: AskPart, names: ReadonlyMap<string, string>): JsonObject {
  switch (part.type) {
    case "text":
      return { text: part.text };
    case "image":
      return part.url === undefined
        ? { inlineData: { mimeType: "image/png", data: part.data } }
        : { fileData: { mimeType: "image/png", fileUri: part.url } };
    case "document":
      return { inlineData: { mimeType: "application/pdf", data: part.data } };
    case "audio":
      return { inlineData: { mimeType: "audio/wav", data: part.data } };
    case "call":
      return { functionCall: { id: part.id, name: part.name, args: part.arguments } };
    case "result":
      return writeResult(part, names.get(part.id) ?? "");
  }
}

function writeResult(
  { id, text: said, isError, image }: Extract<AskPart, { type: "result" }>,
  name: string,
): JsonObject {
  const parts = image === undefined ? {} : { parts: [{ inlineData: { mimeType: "image/png", data: image } }] };
  return {
    functionResponse: {
      ...(id !== "" && { id }),
      name,
      response: isError ? { error: said } : { output: said },
      ...parts,
    },
  };
}

function readContentStream(events: readonly WireEvent[]): Reading {
  const chunks: JsonObject[] = [];
  for (const [place, { name, data }] of events.entries()) {
    const chunk = JSON.parse(data) as JsonObject;
    if (chunk.error !== undefined) {
      const reading = readChunks(chunks);
      if (place !== events.length - 1) reading.offences.push("an event after the error");
      return { ...reading, end: "error", error: readContentError(chunk) };
    }
    if (name !== undefined) chunks.push({ ...chunk, offence: `an event with the name ${name}` });
    else chunks.push(chunk);
  }
  return readChunks(chunks);
}

/** Chunks say a piece each; a whole answer is one of them. */
function readChunks(chunks: readonly JsonObject[]): Reading {
  const reading = emptyReading();
  const parts: JsonObject[] = [];
  const sources: string[] = [];
  for (const chunk of chunks) {
    if (chunk.offence !== undefined) reading.offences.push(String(chunk.offence));
    reading.model ||= text(chunk.modelVersion);
    reading.id ||= text(chunk.responseId);
    if (chunk.usageMetadata !== undefined) reading.usage = readUsage(object(chunk.usageMetadata));
    const block = text(object(chunk.promptFeedback).blockReason);
    if (block !== "") reading.finish = block;
    for (const candidate of objects(chunk.candidates)) {
      if (candidate.index !== undefined && candidate.index !== 0) reading.offences.push("a second candidate");
      if (text(candidate.finishReason) !== "") reading.finish = text(candidate.finishReason);
      for (const part of objects(object(candidate.content).parts)) addPart(parts, part, reading);
      readGrounding(object(candidate.groundingMetadata), sources, reading);
    }
  }
  const citations = [...new Set(sources)];
  reading.parts.push(...parts.flatMap((part) => readPart(part, citations, reading)));
  reading.replay = [{ role: "model", parts }];
  reading.end = reading.finish === "" ? "cut" : "whole";
  return reading;
}

/** Texts of a kind that follow one another are one part. */
function addPart(parts: JsonObject[], part: JsonObject, reading: Reading): void {
  const { thoughtSignature } = part;
  if (thoughtSignature !== undefined && !BASE64.test(text(thoughtSignature))) {
    reading.offences.push(`a signature that is no base64: ${thoughtSignature}`);
  }
  const last = parts.at(-1);
  const isText = typeof part.text === "string" && typeof last?.text === "string" && last.thought === part.thought;
  if (last !== undefined && isText && last.thoughtSignature === undefined) {
    parts[parts.length - 1] = { ...last, ...part, text: `${last.text}${part.text}` };
  } else if (part.text !== "" || thoughtSignature !== undefined) parts.push(part);
}

function readGrounding(metadata: JsonObject, sources: string[], reading: Reading): void {
  for (const query of (metadata.webSearchQueries ?? []) as string[]) reading.parts.push({ type: "search", query });
  for (const { web } of objects(metadata.groundingChunks)) sources.push(text(object(web).uri));
}

function readPart(part: JsonObject, citations: readonly string[], reading: Reading): ReadPart[] {
  if (typeof part.text === "string") {
    if (part.thought === true) return [{ type: "thinking", text: part.text === "" ? "(sealed)" : part.text }];
    return part.text === "" ? [] : [{ type: "text", text: part.text, citations }];
  }
  const call = object(part.functionCall);
  if (typeof call.name === "string") {
    return [{ type: "call", id: text(call.id), name: call.name, arguments: JSON.stringify(object(call.args)) }];
  }
  reading.offences.push(`a part with ${Object.keys(part)}`);
  return [];
}

function readUsage(usage: JsonObject): ReadUsage {
  const reasoning = count(usage.thoughtsTokenCount);
  return {
    input: count(usage.promptTokenCount),
    cacheRead: count(usage.cachedContentTokenCount),
    cacheWrite: 0,
    output: count(usage.candidatesTokenCount) + reasoning,
    reasoning,
  };
}
