// Every public path, its method, who may use it, and what answers.

import { SERVICE_NAME } from "../names.ts";
import type { GenerateRequest } from "../pipeline/generate.ts";
import { readChatRequest } from "../protocols/chat/request.ts";
import { readCompletionRequest } from "../protocols/completions/request.ts";
import { readSparseEmbeddingRequest } from "../protocols/embed-sparse/request.ts";
import { readEmbeddingRequest } from "../protocols/embeddings/request.ts";
import { readCountTokensRequest, readMessagesRequest } from "../protocols/messages/read-request.ts";
import { readRerankRequest } from "../protocols/rerank/request.ts";
import { readResponsesRequest } from "../protocols/responses/read-request.ts";
import type { Answering, Call, Endpoint } from "../server/endpoint.ts";
import { type GenerationParts, generationEndpoint } from "./generation.ts";
import { estimatedCount, messagesModel, messagesModelList } from "./messages.ts";
import { type ModelDirectory, modelEndpoint, modelListEndpoint } from "./models.ts";
import { arrangeResponse, noteResponse, type ResponsesParts } from "./responses.ts";
import { welcomeRoutes } from "./welcome.ts";

const MEBIBYTE = 1024 * 1024;

/** Body limits of decisions.md, section 3. */
const BODY_LIMITS = {
  chat: 32 * MEBIBYTE,
  responses: 32 * MEBIBYTE,
  messages: 32 * MEBIBYTE,
  completions: 8 * MEBIBYTE,
  embeddings: 64 * MEBIBYTE,
  others: 8 * MEBIBYTE,
};

/** Beginnings of paths that clients know from other servers, and that are not built. */
export const NOT_BUILT: readonly string[] = [
  "/v1/assistants",
  "/v1/audio",
  "/v1/batches",
  "/v1/containers",
  "/v1/conversations",
  "/v1/evals",
  "/v1/files",
  "/v1/fine_tuning",
  "/v1/images",
  "/v1/messages/batches",
  "/v1/moderations",
  "/v1/realtime",
  "/v1/responses",
  "/v1/threads",
  "/v1/uploads",
  "/v1/vector_stores",
  "/v1/videos",
  "/v1beta",
  "/anthropic/v1/files",
  "/anthropic/v1/messages/batches",
  "/api",
];

export interface PublicApiParts extends GenerationParts {
  models: ModelDirectory;
  /** The request under the model that its alias leads to. */
  aliases(asked: GenerateRequest): GenerateRequest;
  responses: ResponsesParts;
  /** Whether a backend of the model counts tokens itself. */
  hasCounter(model: string): boolean;
  /** Whether at least one backend can take requests. */
  isReady(): boolean;
}

export function publicRoutes(parts: PublicApiParts): Endpoint[] {
  const health: Answering = {
    access: "open",
    isWatched: true,
    handle: (call) => json(call, { status: "healthy", service: SERVICE_NAME }),
  };
  const ready: Answering = {
    access: "open",
    isWatched: true,
    handle: (call) =>
      parts.isReady()
        ? json(call, { status: "ready", service: SERVICE_NAME })
        : json(call, { status: "not_ready", service: SERVICE_NAME, reason: "no backend is healthy" }, 503),
  };
  return [
    ...welcomeRoutes(),
    { method: "GET", path: "/health", ...health },
    { method: "GET", path: "/healthz", ...health },
    { method: "GET", path: "/readyz", ...ready },
    { method: "GET", path: "/v1/models", ...modelListEndpoint(parts.models) },
    { method: "GET", path: "/v1/models/{model...}", ...modelEndpoint(parts.models) },
    ...generationRoutes(parts),
    { method: "GET", path: "/anthropic/v1/models", ...messagesModelList(parts.models) },
    { method: "GET", path: "/anthropic/v1/models/{model...}", ...messagesModel(parts.models) },
  ];
}

function generationRoutes(parts: PublicApiParts): Endpoint[] {
  const { aliases, responses, hasCounter } = parts;
  const messages = generationEndpoint(
    {
      operation: "messages",
      maxBodyBytes: BODY_LIMITS.messages,
      read: readMessagesRequest,
      arrange: (_call, asked) => aliases(asked),
    },
    parts,
  );
  const rerank = generationEndpoint(
    { operation: "rerank", maxBodyBytes: BODY_LIMITS.others, read: readRerankRequest },
    parts,
  );
  const embedSparse = generationEndpoint(
    { operation: "embed-sparse", maxBodyBytes: BODY_LIMITS.others, read: readSparseEmbeddingRequest },
    parts,
  );
  const countTokens = generationEndpoint(
    {
      operation: "count-tokens",
      maxBodyBytes: BODY_LIMITS.messages,
      read: (body) => ({ ...readCountTokensRequest(body), stream: false, choices: 1, affinity: () => undefined }),
      arrange: (_call, asked) => aliases(asked),
      answerHere: (call, asked) => (hasCounter(asked.model) ? undefined : estimatedCount(call, asked, parts.models)),
    },
    parts,
  );
  return [
    {
      method: "POST",
      path: "/v1/chat/completions",
      ...generationEndpoint({ operation: "chat", maxBodyBytes: BODY_LIMITS.chat, read: readChatRequest }, parts),
    },
    {
      method: "POST",
      path: "/v1/completions",
      ...generationEndpoint(
        { operation: "completions", maxBodyBytes: BODY_LIMITS.completions, read: readCompletionRequest },
        parts,
      ),
    },
    {
      method: "POST",
      path: "/v1/responses",
      ...generationEndpoint(
        {
          operation: "responses",
          maxBodyBytes: BODY_LIMITS.responses,
          read: readResponsesRequest,
          arrange: (call, asked) => arrangeResponse(call, asked, responses),
          noted: (call, asked, generated, ended) => noteResponse(call, asked, generated, ended, responses.store),
        },
        parts,
      ),
    },
    { method: "POST", path: "/v1/messages", ...messages },
    { method: "POST", path: "/anthropic/v1/messages", ...messages },
    { method: "POST", path: "/v1/messages/count_tokens", ...countTokens },
    { method: "POST", path: "/anthropic/v1/messages/count_tokens", ...countTokens },
    {
      method: "POST",
      path: "/v1/embeddings",
      ...generationEndpoint(
        { operation: "embeddings", maxBodyBytes: BODY_LIMITS.embeddings, read: readEmbeddingRequest },
        parts,
      ),
    },
    { method: "POST", path: "/v1/rerank", ...rerank },
    { method: "POST", path: "/rerank", ...rerank },
    { method: "POST", path: "/embed_sparse", ...embedSparse },
    { method: "POST", path: "/v1/embed_sparse", ...embedSparse },
  ];
}

export function json({ headers }: Call, body: unknown, status = 200): Response {
  return Response.json(body, { status, headers });
}
