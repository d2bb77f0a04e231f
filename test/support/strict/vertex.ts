// A strict Vertex AI: Gemini by generateContent, Claude by rawPredict, embeddings by predict and embedContent. What it
// refuses of bodies that its other APIs take is what Google's own clients leave out (@google/genai with vertexai: true,
// @anthropic-ai/vertex-sdk).

import { generateContentVendor, googleError } from "./generate-content.ts";
import { Ledger } from "./ledger.ts";
import { messagesVendor } from "./messages.ts";
import type { JsonObject, Script } from "./script.ts";
import { notFound, type ReceivedRequest, type StrictBackend, startStrictServer, type Vendor } from "./server.ts";
import { isObject, Refused } from "./shape.ts";

export interface StrictVertexOptions {
  models?: readonly string[];
  project?: string;
  location?: string;
  /** Whether an access token is accepted; left out: any is. */
  accepts?: (token: string) => boolean;
  ledger?: Ledger;
}

const PATH =
  /^\/(v1|v1beta1)\/projects\/([^/]+)\/locations\/([^/]+)\/publishers\/(google|anthropic)\/models\/([^/:]+):(\w+)$/;
const LIST = "/v1beta1/publishers/google/models";

/** By the member that says it, as Anthropic's documentation of Vertex AI has it. */
const VERSIONS: ReadonlyMap<unknown, string> = new Map([
  ["vertex-2023-10-16", "2023-06-01"],
  ["2026-10-21", "2026-10-21"],
]);

export function startStrictVertex(script: Script, options: StrictVertexOptions = {}): Promise<StrictBackend> {
  return startStrictServer(createVendor(options), script);
}

function createVendor({
  models,
  project = "p-1",
  location = "global",
  accepts = () => true,
  ledger = new Ledger(),
}: StrictVertexOptions): Vendor {
  const own = models ?? ["gemini-2.5-flash", "gemini-3-pro", "claude-sonnet-4-5@20250929", "claude-opus-4-6"];
  const gemini = generateContentVendor({ models: own, withoutCallIds: true, ledger });
  const claude = messagesVendor({ models: own, ledger, idPrefix: "vrtx_" });

  let asksClaude = false;

  function checkToken({ headers }: ReceivedRequest): void {
    const [, given] = /^Bearer (\S+)$/.exec(headers.authorization ?? "") ?? [];
    if (given !== undefined && accepts(given)) return;
    const message = "Request had invalid authentication credentials. Expected OAuth 2 access token.";
    throw new Refused("missing", "authorization", message, 401);
  }

  function read(request: ReceivedRequest) {
    checkToken(request);
    const [, version, asked, place, publisher, model = "", method] = PATH.exec(request.path) ?? [];
    if (publisher === undefined || asked !== project || place !== location) throw notFound(request);
    if (version !== (publisher === "google" ? "v1beta1" : "v1")) throw notFound(request);
    return { publisher, model, method };
  }

  return {
    read(request) {
      if (request.path !== LIST) return undefined;
      if (!/^Bearer \S+$/.test(request.headers.authorization ?? "")) return undefined;
      const listed = own.filter((model) => model.startsWith("gemini"));
      return {
        publisherModels: listed.map((model) => ({ name: `publishers/google/models/${model}`, versionId: "1" })),
      };
    },
    aside(request) {
      const { publisher, model, method } = read(request);
      if (publisher === "google") return embeddings(model, method, request.body);
      if (model !== "count-tokens" || method !== "rawPredict") return undefined;
      return claude.aside?.(asMessages(request, "/v1/messages/count_tokens", String(request.body.model)));
    },
    accept(request) {
      const { publisher, model, method } = read(request);
      asksClaude = publisher === "anthropic";
      if (publisher === "google") {
        checkCloudBody(request.body, "");
        const headers = { ...request.headers, "x-goog-api-key": "of the other API" };
        return gemini.accept({ ...request, headers, path: `/v1beta/models/${model}:${method}` });
      }
      if (request.body.model !== undefined) throw new Refused("unknown", "model", "Extra inputs are not permitted");
      const isStreamed = request.body.stream === true;
      if (method !== (isStreamed ? "streamRawPredict" : "rawPredict")) throw notFound(request);
      return claude.accept(asMessages(request, "/v1/messages", model));
    },
    refusal: (refused) => googleError(refused.status, `${refused.field}: ${refused.message}`),
    // What Google itself refuses, such as a spent quota, is told in its own words for every publisher.
    failure: (error) => googleError(error.status, error.message, error.type),
    failureFrame: (error) => (asksClaude ? claude : gemini).failureFrame(error),
  };
}

function asMessages(request: ReceivedRequest, path: string, model: string): ReceivedRequest {
  const { anthropic_version: given, ...body } = request.body;
  const version = VERSIONS.get(given);
  if (version === undefined) throw new Refused("invalid", "anthropic_version", "Field required");
  if (request.headers["anthropic-version"] !== undefined) {
    throw new Refused("unknown", "anthropic-version", "the version stands in the body");
  }
  return { ...request, path, headers: { ...request.headers, "anthropic-version": version }, body: { ...body, model } };
}

const REFUSED: readonly (readonly [parent: string, member: string])[] = [
  ["functionCall", "id"],
  ["functionResponse", "id"],
  ["toolConfig", "includeServerSideToolInvocations"],
];

/** Contents have roles here, and some members of the other API are unknown. */
function checkCloudBody(value: unknown, field: string): void {
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) checkCloudBody(entry, `${field}[${index}]`);
    return;
  }
  if (!isObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    const at = field === "" ? name : `${field}.${name}`;
    for (const [parent, unknown] of REFUSED) {
      if (name === parent && isObject(member) && member[unknown] !== undefined) {
        throw new Refused("unknown", `${at}.${unknown}`, `Unknown name "${unknown}": Cannot find field.`);
      }
    }
    if (name === "contents" && Array.isArray(member) && member.some((content) => !isObject(content) || !content.role)) {
      throw new Refused("invalid", at, "Please use a valid role: user, model.");
    }
    if (name !== "args" && name !== "response" && name !== "parametersJsonSchema") checkCloudBody(member, at);
  }
}

const VECTOR = [0.6, 0.8];

function embeddings(model: string, method: string | undefined, body: JsonObject): JsonObject | undefined {
  if (method === "predict") {
    const { instances, parameters = {}, ...unknown } = body as { instances: JsonObject[]; parameters?: JsonObject };
    for (const name of Object.keys(unknown)) throw new Refused("unknown", name, "Cannot find field.");
    if (!Array.isArray(instances) || instances.length === 0) throw new Refused("missing", "instances", "required");
    if (model === "gemini-embedding-001" && instances.length > 1) {
      throw new Refused("invalid", "instances", "The model takes one instance.");
    }
    for (const { content } of instances) {
      if (typeof content !== "string") throw new Refused("invalid", "instances[].content", "expected a string");
    }
    const { outputDimensionality } = parameters as { outputDimensionality?: number };
    const values = outputDimensionality === undefined ? VECTOR : Array.from({ length: outputDimensionality }, () => 2);
    const statistics = { token_count: 4, truncated: false };
    return {
      predictions: instances.map(() => ({ embeddings: { values, statistics } })),
      metadata: { billableCharacterCount: 9 },
    };
  }
  if (method !== "embedContent") return undefined;
  if (!isObject(body.content) || !Array.isArray(body.content.parts))
    throw new Refused("missing", "content", "required");
  return { embedding: { values: VECTOR }, usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 } };
}
