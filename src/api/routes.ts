// Every endpoint of the public API, in the order of the OpenAPI document.

import type { Operation } from "../backends/operations.ts";
import type { Budgets } from "../budgets/budgets.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { FilesInUse } from "../files/file-store.ts";
import { SERVICE_NAME } from "../names.ts";
import { text } from "../openapi/json-schema.ts";
import { at, type DescribedEndpoint, jsonAnswer, type Parameter } from "../openapi/operation.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import { readChatRequest } from "../protocols/chat/read-request.ts";
import { readCompletionRequest } from "../protocols/completions/read-request.ts";
import { readSparseEmbeddingRequest } from "../protocols/embed-sparse/read-request.ts";
import { readEmbeddingRequest } from "../protocols/embeddings/read-request.ts";
import { estimateInputTokens } from "../protocols/messages/count-tokens.ts";
import { readCountTokensRequest, readMessagesRequest } from "../protocols/messages/read-request.ts";
import { readRerankRequest } from "../protocols/rerank/read-request.ts";
import { readResponsesRequest } from "../protocols/responses/read-request.ts";
import { type AttachmentParts, arrangeAttachments } from "./attachments.ts";
import { contentRoutes } from "./content.ts";
import { estimated } from "./estimated.ts";
import { fileRoutes } from "./file-routes.ts";
import { FILE_SCHEMAS } from "./file-schemas.ts";
import type { UploadParts } from "./file-upload.ts";
import { OPENAI_FILES } from "./files.ts";
import { generating } from "./generating.ts";
import type { GenerationParts } from "./generation.ts";
import { GENERATION_SCHEMAS } from "./generation-schemas.ts";
import { keyRoutes } from "./me.ts";
import { MEDIA_SCHEMAS, mediaRoutes } from "./media-routes.ts";
import { messagesErrors, messagesModelRoutes } from "./messages.ts";
import { MESSAGES_FILES } from "./messages-files.ts";
import { MODEL_SCHEMAS } from "./model-schemas.ts";
import { type ModelParts, modelRoutes } from "./models.ts";
import { ollamaRoutes } from "./ollama.ts";
import { OF_A_MACHINE, ollamaModelRoutes } from "./ollama-models.ts";
import { OLLAMA_SCHEMAS } from "./ollama-schemas.ts";
import { arrangeBrought, arrangeResponse, noteResponse, type ResponsesParts } from "./responses.ts";
import { welcomeRoutes } from "./welcome.ts";

const MEBIBYTE = 1024 * 1024;

/** In bytes; docs/api.md lists them. */
const BODY_LIMITS = {
  chat: 32 * MEBIBYTE,
  responses: 32 * MEBIBYTE,
  messages: 32 * MEBIBYTE,
  completions: 8 * MEBIBYTE,
  embeddings: 64 * MEBIBYTE,
  others: 8 * MEBIBYTE,
};

/** Beginnings of paths that clients know from other servers, and that are not built; some with the reason. */
export const NOT_BUILT: readonly (string | readonly [beginning: string, reason: string])[] = [
  "/v1/assistants",
  "/v1/containers",
  "/v1/conversations",
  "/v1/evals",
  "/v1/fine_tuning",
  "/v1/realtime",
  "/v1/responses",
  "/v1/threads",
  "/v1/uploads",
  "/v1/vector_stores",
  "/v1/videos",
  "/v1beta/batches",
  "/v1beta/cachedContents",
  "/v1beta/files",
  "/v1beta/fileSearchStores",
  "/v1beta/interactions",
  "/v1beta/operations",
  "/v1beta/tunedModels",
  ...OF_A_MACHINE,
  "/api",
];

export interface PublicApiParts extends GenerationParts {
  files: FilesInUse;
  uploads: UploadParts;
  models: ModelParts;
  /** The request under the model that its alias leads to. */
  aliases(asked: ModelRequest): ModelRequest;
  responses: ResponsesParts;
  attachments: Omit<AttachmentParts, "files" | "bodies">;
  /** True if a backend of the model counts tokens itself, by this operation. */
  hasCounter(model: string, operation: Operation): boolean;
  /** True if at least one backend can take requests. */
  isReady(): boolean;
  /** Limits of requests. */
  limits: Settings["rate_limiting"];
  budgets: Pick<Budgets, "standings">;
  currency: string;
}

export function publicRoutes(parts: PublicApiParts): DescribedEndpoint[] {
  const { models } = parts;
  const files = { ...parts.uploads, files: parts.files };
  const ofModels = [
    ...welcomeRoutes(),
    ...healthRoutes(parts),
    ...modelRoutes(models),
    ...messagesModelRoutes(models),
    ...keyRoutes(parts),
  ];
  const ofGeneration = [...textRoutes(parts), ...messagesRoutes(parts), ...vectorRoutes(parts)];
  const ofMedia = mediaRoutes(parts);
  const ofOllama = [
    ...ollamaRoutes(parts, { conversation: BODY_LIMITS.chat, embeddings: BODY_LIMITS.embeddings }),
    ...ollamaModelRoutes(parts),
  ];
  return [
    ...ofModels.map((endpoint) => ({ ...endpoint, schemas: MODEL_SCHEMAS })),
    ...ofGeneration.map((endpoint) => ({ ...endpoint, schemas: GENERATION_SCHEMAS })),
    ...contentRoutes(parts, { ...parts, ...parts.attachments }),
    ...ofMedia.map((endpoint) => ({ ...endpoint, schemas: MEDIA_SCHEMAS })),
    ...ofOllama.map((endpoint) => ({ ...endpoint, schemas: OLLAMA_SCHEMAS })),
    ...fileRoutes(files, OPENAI_FILES).map((endpoint) => ({ ...endpoint, schemas: FILE_SCHEMAS })),
    ...fileRoutes(files, MESSAGES_FILES).map((endpoint) => ({
      ...endpoint,
      ...messagesErrors(),
      schemas: FILE_SCHEMAS,
    })),
  ];
}

function healthRoutes({ isReady }: PublicApiParts): DescribedEndpoint[] {
  return [
    ...at(["/health", "/healthz"], {
      method: "GET",
      id: "getHealth",
      tag: "Health",
      access: "open",
      isWatched: true,
      summary: "Whether the process runs",
      answers: [jsonAnswer("Health", "It runs.")],
      errors: [],
      handle: ({ headers }) => Response.json({ status: "healthy", service: SERVICE_NAME }, { headers }),
    }),
    {
      method: "GET",
      path: "/readyz",
      id: "getReadiness",
      tag: "Health",
      access: "open",
      isWatched: true,
      summary: "Whether at least one backend can take requests",
      answers: [jsonAnswer("Readiness", "At least one backend can."), jsonAnswer("Readiness", "None can.", 503)],
      errors: [],
      handle({ headers }) {
        if (isReady()) return Response.json({ status: "ready", service: SERVICE_NAME }, { headers });
        const body = { status: "not_ready", service: SERVICE_NAME, reason: "no backend is healthy" };
        return Response.json(body, { status: 503, headers });
      },
    },
  ];
}

const HELLO = [{ role: "user", content: "Hello!" }];

function textRoutes(parts: PublicApiParts): DescribedEndpoint[] {
  const { responses } = parts;
  const attachments = { ...parts, ...parts.attachments };
  const ofFiles = arrangeAttachments("responses", attachments);
  return [
    ...generating(["/v1/chat/completions"], parts, {
      operation: "chat",
      maxBodyBytes: BODY_LIMITS.chat,
      read: readChatRequest,
      arrange: arrangeAttachments("chat", attachments),
      id: "createChatCompletion",
      summary: "Chat completion",
      description: "A stream ends with `data: [DONE]`. Fields that are not listed go to the backend as they are.",
      request: "ChatCompletionRequest",
      reply: "ChatCompletion",
      events: "ChatCompletionChunk",
      example: { model: "demo", messages: HELLO },
    }),
    ...generating(["/v1/completions"], parts, {
      operation: "completions",
      maxBodyBytes: BODY_LIMITS.completions,
      read: readCompletionRequest,
      id: "createCompletion",
      summary: "Text completion, the older form",
      description: "A stream ends with `data: [DONE]`.",
      request: "CompletionRequest",
      reply: "Completion",
      events: "Completion",
      example: { model: "demo", prompt: "Once upon a time" },
    }),
    ...generating(["/v1/responses"], parts, {
      operation: "responses",
      maxBodyBytes: BODY_LIMITS.responses,
      read: readResponsesRequest,
      arrange(call, asked) {
        const arranged = ofFiles(call, asked);
        const { bring } = responses.store;
        if (bring !== undefined) return arrangeBrought(call, arranged, responses, bring);
        if (!(arranged instanceof Promise)) return arrangeResponse(call, arranged, responses);
        return arranged.then((request) => arrangeResponse(call, request, responses));
      },
      noted: (call, asked, generated, ended) => noteResponse(call, asked, generated, ended, responses.store),
      id: "createResponse",
      summary: "Response, on backends of every type",
      request: "ResponsesRequest",
      reply: "Response",
      events: "ResponseEvent",
      example: { model: "demo", input: "Hello!" },
    }),
  ];
}

const versionHeaders = ["anthropic-version", "anthropic-beta"].map(
  (name): Parameter => ({
    name,
    in: "header",
    description: "Handed on to backends of this format.",
    schema: text,
  }),
);

function messagesRoutes(parts: PublicApiParts): DescribedEndpoint[] {
  const { aliases, hasCounter, models } = parts;
  const ofFiles = arrangeAttachments("messages", { ...parts, ...parts.attachments });
  return [
    ...generating(["/v1/messages", "/anthropic/v1/messages"], parts, {
      operation: "messages",
      maxBodyBytes: BODY_LIMITS.messages,
      read: readMessagesRequest,
      arrange: (call, asked) => ofFiles(call, aliases(asked)),
      id: "createMessage",
      summary: "Message, on backends of every type",
      parameters: versionHeaders,
      request: "MessagesRequest",
      reply: "Message",
      events: "MessageEvent",
      example: { model: "demo", max_tokens: 256, messages: HELLO },
    }),
    ...generating(["/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens"], parts, {
      operation: "count-tokens",
      maxBodyBytes: BODY_LIMITS.messages,
      read: (body) => ({ ...readCountTokensRequest(body), stream: false, choices: 1, affinity: () => undefined }),
      arrange: (call, asked) => ofFiles(call, aliases(asked)),
      answerHere(call, { model, operation, body }) {
        if (hasCounter(model, operation)) return undefined;
        return estimated(call, model, models, () => ({ input_tokens: estimateInputTokens(body.value) }));
      },
      id: "countTokens",
      summary: "Number of input tokens",
      description: "An estimate, marked by X-Signalbox-Estimate, where no backend of the model counts itself.",
      parameters: versionHeaders,
      request: "CountTokensRequest",
      reply: "TokenCount",
      headers: ["X-Signalbox-Backend", "X-Signalbox-Estimate"],
      example: { model: "demo", messages: HELLO },
    }),
  ];
}

function vectorRoutes(parts: PublicApiParts): DescribedEndpoint[] {
  return [
    ...generating(["/v1/embeddings"], parts, {
      operation: "embeddings",
      maxBodyBytes: BODY_LIMITS.embeddings,
      read: readEmbeddingRequest,
      id: "createEmbedding",
      summary: "Embeddings",
      request: "EmbeddingRequest",
      reply: "EmbeddingList",
      example: { model: "demo", input: "Hello!" },
    }),
    ...generating(["/v1/rerank", "/rerank"], parts, {
      operation: "rerank",
      maxBodyBytes: BODY_LIMITS.others,
      read: readRerankRequest,
      id: "rerank",
      summary: "Documents by their relevance for a query",
      request: "RerankRequest",
      reply: "RerankResult",
      example: { model: "reranker", query: "capital of France", documents: ["Paris", "Berlin"], top_n: 1 },
    }),
    ...generating(["/v1/embed_sparse", "/embed_sparse"], parts, {
      operation: "embed-sparse",
      maxBodyBytes: BODY_LIMITS.others,
      read: readSparseEmbeddingRequest,
      id: "embedSparse",
      summary: "Sparse embeddings",
      request: "SparseEmbeddingRequest",
      reply: "SparseEmbeddings",
      example: { model: "splade", inputs: ["Hello!"] },
    }),
  ];
}
