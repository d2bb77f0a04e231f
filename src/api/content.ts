// Gemini's API: models, answers, counts of tokens and embeddings, below /v1beta as its official SDKs ask for them.

import type { Operation } from "../backends/operations.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ModelListEntry } from "../models/list.ts";
import type { PublicMetadata } from "../models/metadata-lookup.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import { JSON_ARRAY } from "../protocols/generate-content/array-framing.ts";
import { estimatedCount, readCountRequest } from "../protocols/generate-content/count-tokens.ts";
import { readBatchRequest, readEmbedRequest } from "../protocols/generate-content/embed-content.ts";
import { generateContentClient } from "../protocols/generate-content/index.ts";
import { modelIn, readContentRequest } from "../protocols/generate-content/read-request.ts";
import type { Call } from "../server/endpoint.ts";
import { type AttachmentParts, arrangeAttachments } from "./attachments.ts";
import { CONTENT_SCHEMAS } from "./content-schemas.ts";
import { estimated } from "./estimated.ts";
import { generating } from "./generating.ts";
import { errorsOf, type GenerationParts } from "./generation.ts";
import { allowedModels, findAllowed, type ModelParts, modelFields, OF_A_READER } from "./models.ts";

interface ContentParts extends GenerationParts {
  models: ModelParts;
  /** True if a backend of the model counts tokens itself, by this operation. */
  hasCounter(model: string, operation: Operation): boolean;
}

const BASE = "/v1beta/models";
const MODEL = `${BASE}/{model...}`;

/** Newer SDKs ask below /v1, where GET has the models in OpenAI's shape. */
const pathsOf = (verb: string) => [MODEL, "/v1/models/{model...}"].map((path) => `${path}:${verb}`);

const MEBIBYTE = 1024 * 1024;
const MAX_BODY_BYTES = 32 * MEBIBYTE;
const MAX_VECTORS_BODY_BYTES = 64 * MEBIBYTE;

const modelParameter = pathParameter("model", "Id of a model; it may contain slashes and colons.");
const keyParameter = queryParameter("key", "The key, for clients that send it in no header.");
const shared = { takesKeyInQuery: true, parameters: [modelParameter, keyParameter] };
const EXAMPLE = { contents: [{ role: "user", parts: [{ text: "Hello!" }] }] };

export function contentRoutes(parts: ContentParts, attachments: AttachmentParts): DescribedEndpoint[] {
  const endpoints = [
    ...modelRoutes(parts.models),
    ...answerRoutes(parts, attachments),
    ...countRoutes(parts, attachments),
    ...vectorRoutes(parts),
  ];
  return endpoints.map((endpoint) => ({ ...endpoint, schemas: CONTENT_SCHEMAS }));
}

function answerRoutes(parts: ContentParts, attachments: AttachmentParts): DescribedEndpoint[] {
  const answering = {
    ...shared,
    operation: "generate-content",
    maxBodyBytes: MAX_BODY_BYTES,
    arrange: arrangeAttachments("generate-content", attachments),
    request: "GenerateContentRequest",
    example: EXAMPLE,
  };
  return [
    ...generating(pathsOf("generateContent"), parts, {
      ...answering,
      read: (body, { model = "" }) => readContentRequest(body, model, false),
      id: "generateContent",
      summary: "Answer in the shape of Gemini's API, on backends of every type",
      reply: "GenerateContentResponse",
    }),
    ...generating(pathsOf("streamGenerateContent"), parts, {
      ...answering,
      read: (body, { model = "" }) => readContentRequest(body, model, true),
      framing: (call) => (isEventStream(call) ? undefined : JSON_ARRAY),
      id: "streamGenerateContent",
      summary: "The same as a stream",
      description: "With `alt=sse` a stream of events, without it one JSON array.",
      parameters: [...shared.parameters, queryParameter("alt", "`sse` for a stream of events.")],
      reply: "GenerateContentResponses",
      events: "GenerateContentResponse",
    }),
  ];
}

function isEventStream({ request }: Call): boolean {
  const { searchParams } = new URL(request.url);
  return (searchParams.get("alt") ?? searchParams.get("$alt")) === "sse";
}

function countRoutes(
  { models, hasCounter, ...parts }: ContentParts,
  attachments: AttachmentParts,
): DescribedEndpoint[] {
  const operation = "count-content";
  return generating(pathsOf("countTokens"), parts, {
    ...shared,
    operation,
    maxBodyBytes: MAX_BODY_BYTES,
    read: (body, { model = "" }) => readCountRequest(body, model),
    arrange: arrangeAttachments(operation, attachments),
    answerHere: (call: Call, asked: ModelRequest) =>
      hasCounter(asked.model, operation)
        ? undefined
        : estimated(call, asked.model, models, () => estimatedCount(asked.body.value)),
    id: "countContentTokens",
    summary: "Number of input tokens in the shape of Gemini's API",
    description: "An estimate, marked by X-Signalbox-Estimate, where no backend of the model counts itself.",
    request: "CountContentRequest",
    reply: "ContentTokenCount",
    headers: ["X-Signalbox-Backend", "X-Signalbox-Estimate"],
    example: EXAMPLE,
  });
}

function vectorRoutes(parts: ContentParts): DescribedEndpoint[] {
  const embedding = { ...shared, maxBodyBytes: MAX_VECTORS_BODY_BYTES };
  const content = { parts: [{ text: "Hello!" }] };
  return [
    ...generating(pathsOf("embedContent"), parts, {
      ...embedding,
      operation: "embed-one-content",
      read: (body, { model = "" }) => readEmbedRequest(body, model),
      id: "embedContent",
      summary: "One embedding in the shape of Gemini's API",
      request: "EmbedContentRequest",
      reply: "EmbedContentResponse",
      example: { content },
    }),
    ...generating(pathsOf("batchEmbedContents"), parts, {
      ...embedding,
      operation: "embed-content",
      read: (body, { model = "" }) => readBatchRequest(body, model),
      id: "batchEmbedContents",
      summary: "Embeddings in the shape of Gemini's API",
      request: "BatchEmbedContentsRequest",
      reply: "BatchEmbedContentsResponse",
      example: { requests: [{ model: "models/demo", content }] },
    }),
  ];
}

const DEFAULT_PAGE = 50;
const MAX_PAGE = 1000;

function modelRoutes(models: ModelParts): DescribedEndpoint[] {
  return [
    {
      method: "GET",
      path: BASE,
      id: "listContentModels",
      tag: "Models",
      access: "read",
      takesKeyInQuery: true,
      summary: "Models in the shape of Gemini's API",
      parameters: [
        queryParameter("pageSize", "Most models of a page.", {
          type: "integer",
          minimum: 1,
          maximum: MAX_PAGE,
          default: DEFAULT_PAGE,
        }),
        queryParameter("pageToken", "The nextPageToken of the page before."),
        keyParameter,
      ],
      answers: [jsonAnswer("ContentModelList", "A page of models.")],
      errors: [...OF_A_READER, 400],
      ...errorsOf(generateContentClient),
      async handle({ request, context, headers }) {
        const all = await allowedModels(models, context.caller);
        const { entries, nextPageToken } = pageOf(all, new URL(request.url).searchParams);
        const shown = entries.map((entry) => toContentModel(entry, "metadata" in entry ? entry.metadata : undefined));
        return Response.json({ models: shown, ...(nextPageToken !== undefined && { nextPageToken }) }, { headers });
      },
    },
    {
      method: "GET",
      path: MODEL,
      id: "getContentModel",
      tag: "Models",
      access: "read",
      takesKeyInQuery: true,
      summary: "One model in the shape of Gemini's API",
      parameters: shared.parameters,
      answers: [jsonAnswer("ContentModel", "The model.")],
      errors: [...OF_A_READER, 400, 404],
      ...errorsOf(generateContentClient),
      async handle({ parameters: { model = "" }, context, headers }) {
        const found = await findAllowed(models, modelIn(model), context.caller);
        return Response.json(toContentModel(found, modelFields(models, found).metadata), { headers });
      },
    },
  ];
}

/** Of every model: which of them it can do is told by its backends alone, when it is asked. */
const METHOD_NAMES = ["generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents"];

/** google.ai.generativelanguage.v1beta.Model; what the metadata does not say is left out. */
function toContentModel({ id, created }: Pick<ModelListEntry, "id" | "created">, metadata: PublicMetadata | undefined) {
  const { display_name, limits } = metadata ?? {};
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: String(created),
    displayName: display_name ?? id,
    ...(limits?.context_window !== undefined && { inputTokenLimit: limits.context_window }),
    ...(limits?.max_output !== undefined && { outputTokenLimit: limits.max_output }),
    supportedGenerationMethods: METHOD_NAMES,
  };
}

/** The token of a page is the id of the model before it, so that a list that changes meanwhile loses none. */
function pageOf<Entry extends { id: string }>(all: readonly Entry[], query: URLSearchParams) {
  const token = query.get("pageToken");
  const start = token === null || token === "" ? 0 : all.findIndex(({ id }) => id === token) + 1;
  if (token !== null && token !== "" && start === 0) {
    throw new GatewayError(ERRORS.invalidRequest, "pageToken: there is no such page.", { param: "pageToken" });
  }
  const entries = all.slice(start, start + pageSize(query.get("pageSize")));
  const hasMore = start + entries.length < all.length;
  return { entries, nextPageToken: hasMore ? entries.at(-1)?.id : undefined };
}

function pageSize(text: string | null): number {
  if (text === null) return DEFAULT_PAGE;
  const size = Number(text);
  if (!Number.isInteger(size) || size < 0) {
    const message = `pageSize: expected a whole number, got ${text.slice(0, 40)}.`;
    throw new GatewayError(ERRORS.invalidRequest, message, { param: "pageSize" });
  }
  // As Google's API has it: 0 stands for the usual size, and a larger one for the largest.
  return size === 0 ? DEFAULT_PAGE : Math.min(size, MAX_PAGE);
}
