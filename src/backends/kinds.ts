// What Signalbox knows about each kind of backend, as data: one row per kind.
// Sources: the vendors' documents.

import type { BackendSettings } from "../config/sections/registry.ts";
import { GEMINI_EFFORTS, OPENAI_EFFORTS, USUAL_EFFORTS } from "../generation/reasoning-effort.ts";
import type { JsonObject } from "../lib/json.ts";
import type { BackendKindName } from "../names.ts";
import { PRESETS, type Preset, type PresetName, type PresetOperation } from "../presets.ts";
import { ENGINE_CHAT, OPENAI_CHAT, UNKNOWN_CHAT, vendorChat } from "../protocols/chat/quirks.ts";
import { bedrockRow } from "./bedrock/row.ts";
import { entraCredential } from "./credentials/entra.ts";
import { type AskedBody, type BackendKind, formatOfRow, type Prefill, probe } from "./kind.ts";
import { vertexRow } from "./vertex/row.ts";

/** OpenAI's own models, at whichever vendor. */
const OPENAI_MODELS = {
  chat: OPENAI_CHAT,
  efforts: OPENAI_EFFORTS,
  leastOutputTokens: 16, // a lower limit, which clients send to test a key, is refused
  searches: "in-responses",
  keepsFiles: true,
  takesOrganisation: true,
} as const;

/** "extra parameters" of vLLM's chat completions; SGLang reads the first, as its ChatCompletionRequest says. */
const CONTINUE_FINAL_MESSAGE: Prefill = {
  chat: { continue_final_message: true, add_generation_prompt: false },
  completions: {},
};

const BEARER = { header: "authorization", scheme: "bearer" } as const;

const OPENAI_PATHS = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
} as const;

/** Prompts of the last one go to /api/generate. */
const OLLAMA_PATHS = {
  ...OPENAI_PATHS,
  "ollama-api": "/api/chat",
} as const;

const IMAGE_PATHS = {
  images: "/v1/images/generations",
  "image-edits": "/v1/images/edits",
  "image-variations": "/v1/images/variations",
} as const;

const AUDIO_PATHS = {
  speech: "/v1/audio/speech",
  transcriptions: "/v1/audio/transcriptions",
  translations: "/v1/audio/translations",
} as const;

const MODERATION_PATHS = { moderations: "/v1/moderations" } as const;

const RERANK_PATHS = { rerank: "/v1/rerank", "embed-sparse": "/embed_sparse" } as const;

const ANTHROPIC_RESPONSE_HEADERS = [
  "anthropic-ratelimit-input-tokens-limit",
  "anthropic-ratelimit-input-tokens-remaining",
  "anthropic-ratelimit-input-tokens-reset",
  "anthropic-ratelimit-output-tokens-limit",
  "anthropic-ratelimit-output-tokens-remaining",
  "anthropic-ratelimit-output-tokens-reset",
  "anthropic-ratelimit-requests-limit",
  "anthropic-ratelimit-requests-remaining",
  "anthropic-ratelimit-requests-reset",
] as const;

const OPENAI_RESPONSE_HEADERS = [
  "openai-processing-ms",
  "openai-version",
  "x-ratelimit-limit-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
] as const;

/** A server of which nothing more is known than that it offers OpenAI's endpoints. */
function openAiStyle(name: BackendKindName, more: Partial<BackendKind> & Pick<BackendKind, "probe">): BackendKind {
  return {
    name,
    auth: BEARER,
    headers: {},
    paths: OPENAI_PATHS,
    modelList: { path: "/v1/models" },
    responseHeaders: [],
    chat: UNKNOWN_CHAT,
    efforts: USUAL_EFFORTS,
    ...more,
  };
}

/** The usual path of an operation behind a base URL. */
const BEHIND_BASE: Readonly<Record<PresetOperation, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  embeddings: "/embeddings",
  images: "/images/generations",
  moderations: "/moderations",
  rerank: "/rerank",
  speech: "/audio/speech",
  transcriptions: "/audio/transcriptions",
  translations: "/audio/translations",
};

/** Those of `backends[].forward_headers`. */
const ORGANISATION_HEADERS = ["openai-organization", "openai-project", "openai-beta"] as const;

const RATE_HEADERS = OPENAI_RESPONSE_HEADERS.filter((name) => name.startsWith("x-ratelimit-"));

/** The kind that the row of a preset means. */
function presetKind(name: PresetName, preset: Preset): BackendKind {
  const { url, urlForm, mount = "", key, serves, paths, health, chat = {} } = preset;
  const isEngine = key === undefined;
  const behindRoot = mount + (/\/v1$/.exec(url ?? urlForm ?? "")?.[0] ?? "");
  const list = preset.list ?? `${behindRoot}/models`;
  const chatPath = behindRoot + BEHIND_BASE.chat;
  const listOrChat =
    list === false ? probe(chatPath, [], { method: "POST", acceptStatus: [200, 400, 422], body: "{}" }) : probe(list);
  const { modelList: _, ...unlisted } = openAiStyle(name, {
    ...(url !== undefined && { defaultUrl: url }),
    ...(urlForm !== undefined && { urlForm }),
    ...(mount !== "" && { mounts: [mount] }),
    ...(key !== undefined && { environment: { keys: [key], isFound: preset.isFound === true } }),
    paths: {
      ...Object.fromEntries(serves.map((operation) => [operation, behindRoot + BEHIND_BASE[operation]])),
      ...paths,
    },
    probe: health === undefined ? listOrChat : probe(health, list === false ? [] : [list]),
    ...(preset.provider !== undefined && { provider: preset.provider }),
    // What an engine writes there is often the file of a model; a vendor that serves models of others names their makers.
    ...(isEngine && { ownedBy: name }),
    ...(preset.ownerSign !== undefined && { ownerSign: preset.ownerSign }),
    ...(preset.continues === true && { prefill: CONTINUE_FINAL_MESSAGE }),
    ...(chat.noLinks === true && { inlines: "all" }),
    ...(chat.nestedReasoning === true && { nestedReasoning: "known" }),
    ...(!isEngine && { responseHeaders: RATE_HEADERS }),
    ...(chat.efforts !== undefined && { efforts: chat.efforts }),
    chat: vendorChat(isEngine ? ENGINE_CHAT : UNKNOWN_CHAT, chat),
  });
  return list === false ? unlisted : { ...unlisted, modelList: { path: list } };
}

function presetKinds(): Record<PresetName, BackendKind> {
  const rows = Object.entries(PRESETS) as [PresetName, Preset][];
  return Object.fromEntries(rows.map(([name, preset]) => [name, presetKind(name, preset)])) as Record<
    PresetName,
    BackendKind
  >;
}

/** Discovery adds the backends that it finds in this order. */
const ROWS: Readonly<Record<Exclude<BackendKindName, "bedrock" | "vertex">, BackendKind>> = {
  openai: openAiStyle("openai", {
    defaultUrl: "https://api.openai.com",
    environment: { keys: ["OPENAI_API_KEY"], url: "OPENAI_BASE_URL", isFound: true },
    paths: { ...OPENAI_PATHS, ...IMAGE_PATHS, ...AUDIO_PATHS, ...MODERATION_PATHS, responses: "/v1/responses" },
    batchApi: {
      wire: "files",
      paths: { ...OPENAI_PATHS, responses: "/v1/responses" },
      headers: ORGANISATION_HEADERS,
    },
    probe: probe("/v1/models"),
    ownedBy: "openai",
    ownsNames: true,
    provider: "openai",
    responseHeaders: OPENAI_RESPONSE_HEADERS,
    ...OPENAI_MODELS,
  }),
  azure: {
    name: "azure",
    auth: { header: "api-key", scheme: "bare" },
    headers: {},
    paths: {
      chat: "/openai/deployments/{deployment}/chat/completions",
      completions: "/openai/deployments/{deployment}/completions",
      // The deployment is named by the body's model (Microsoft, "Azure OpenAI Responses API").
      responses: "/openai/v1/responses",
      embeddings: "/openai/deployments/{deployment}/embeddings",
      images: "/openai/deployments/{deployment}/images/generations",
      "image-edits": "/openai/deployments/{deployment}/images/edits",
      speech: "/openai/deployments/{deployment}/audio/speech",
      transcriptions: "/openai/deployments/{deployment}/audio/transcriptions",
      translations: "/openai/deployments/{deployment}/audio/translations",
    },
    // Microsoft, "Getting started with Azure OpenAI batch deployments": the lines say which format it is, and all of them name a
    // deployment that answers batches only.
    batchApi: {
      wire: "files",
      paths: { chat: "/v1/chat/completions", responses: "/v1/responses" },
      headers: ORGANISATION_HEADERS,
      mount: "/openai",
      endpoint: "/chat/completions",
      deploymentOf: (model, { batch_deployments }) => batch_deployments?.[model],
    },
    settings: { api_version: "optional", deployments: "optional", batch_deployments: "optional", entra_id: "optional" },
    credential: entraCredential,
    // The deployment stands in the path; in the body where the path does not name one.
    membersOf: ({ operation, model, settings }) =>
      operation === "responses" ? deploymentMember(model, settings) : undefined,
    mounts: ["/openai", "/anthropic"],
    // The service lists base models, not deployments: the models of an azure backend are configured.
    probe: probe("/openai/models"),
    ownedBy: "azure",
    provider: "azure.ai.openai",
    responseHeaders: ["apim-request-id", "x-ms-region", ...OPENAI_RESPONSE_HEADERS],
    deployments: { apiVersion: "2024-10-21", versioned: "responses" }, // the newest version that Microsoft calls generally available
    ...OPENAI_MODELS,
  },
  anthropic: {
    name: "anthropic",
    defaultUrl: "https://api.anthropic.com",
    environment: { keys: ["ANTHROPIC_API_KEY"], url: "ANTHROPIC_BASE_URL", isFound: true },
    auth: { header: "x-api-key", scheme: "bare" },
    headers: { "anthropic-version": "2023-06-01" },
    paths: { messages: "/v1/messages", "count-tokens": "/v1/messages/count_tokens" },
    batchApi: {
      wire: "inline",
      paths: { messages: "/v1/messages" },
      headers: ["anthropic-version", "anthropic-beta"],
    },
    modelList: {
      path: "/v1/models",
      pages: { query: "limit=1000", cursor: "last_id", parameter: "after_id", more: "has_more" },
    },
    // An empty body is refused with 400 before any token is spent, which proves address and service.
    probe: probe("/v1/messages", [], { method: "POST", acceptStatus: [200, 400, 401, 429], body: "{}" }),
    ownedBy: "anthropic",
    ownsNames: true,
    provider: "anthropic",
    // Anthropic, "Prefill Claude's response"; newer models refuse it (protocols/messages/model-rules.ts).
    prefill: { messages: {} },
    responseHeaders: ANTHROPIC_RESPONSE_HEADERS,
    chat: UNKNOWN_CHAT,
    efforts: [], // the messages encoder maps every effort by the tier of the model, auto and xhigh too
    searches: "everywhere",
    keepsFiles: true,
  },
  gemini: {
    name: "gemini",
    defaultUrl: "https://generativelanguage.googleapis.com",
    environment: { keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"], isFound: true },
    auth: { header: "x-goog-api-key", scheme: "bare" },
    headers: {},
    paths: {
      // Without alt=sse a streamed answer would be one JSON array.
      "generate-content": "/v1beta/models/{model}:{generateContent|streamGenerateContent?alt=sse}",
      "count-content": "/v1beta/models/{model}:countTokens",
      "embed-content": "/v1beta/models/{model}:batchEmbedContents",
      "embed-one-content": "/v1beta/models/{model}:embedContent",
      "image-content": "/v1beta/models/{model}:generateContent",
    },
    batchApi: {
      wire: "operations",
      paths: { "generate-content": "/v1beta/models/{model}:batchGenerateContent" },
      headers: [],
    },
    modelList: {
      path: "/v1beta/models",
      pages: { query: "pageSize=1000", cursor: "nextPageToken", parameter: "pageToken" },
    },
    probe: probe("/models", ["/v1beta/models"]),
    ownedBy: "google",
    ownsNames: true,
    provider: "gcp.gemini",
    responseHeaders: [],
    chat: UNKNOWN_CHAT,
    efforts: GEMINI_EFFORTS,
    inlines: "translated",
    searches: "everywhere",
  },
  // Neither Ollama nor LM Studio documents whether it continues a last message of the assistant: it depends on the template.
  ollama: openAiStyle("ollama", {
    defaultUrl: "http://127.0.0.1:11434",
    paths: OLLAMA_PATHS,
    probe: probe("/api/tags", ["/"]),
    ownedBy: "ollama",
    localSigns: [{ path: "/api/tags", list: "models", member: "digest" }],
    impliedTag: "latest",
    intake: { path: "/api/show", of: "model" },
    chat: { ...ENGINE_CHAT, extras: new Set(), toolChoice: "nothing" },
    nestedReasoning: "known",
    inlines: "all", // Ollama takes images only as base64, and fetches no URL.
  }),
  lmstudio: openAiStyle("lmstudio", {
    defaultUrl: "http://127.0.0.1:1234",
    modelList: { path: "/v1/models", otherPath: "/api/v1/models" },
    // The second is the form before version 0.4.
    localSigns: [
      { path: "/api/v1/models", list: "models", member: "key" },
      { path: "/api/v0/models", list: "data", member: "state" },
    ],
    probe: probe("/v1/models", ["/api/v1/models"]),
    ownedBy: "lmstudio",
    paths: { ...OPENAI_PATHS, ...IMAGE_PATHS },
    chat: { ...ENGINE_CHAT, jsonObject: false },
  }),
  vllm: openAiStyle("vllm", {
    defaultUrl: "http://127.0.0.1:8000",
    paths: { ...OPENAI_PATHS, ...RERANK_PATHS, ...IMAGE_PATHS, ...AUDIO_PATHS },
    probe: probe("/health", ["/v1/models"]),
    ownedBy: "vllm",
    ownerSign: "vllm",
    chat: { ...ENGINE_CHAT, isOldLimit: false, toolChoice: "named", audio: true, video: true },
    prefill: CONTINUE_FINAL_MESSAGE,
  }),
  llamacpp: openAiStyle("llamacpp", {
    paths: { ...OPENAI_PATHS, rerank: RERANK_PATHS.rerank },
    probe: probe("/health", ["/v1/models"]),
    ownedBy: "llamacpp",
    ownerSign: "llamacpp",
    serverSign: "llama.cpp",
    intake: { path: "/props", of: "server" },
    chat: { ...ENGINE_CHAT, audio: true },
    ranksTextsOnly: true,
    // llama-server's option --no-prefill-assistant says so: a last message of the assistant is a prefill.
    prefill: { chat: {}, completions: {} },
  }),
  // Another gateway of this kind: every format passes through, and the far one translates and decides about searches.
  federated: openAiStyle("federated", {
    paths: {
      ...OPENAI_PATHS,
      ...RERANK_PATHS,
      ...IMAGE_PATHS,
      ...AUDIO_PATHS,
      ...MODERATION_PATHS,
      responses: "/v1/responses",
      messages: "/v1/messages",
      "count-tokens": "/v1/messages/count_tokens",
    },
    probe: probe("/health", ["/v1/models"]),
    chat: {
      ...OPENAI_CHAT,
      extras: new Set([...OPENAI_CHAT.extras, "top_k"]),
      video: true,
      reasoning: ["reasoning_content"],
      isStrict: false,
      isGateway: true,
    },
    nestedReasoning: "known",
    searches: "everywhere",
    keepsFiles: true,
  }),
  generic: openAiStyle("generic", {
    paths: { ...OPENAI_PATHS, ...RERANK_PATHS, ...IMAGE_PATHS, ...AUDIO_PATHS, ...MODERATION_PATHS },
    probe: probe("/v1/models", ["/health"]),
    nestedReasoning: "kept",
  }),
  demo: openAiStyle("demo", {
    defaultUrl: "http://demo.invalid",
    paths: { ...OPENAI_PATHS, images: IMAGE_PATHS.images },
    probe: probe("/health"),
    ownedBy: "signalbox",
    isEmbedded: true,
  }),
  ...presetKinds(),
};

function deploymentMember(model: string, { deployments }: BackendSettings): JsonObject | undefined {
  const deployment = deployments?.[model];
  return deployment === undefined ? undefined : { model: deployment };
}

/** Azure with Claude, and in its form without versions, which the address or the version of the API asks for. */
function azureRow(): BackendKind {
  const { deployments: _, membersOf: __, ...azure } = ROWS.azure;
  const { name, settings = {}, probe: check } = azure;
  const named = { membersOf: ({ model, settings }: AskedBody) => deploymentMember(model, settings) };
  // Microsoft, "Azure OpenAI in Azure AI Foundry Models v1 API"
  const paths = Object.entries(ROWS.azure.paths).map(([operation, path]) => {
    return [operation, path?.replace("/deployments/{deployment}/", "/v1/")];
  });
  const claude: BackendKind = {
    ...formatOfRow(ROWS.anthropic),
    ...{ name, settings, credential: entraCredential, probe: check, ...named },
    // @anthropic-ai/foundry-sdk
    paths: { messages: "/anthropic/v1/messages", "count-tokens": "/anthropic/v1/messages/count_tokens" },
    provider: "azure.ai.inference",
    keepsFiles: true,
  };
  const families = [{ models: /^claude/, kind: claude }];
  const unversioned: BackendKind = {
    ...azure,
    ...named,
    paths: Object.fromEntries(paths),
    probe: probe("/openai/v1/models"),
    families,
  };
  return {
    ...ROWS.azure,
    families,
    variant: ({ api_version, url }) =>
      api_version === "v1" || (api_version === undefined && /\/openai\/v1\/?$/.test(url ?? ""))
        ? unversioned
        : undefined,
  };
}

export const BACKEND_KINDS: Readonly<Record<BackendKindName, BackendKind>> = {
  ...ROWS,
  azure: azureRow(),
  vertex: vertexRow(ROWS.gemini, ROWS.anthropic),
  bedrock: bedrockRow(ROWS.anthropic),
};
