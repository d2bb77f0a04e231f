// Requests and answers of Gemini's API as JSON Schema: what the gateway checks of requests, and what clients can rely on.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyObject,
  anyOf,
  count,
  described,
  integer,
  lenientRequest,
  list,
  number,
  open,
  ref,
  type Schemas,
  shape,
  text,
  texts,
} from "../openapi/json-schema.ts";

const filledList = (items: JsonSchema): JsonSchema => ({ ...list(items), minItems: 1 });

const content = open(
  { parts: described(list(anyObject), "Such as {text}, {inlineData}, {functionCall} or {functionResponse}.") },
  { role: described(text, "user or model; left out: user.") },
);

const generationConfig = open(
  {},
  {
    temperature: { type: "number", minimum: 0, maximum: 2 },
    topP: { type: "number", minimum: 0, maximum: 1 },
    topK: { type: "number", minimum: 0 },
    candidateCount: { type: "integer", minimum: 1, maximum: 8 },
    maxOutputTokens: { type: "integer", minimum: 1 },
    stopSequences: texts,
    responseMimeType: text,
    responseSchema: anyObject,
    responseJsonSchema: anyObject,
    thinkingConfig: anyObject,
  },
);

const conversation = {
  systemInstruction: described(anyOf(text, anyObject), "A content, or a text."),
  tools: list(anyObject),
  toolConfig: anyObject,
  generationConfig,
};

const embedded = { content: { ...content, description: "All of its parts give one vector." } };
const embedOptions = { taskType: text, title: text, outputDimensionality: integer };
const vector = open({ values: list(number) });
const counts = open({}, { promptTokenCount: count, candidatesTokenCount: count, totalTokenCount: count });

export const CONTENT_SCHEMAS: Schemas = {
  GenerateContentRequest: lenientRequest(
    { contents: filledList(content) },
    { ...conversation, safetySettings: list(anyObject), cachedContent: text },
  ),
  GenerateContentResponse: open(
    {},
    {
      candidates: list(open({}, { content: open({}, { parts: list(anyObject), role: text }), finishReason: text })),
      promptFeedback: anyObject,
      usageMetadata: counts,
      modelVersion: text,
      responseId: text,
    },
  ),
  GenerateContentResponses: described(
    list(ref("GenerateContentResponse")),
    "The stream as one array, whose members hold one piece after the other.",
  ),
  CountContentRequest: lenientRequest({ contents: filledList(content) }, conversation),
  ContentTokenCount: open({ totalTokens: count }),
  EmbedContentRequest: lenientRequest(embedded, embedOptions),
  EmbedContentResponse: open({ embedding: vector }, { usageMetadata: counts }),
  BatchEmbedContentsRequest: lenientRequest(
    {
      requests: { ...filledList(open({ ...embedded }, { model: text, ...embedOptions })), maxItems: 100 },
    },
    {},
  ),
  BatchEmbedContentsResponse: open({ embeddings: list(vector) }, { usageMetadata: counts }),
  ContentModel: shape(
    {
      name: described(text, "models/ and the id."),
      baseModelId: text,
      version: text,
      displayName: text,
      supportedGenerationMethods: texts,
    },
    { description: text, inputTokenLimit: count, outputTokenLimit: count, thinking: { type: "boolean" } },
  ),
  ContentModelList: shape({ models: list(ref("ContentModel")) }, { nextPageToken: text }),
  ContentError: shape({
    error: open({ code: integer, message: text, status: text }, { details: list(anyObject) }),
  }),
};
