// The one table of names: every accepted spelling of a backend kind and of an image model, and its canonical form.

import { PRESETS, type Preset, type PresetName } from "./presets.ts";

/** The version of this release; package.json carries the same, which a test proves. */
export const VERSION = "0.1.0";

/** Reported as `service` by GET /health and as the program's name in messages. */
export const SERVICE_NAME = "signalbox";

/** Canonical names with other accepted spellings, compared in lower case; those of presets stand in their table. */
const OWN_SPELLINGS = {
  openai: [],
  azure: ["azure_openai", "azure-openai"],
  anthropic: [],
  gemini: ["google"],
  vertex: ["vertex-ai", "vertex_ai"],
  bedrock: ["aws-bedrock", "aws_bedrock", "amazon-bedrock"],
  vllm: [],
  llamacpp: ["llama-cpp", "llama.cpp", "llama-server"],
  ollama: [],
  lmstudio: ["lm-studio"],
  federated: ["signalbox", "continuum-router"],
  generic: [],
  demo: [],
} as const satisfies Record<string, readonly string[]>;

export type BackendKindName = keyof typeof OWN_SPELLINGS | PresetName;

const KIND_SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  ...OWN_SPELLINGS,
  ...Object.fromEntries(Object.entries<Preset>(PRESETS).map(([name, { spellings = [] }]) => [name, spellings])),
};

export const BACKEND_KIND_NAMES = Object.keys(KIND_SPELLINGS) as BackendKindName[];

/** The type of a server whose type is not configured; its model list may tell (backends/detect.ts). */
export const UNKNOWN_KIND: BackendKindName = "generic";

/** Vendor-neutral spellings: accepted everywhere, and named in no message, schema or page. */
const SPECIFICATION_KINDS: readonly (readonly [spelling: string, kind: BackendKindName])[] = [
  ["kind_a", "openai"],
  ["kind_b", "azure"],
  ["kind_c", "anthropic"],
  ["kind_d", "gemini"],
  ["vllm-style", "vllm"],
  ["llama-server-compatible", "llamacpp"],
  ["ollama-style", "ollama"],
  ["local-studio", "lmstudio"],
  ["federated-router", "federated"],
];

const CANONICAL_KINDS: ReadonlyMap<string, BackendKindName> = new Map([
  ...BACKEND_KIND_NAMES.flatMap((name) => [name, ...spellingsOf(name)].map((spelling) => [spelling, name] as const)),
  ...SPECIFICATION_KINDS,
]);

/** Every spelling that people use, canonical names first; for the JSON Schema and for "did you mean". */
export const BACKEND_KIND_SPELLINGS: readonly string[] = [
  ...BACKEND_KIND_NAMES,
  ...BACKEND_KIND_NAMES.flatMap(spellingsOf),
];

/** The other accepted spellings of a kind. */
function spellingsOf(kind: BackendKindName): readonly string[] {
  return KIND_SPELLINGS[kind] ?? [];
}

/** The canonical kind for any accepted spelling, in any letter case; undefined for an unknown one. */
export function resolveBackendKind(spelling: string): BackendKindName | undefined {
  return CANONICAL_KINDS.get(spelling.toLowerCase());
}

/** The image models that have rules of their own, with other accepted spellings. */
const IMAGE_MODEL_SPELLINGS = {
  "dall-e-2": ["img-legacy-2"],
  "dall-e-3": ["img-legacy-3"],
  "gpt-image-1": ["img-v1"],
  "gpt-image-1.5": ["img-v1.5"],
  "gpt-image-1-mini": ["img-v1-mini"],
  "nano-banana": ["img-alt", "gemini-2.5-flash-image", "gemini-2.5-flash-image-preview"],
  "nano-banana-pro": ["img-alt-pro", "gemini-3-pro-image", "gemini-3-pro-image-preview"],
} as const satisfies Record<string, readonly string[]>;

export type ImageModelName = keyof typeof IMAGE_MODEL_SPELLINGS;

const CANONICAL_IMAGE_MODELS: ReadonlyMap<string, ImageModelName> = new Map(
  Object.entries(IMAGE_MODEL_SPELLINGS).flatMap(([name, others]) =>
    [name, ...others].map((spelling) => [spelling, name as ImageModelName] as const),
  ),
);

/** The canonical name for any accepted spelling of an image model that has rules of its own; undefined for any other. */
export function resolveImageModel(spelling: string): ImageModelName | undefined {
  return CANONICAL_IMAGE_MODELS.get(spelling);
}

/** Every name of such a model, the canonical one first; of any other model its own. */
export function spellingsOfModel(model: string): readonly string[] {
  const name = resolveImageModel(model);
  return name === undefined ? [model] : [name, ...IMAGE_MODEL_SPELLINGS[name]];
}

/** Vendor-neutral names (`img-…`) are never sent to a backend. */
export function isSpecificationName(model: string): boolean {
  return model.startsWith("img-") && resolveImageModel(model) !== undefined;
}
