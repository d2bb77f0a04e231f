// What a kind of backend is: the members of a row in the table of kinds, and what follows from them.

import type { BackendSettings } from "../config/sections/registry.ts";
import type { JsonObject } from "../lib/json.ts";
import type { BackendKindName } from "../names.ts";
import type { Dialect } from "../protocols/protocol.ts";
import { AWS_SETTINGS } from "./bedrock/settings.ts";
import type { CredentialScheme } from "./credentials/credential.ts";
import type { Operation, OperationPaths } from "./operations.ts";

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
  /** Its vendor answers files of requests at a lower price; undefined: it does not, or not where single requests are asked. */
  batchApi?: BatchApi;
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

/** How a vendor takes batches (src/vendor-batches). */
export interface BatchApi {
  /**
   * The requests come in a file, as at OpenAI, or in the body that creates the batch, as at Anthropic and Gemini; there, the
   * batch is a long-running operation, which holds its results.
   */
  wire: "files" | "inline" | "operations";
  /** The operations that a line can be asked for, and the path that stands for each in a batch; `{model}` is filled in. */
  paths: OperationPaths;
  /** Headers of single requests that stand once for a batch: lines that differ in them go into different ones. */
  headers: readonly string[];
  /** What stands in front of the paths of the API itself. */
  mount?: string;
  /** The path that a batch is created for, where it is the same for all lines. */
  endpoint?: string;
  /** What batches call a model, where single requests call it otherwise; undefined: no batch can ask for it. */
  deploymentOf?(model: string, settings: BackendSettings): string | undefined;
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
  "batch_deployments",
  "project",
  "location",
  "credentials",
  "entra_id",
  ...AWS_SETTINGS,
] as const;

export type OwnSetting = (typeof OWN_SETTINGS)[number];

/** A body on its way to a backend. */
export interface AskedBody {
  operation: Operation;
  model: string;
  settings: BackendSettings;
  /** The version that the client's own body is written for, as its header says; undefined for one of the gateway's. */
  version?: string | undefined;
  /** The betas that the body makes use of, as a header of its format would name them. */
  betas?: string | undefined;
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

export function probe(
  path: string,
  fallbackPaths: readonly string[] = [],
  more: Partial<ProbeDefinition> = {},
): ProbeDefinition {
  return { method: "GET", path, fallbackPaths, acceptStatus: [200], warmupStatus: [503], ...more };
}

/** What is known of a format, without where its vendor is found, what the keys there are called and which files and batches it has. */
export function formatOfRow({
  defaultUrl: _,
  environment: __,
  keepsFiles: ___,
  batchApi: ____,
  ...row
}: BackendKind): BackendKind {
  return row;
}
