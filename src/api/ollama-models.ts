// Models in the shapes of Ollama's API, and the words of its errors. A model's entry has what is known of it; sizes
// and families of files are not known here.

import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import { compact, isPresent, type JsonObject } from "../lib/json.ts";
import { supportedMethods } from "../models/capabilities.ts";
import { ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import { checkString, requireModel } from "../protocols/fields.ts";
import { OLLAMA } from "../protocols/ollama/form.ts";
import { clientWords } from "../protocols/registry.ts";
import { bodyLimits } from "../server/read-body.ts";
import { errorsOf, type GenerationParts } from "./generation.ts";
import { allowedModels, findAllowed, type ModelParts, metadataOf, OF_A_READER } from "./models.ts";

export const OLLAMA_WORDS = clientWords(OLLAMA);

/** Ollama's version whose API is spoken here: tools refuse servers older than they need. */
const API_VERSION = "0.13.3";

/** Beginnings of paths that change the models of a machine, and why they are not there. */
export const OF_A_MACHINE: readonly (readonly [beginning: string, reason: string])[] = [
  ...["pull", "push", "create", "copy", "delete", "blobs"],
].map((name) => [
  `/api/${name}`,
  "is not offered: models belong to the backends, so add and remove them there. GET /api/tags lists those that are served.",
]);

/** Tools put the tag `:latest` behind names; where only the model without it is served, that one is meant. */
export function withoutTag(models: ModelParts, asked: ModelRequest): ModelRequest {
  const model = servedName(models, asked.model);
  return model === asked.model ? asked : { ...asked, model, body: asked.body.with({ model }) };
}

function servedName({ fleet: { board }, names }: ModelParts, name: string): string {
  const untagged = name.replace(/:latest$/, "");
  const isKnown = (model: string) => board.serving(model).length > 0 || names.isRoute(model);
  return untagged !== name && !isKnown(name) && isKnown(untagged) ? untagged : name;
}

/** A model stays for as long as its backend serves it, which Ollama tells by a time that is far away. */
const FOREVER = "9999-12-31T23:59:59Z";

const MAX_SHOW_BYTES = 64 * 1024;

export function ollamaModelRoutes({ models, bodies }: Pick<GenerationParts, "bodies"> & { models: ModelParts }) {
  const shared = { tag: "Models", access: "read", ...errorsOf(OLLAMA_WORDS) } as const;
  return [
    {
      ...shared,
      access: "open",
      method: "GET",
      path: "/api/version",
      id: "ollamaVersion",
      summary: "The version of Ollama whose API is spoken",
      answers: [jsonAnswer("OllamaVersion", "The version.")],
      errors: [],
      handle: ({ headers }) => Response.json({ version: API_VERSION }, { headers }),
    },
    {
      ...shared,
      method: "GET",
      path: "/api/tags",
      id: "ollamaTags",
      summary: "Models in Ollama's shape",
      answers: [jsonAnswer("OllamaModels", "The models.")],
      errors: [...OF_A_READER],
      async handle({ context, headers }) {
        const all = await allowedModels(models, context.caller);
        return Response.json({ models: all.map(toListed) }, { headers });
      },
    },
    {
      ...shared,
      method: "GET",
      path: "/api/ps",
      id: "ollamaRunning",
      summary: "The same as running models, which answer without being loaded as far as is known",
      answers: [jsonAnswer("OllamaRunning", "The models.")],
      errors: [...OF_A_READER],
      async handle({ context, headers }) {
        const all = await allowedModels(models, context.caller);
        const running = all.map((entry) => {
          const { modified_at: _, ...listed } = toListed(entry);
          return { ...listed, expires_at: FOREVER, size_vram: 0 };
        });
        return Response.json({ models: running }, { headers });
      },
    },
    {
      ...shared,
      method: "POST",
      path: "/api/show",
      id: "ollamaShow",
      summary: "What is known of a model, in Ollama's shape",
      body: { schema: ref("OllamaShowRequest"), example: { model: "demo" } },
      answers: [jsonAnswer("OllamaModel", "The model.")],
      errors: [...OF_A_READER, 400, 404, 408, 413, 503],
      async handle({ request, context, headers }) {
        const { value } = await bodies.readJson(request, context, bodyLimits(context.settings, MAX_SHOW_BYTES));
        checkString(value, "name");
        const asked = requireModel({ model: isPresent(value.model) ? value.model : value.name });
        const name = servedName(models, asked);
        const found = await findAllowed(models, name, context.caller);
        return Response.json(toShown(found.created, metadataOf(models, found)), { headers });
      },
    },
  ] satisfies DescribedEndpoint[];
}

/** No file is known that they would be about. */
const DETAILS = {
  parent_model: "",
  format: "",
  family: "",
  families: [],
  parameter_size: "",
  quantization_level: "",
};

function toListed({ id, created }: { id: string; created: number }) {
  return {
    name: id,
    model: id,
    modified_at: timeOf(created),
    size: 0,
    digest: new Bun.CryptoHasher("sha256").update(id).digest("hex"), // tells models apart, and stays the same
    details: DETAILS,
  };
}

function toShown(created: number, metadata: ModelMetadata | undefined): JsonObject {
  return {
    modelfile: "",
    parameters: "",
    template: "",
    details: DETAILS,
    model_info: modelInfo(metadata),
    capabilities: capabilitiesOf(metadata?.capabilities ?? []),
    modified_at: timeOf(created),
  };
}

/** Tools look for the length of the context behind the name of the architecture. */
const ARCHITECTURE = "signalbox";

function modelInfo(metadata: ModelMetadata | undefined): JsonObject {
  return compact({
    "general.architecture": ARCHITECTURE,
    "general.basename": metadata?.display_name,
    [`${ARCHITECTURE}.context_length`]: metadata?.limits?.context_window,
  });
}

/** Ollama's name of each, in its order. */
const CAPABILITIES: readonly (readonly [name: string, ours: readonly string[]])[] = [
  ["vision", ["vision"]],
  ["tools", ["function_calling", "tool"]],
  ["thinking", ["reasoning"]],
  ["embedding", ["embedding"]],
];

/** A model of which nothing is known is taken for one that answers in text. */
function capabilitiesOf(known: readonly string[]): string[] {
  const completes = known.length === 0 || supportedMethods(known).includes("chat.completions");
  const others = CAPABILITIES.filter(([, ours]) => ours.some((name) => known.includes(name)));
  return [...(completes ? ["completion"] : []), ...others.map(([name]) => name)];
}

function timeOf(unixTime: number): string {
  return new Date(unixTime * 1000).toISOString();
}
