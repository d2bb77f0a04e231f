// What Signalbox knows about each kind of backend, as data: one row per kind.
// Sources: the vendors' documents.

import type { BackendSettings } from "../config/sections/registry.ts";
import type { ProtocolName } from "../generation/content.ts";
import { GEMINI_EFFORTS, OPENAI_EFFORTS, USUAL_EFFORTS } from "../generation/reasoning-effort.ts";
import type { JsonObject } from "../lib/json.ts";
import type { BackendKindName } from "../names.ts";
import { PRESETS, type Preset, type PresetName, type PresetOperation } from "../presets.ts";
import { ENGINE_CHAT, OPENAI_CHAT, UNKNOWN_CHAT, vendorChat } from "../protocols/chat/quirks.ts";
import type { Dialect } from "../protocols/protocol.ts";
import { AWS_SETTINGS, bedrockRow } from "./bedrock/row.ts";
import type { CredentialScheme } from "./credentials/credential.ts";
import { entraCredential } from "./credentials/entra.ts";
import { googleCredential } from "./credentials/google.ts";
import { bareName, resourceOf, usualAddress, versionMember } from "./vertex/addresses.ts";

/** An operation of backends; each has an endpoint of its own. Those that generate have the name of their format. */
export type Operation =
  | ProtocolName
  | "count-tokens"
  | "count-content"
  | "invoke-count-tokens"
  | "embeddings"
  | "embed-content"
  | "embed-one-content"
  | "invoke-embeddings"
  | "rerank"
  | "embed-sparse"
  | "images"
  | "image-edits"
  | "image-variations"
  | "image-content"
  | "speech"
  | "transcriptions"
  | "translations"
  | "moderations";

/** The formats of operations that do not have the name of theirs. */
const FORMATS: ReadonlyMap<Operation, ProtocolName | undefined> = new Map([
  ["count-tokens", undefined],
  ["count-content", undefined],
  ["invoke-count-tokens", undefined],
  ["embeddings", undefined],
  ["embed-content", undefined],
  ["embed-one-content", undefined],
  ["invoke-embeddings", undefined],
  ["rerank", undefined],
  ["embed-sparse", undefined],
  ["moderations", undefined],
  ["images", "images"],
  ["image-edits", "images"],
  ["image-variations", "images"],
  ["image-content", "generate-content"],
  ["speech", "audio"],
  ["transcriptions", "audio"],
  ["translations", "audio"],
]);

/** The wire format of what a backend answers; undefined where no other operation has it. */
export function formatOf(operation: Operation): ProtocolName | undefined {
  return FORMATS.has(operation) ? FORMATS.get(operation) : operation;
}

const BROUGHT: ReadonlyMap<Operation, "image" | "audio"> = new Map([
  ["image-edits", "image"],
  ["image-variations", "image"],
  ["transcriptions", "audio"],
  ["translations", "audio"],
]);

/** What every request of the operation brings besides text. */
export function broughtBy(operation: Operation): "image" | "audio" | undefined {
  return BROUGHT.get(operation);
}

/** True if the answer consists of pictures, which take time to draw. */
export function drawsPictures(operation: Operation): boolean {
  return FORMATS.get(operation) === "images";
}

/** True if the answer is text, which a model writes token by token. */
export function writesText(operation: Operation): boolean {
  return !FORMATS.has(operation);
}

/** The formats whose headers and errors operations have that have no format of their own. */
const CONVENTIONS: ReadonlyMap<Operation, ProtocolName> = new Map([
  ["count-tokens", "messages"],
  ["count-content", "generate-content"],
  ["embed-content", "generate-content"],
  ["embed-one-content", "generate-content"],
]);

/** Operations that no vendor bills. */
const FREE: ReadonlySet<Operation> = new Set(["count-tokens", "count-content"]);

/** True if no vendor bills it. */
export function isFree(operation: Operation): boolean {
  return FREE.has(operation);
}

/** The format whose headers and errors an operation has, though it may have no format of its own. */
export function conventionsOf(operation: Operation): ProtocolName | undefined {
  return CONVENTIONS.get(operation) ?? formatOf(operation);
}

/** Operations that can be done by means of others, in order of preference, because their formats are translated. */
const STAND_INS: Readonly<Record<Operation, readonly Operation[]>> = {
  chat: ["messages", "generate-content", "responses", "converse"],
  responses: ["messages", "generate-content", "chat", "converse"],
  messages: ["generate-content", "chat", "responses", "converse"],
  "generate-content": ["messages", "chat", "responses", "converse"],
  "count-tokens": ["invoke-count-tokens"],
  embeddings: ["embed-content", "invoke-embeddings"],
  "embed-content": ["embeddings", "invoke-embeddings"],
  "embed-one-content": ["embeddings", "embed-content", "invoke-embeddings"],
  images: ["image-content"],
};

const NONE: readonly Operation[] = [];

/** The same for formats that few backends speak. */
const ANY_FORMAT: readonly Operation[] = ["chat", "messages", "generate-content", "responses", "converse"];

export type OperationPaths = Readonly<Partial<Record<Operation, string>>>;

/** The operation that a backend with these paths is asked for; undefined when it cannot do it, nor anything like it. */
export function servedBy(paths: OperationPaths, operation: Operation): Operation | undefined {
  if (paths[operation] !== undefined) return operation;
  const standIns = STAND_INS[operation] ?? (FORMATS.has(operation) ? NONE : ANY_FORMAT);
  return standIns.find((standIn) => paths[standIn] !== undefined);
}

/** True if a backend has a format for conversations. */
export function converses(backend: { paths: OperationPaths }): boolean {
  return conversationFormat(backend) !== undefined;
}

/** The format in which a backend is talked with by who has no format of its own. */
export function conversationFormat({ paths }: { paths: OperationPaths }): ProtocolName | undefined {
  const operation = servedBy(paths, "chat");
  return operation && formatOf(operation);
}

/**
 * True if a backend may hold a file that is named by its id alone: such ids mean something only in the format of its own API.
 */
export function mayHoldFiles(
  { kind, paths }: { kind: BackendKind; paths: OperationPaths },
  operation: Operation,
): boolean {
  return kind.keepsFiles === true && paths[operation] !== undefined;
}

/** The operation by which a backend searches the web for a client of another format, where that is one of its own. */
export function searchOperation({ kind, paths }: { kind: BackendKind; paths: OperationPaths }): Operation | undefined {
  return kind.searches === "in-responses" && paths.responses !== undefined ? "responses" : undefined;
}

/** The formats that `backends[].protocols` may name, with the usual paths of each. */
export const PROTOCOL_PATHS = {
  chat: { chat: "/v1/chat/completions" },
  responses: { responses: "/v1/responses" },
  messages: { messages: "/v1/messages", "count-tokens": "/v1/messages/count_tokens" },
} as const satisfies Record<string, OperationPaths>;

/**
 * The answer by which an engine is recognised, once it has a model to offer: a list with an entry that has the member as a
 * text. Any server may listen on a port, so a port alone proves nothing.
 */
export interface EngineSign {
  path: string;
  list: string;
  member: string;
}

/** The named formats take the place of those that the kind is asked in by default; the other operations stay. */
export function pathsIn(
  kind: BackendKind,
  protocols: readonly (keyof typeof PROTOCOL_PATHS)[] | undefined,
): OperationPaths {
  if (protocols === undefined) return kind.paths;
  const formats = Object.keys(Object.assign({}, ...Object.values(PROTOCOL_PATHS)));
  // The legacy endpoint belongs to servers of the chat format: one without the other is not known.
  if (!protocols.includes("chat")) formats.push("completions");
  const others = Object.entries(kind.paths).filter(([operation]) => !formats.includes(operation));
  const named = protocols.flatMap((protocol) =>
    Object.entries(PROTOCOL_PATHS[protocol]).map(([operation, path]) => [operation, kind.paths[operation] ?? path]),
  );
  return Object.fromEntries([...others, ...named]);
}

/** The row by which one of a backend's models is asked. */
export function kindFor(kind: BackendKind, model: string): BackendKind {
  return kind.families?.find(({ models }) => models.test(model))?.kind ?? kind;
}

interface ProbeDefinition {
  method: "GET" | "POST" | "HEAD";
  /** Path below the backend's root (without /v1 normalisation). */
  path: string;
  /** Tried in order when the path answers 404. */
  fallbackPaths: readonly string[];
  /** Status codes that count as healthy. */
  acceptStatus: readonly number[];
  /** Status codes that mean "alive, but still loading". */
  warmupStatus: readonly number[];
  /** JSON body of a POST probe. */
  body?: string;
}

/**
 * The operations in which a kind goes on exactly where the last words of the assistant stop, and the members that ask
 * for it.
 */
export type Prefill = Readonly<Partial<Record<Operation, JsonObject>>>;

/** Where a backend lists its models, and how its list is read. */
export interface ModelList {
  path: string;
  /** Asked when the path answers 404. */
  otherPath?: string;
  /** For lists in pages. */
  pages?: ModelPages;
  /** The root of its address where that is another one than the backend's. */
  rootOf?(rootUrl: string): string;
  /** Another list, whose models come behind those of this one. */
  also?: ModelList;
}

interface ModelPages {
  /** The query of the first page, which asks for as many models as a page can have. */
  query: string;
  /** The member of an answer that says where the next page begins, and the parameter that asks for it. */
  cursor: string;
  parameter: string;
  /** The member that is true while there is a next page; undefined: there is one as long as there is a cursor. */
  more?: string;
}

/** Keys of backends[] that belong to some kinds only. */
export const OWN_SETTINGS = [
  "api_version",
  "deployments",
  "project",
  "location",
  "credentials",
  "entra_id",
  ...AWS_SETTINGS,
] as const;
export type OwnSetting = (typeof OWN_SETTINGS)[number];

/** A body on its way to a backend. */
interface AskedBody {
  operation: Operation;
  model: string;
  settings: BackendSettings;
  /** The version that the client's own body is written for, as its header says; undefined for one of the gateway's. */
  version?: string | undefined;
  /** The betas that the body makes use of, as a header of its format would name them. */
  betas?: string | undefined;
}

export interface BackendKind extends Dialect {
  name: BackendKindName;
  /** Used when the configuration gives no url. */
  defaultUrl?: string;
  /** What its url looks like, where none is usual. */
  urlForm?: string;
  /** What its documentation adds to its address and the paths of this table have already: an address may end in one. */
  mounts?: readonly string[];
  /** The same where it depends on other settings. */
  urlOf?(settings: BackendSettings): string;
  /** Keys of backends[] that only kinds with them take. */
  settings?: Readonly<Partial<Record<OwnSetting, "optional" | "required">>>;
  /** What is wrong with its keys together. */
  problemsOf?(settings: BackendSettings): readonly { key: OwnSetting; message: string }[];
  /** The row that takes its place under these settings; undefined: none. */
  variant?(settings: BackendSettings): BackendKind | undefined;
  /** Models that are asked otherwise than the others, such as those of another vendor. The first match counts. */
  families?: readonly { models: RegExp; kind: BackendKind }[];
  /** How the API key is sent: a bearer token, or bare in the named header. */
  auth: { header: string; scheme: "bearer" | "bare" };
  /** How requests are let in where the backend has no API key: by tokens that expire, or by a signature of each. */
  credential?: CredentialScheme;
  /** Headers that every request to this kind carries. */
  headers: Readonly<Record<string, string>>;
  /**
   * Path of each operation below the backend's root. `{deployment}` and `{model}` are filled in; of `{plain|streamed}` one
   * part stays.
   */
  paths: OperationPaths;
  /** What `{model}` in a path stands for; left out: the name of the model. */
  resourceOf?(model: string, settings: BackendSettings, operation: Operation): string;
  /** Members that the JSON body of a request gets, and undefined ones that it loses. */
  membersOf?(asked: AskedBody): JsonObject | undefined;
  /** The version of a format that a client names in a header goes to it in the body. */
  versionInBody?: true;
  /** The betas of a format that a header names go to it in the body. */
  betasInBody?: true;
  /** Its streams come in the frames of AWS, and the names of its errors in a header. */
  answersInFrames?: true;
  /** Undefined: the models must be configured. */
  modelList?: ModelList;
  /** Asked for what models take besides text, where the list does not say it: once, or for each model by its name. */
  intake?: { path: string; of: "server" | "model" };
  /** The tag that a model's name without one means, in requests, in lists and in configuration alike. */
  impliedTag?: string;
  /**
   * Variables of the environment from which the vendor's own SDK takes its key (the first that is set) and address, and
   * whether the zero configuration uses them.
   */
  environment?: { keys: readonly string[]; url?: string; isFound?: boolean };
  /** Of an engine whose list of models names no owner that is its own; one of them is enough. */
  localSigns?: readonly EngineSign[];
  /** Its header `Server`, which it sends also while it loads its model. */
  serverSign?: string;
  probe: ProbeDefinition;
  /** Its name in the conventions of OpenTelemetry for generative AI; undefined: they have none, and that of the kind stands. */
  provider?: string;
  /** owned_by in model lists; undefined: what the backend itself says. */
  ownedBy?: string;
  /** The owned_by in its own model list which no other server writes, so that a generic backend is recognised by it. */
  ownerSign?: string;
  /** No other vendor gives names of its models to others: what is known of them holds wherever they are served. */
  ownsNames?: true;
  /** Its models are deployments with names of their own, asked in the version of the API that the query names. */
  deployments?: {
    apiVersion: string /** The path of this operation carries its version itself. */;
    versioned: Operation;
  };
  /** Takes the headers with which a client chooses the vendor's organisation (backends[].forward_headers). */
  takesOrganisation?: true;
  /** Fetches no URLs of pictures and documents; so the gateway does, where it translates anyway, or for all requests. */
  inlines?: "translated" | "all";
  /**
   * Searches the web itself when it is asked to: in each of its formats; or, for clients of another format, by its
   * Responses endpoint, whatever model is asked.
   */
  searches?: "everywhere" | "in-responses";
  /** Has a Files API of its own: an id that the gateway does not know may be one of its files. */
  keepsFiles?: true;
  /** Answered inside this process; the url is only a name that can be shown. */
  isEmbedded?: true;
  /**
   * Response headers that are handed on to the client besides Content-Type and Retry-After. None of them names the
   * operator's organisation at the vendor.
   */
  responseHeaders: readonly string[];
  /** Undefined: nothing of the kind is documented. */
  prefill?: Prefill;
}

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

function probe(
  path: string,
  fallbackPaths: readonly string[] = [],
  more: Partial<ProbeDefinition> = {},
): ProbeDefinition {
  return { method: "GET", path, fallbackPaths, acceptStatus: [200], warmupStatus: [503], ...more };
}

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
    settings: { api_version: "optional", deployments: "optional", entra_id: "optional" },
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

/** What is known of a format, without where its vendor is found, what the keys there are called and which files it has. */
function formatOfRow({ defaultUrl: _, environment: __, keepsFiles: ___, ...row }: BackendKind): BackendKind {
  return row;
}

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

/** Gemini and Claude on Google Cloud, each in its own format. */
function vertexRow(): BackendKind {
  const list = "/v1beta1/publishers/google/models";
  const service = {
    name: "vertex",
    settings: { project: "required", location: "optional", credentials: "optional" },
    urlOf: usualAddress,
    credential: googleCredential,
    auth: ROWS.gemini.auth,
    modelList: { path: list, pages: { query: "pageSize=1000", cursor: "nextPageToken", parameter: "pageToken" } },
    // An account may be allowed to ask models without being allowed to list them.
    probe: probe(`${list}?pageSize=1`, [], { acceptStatus: [200, 403] }),
    provider: "gcp.vertex_ai",
    isCloud: true,
  } as const;
  const gemini: BackendKind = {
    ...formatOfRow(ROWS.gemini),
    ...service,
    resourceOf: (model, settings) => resourceOf(model, settings, "google"),
    paths: {
      "generate-content": "/v1beta1/{model}:{generateContent|streamGenerateContent?alt=sse}",
      "image-content": "/v1beta1/{model}:generateContent",
      "embed-content": "/v1beta1/{model}:predict",
    },
    embeds: "predict",
  };
  const claude: BackendKind = {
    ...formatOfRow(ROWS.anthropic),
    ...service,
    headers: {},
    paths: { messages: "/v1/{model}:{rawPredict|streamRawPredict}", "count-tokens": "/v1/{model}:rawPredict" },
    // The counter is a model of its own; the path names the model, and the body of the counter the one that is counted for.
    resourceOf: (model, settings, operation) =>
      resourceOf(operation === "count-tokens" ? operation : model, settings, "anthropic"),
    membersOf: ({ operation, model, version }) => ({
      model: operation === "count-tokens" ? bareName(model) : undefined,
      ...versionMember(version),
    }),
    versionInBody: true,
    inlines: "translated",
  };
  const embedder: BackendKind = {
    ...gemini,
    paths: { "embed-content": "/v1beta1/{model}:embedContent" },
    embeds: "content",
  };
  const families = [
    { models: /^(?:(?:publishers\/)?anthropic\/|claude)/, kind: claude },
    { models: /gemini-embedding-(?!001$)/, kind: embedder }, // as tIsVertexEmbedContentModel of @google/genai has it
  ];
  return { ...gemini, families };
}

export const BACKEND_KINDS: Readonly<Record<BackendKindName, BackendKind>> = {
  ...ROWS,
  azure: azureRow(),
  vertex: vertexRow(),
  bedrock: bedrockRow(ROWS.anthropic),
};
