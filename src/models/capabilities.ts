// What a model's capabilities mean for clients: API methods and features (specification, "supported_methods mapping").

interface CapabilityMeaning {
  /** The API method that a model with this capability answers. */
  method: string;
  /** Its name in `features`; undefined: the capability's own name. */
  feature?: string;
}

const CHAT = "chat.completions";

const CAPABILITY_MEANINGS: Readonly<Record<string, CapabilityMeaning>> = {
  chat: { method: CHAT },
  vision: { method: CHAT },
  code: { method: CHAT },
  reasoning: { method: CHAT },
  audio: { method: CHAT },
  video: { method: CHAT },
  function_calling: { method: CHAT },
  tool: { method: CHAT, feature: "function_calling" },
  embedding: { method: "embeddings" },
  image_generation: { method: "images.generations" },
  image_edit: { method: "images.edits" },
  image_variation: { method: "images.variations" },
  moderation: { method: "moderations" },
  rerank: { method: "rerank" },
  sparse_embedding: { method: "embed_sparse" },
};

const MEANINGS: ReadonlyMap<string, CapabilityMeaning> = new Map(Object.entries(CAPABILITY_MEANINGS));

/** Each method once, in the order of the capabilities; a capability that is not in the table adds none. */
export function supportedMethods(capabilities: readonly string[]): string[] {
  const methods = capabilities.map((capability) => MEANINGS.get(capability)?.method);
  return [...new Set(methods.filter((method) => method !== undefined))];
}

/** Each feature once, in the order of the capabilities; a capability that is not in the table is shown as it is. */
export function features(capabilities: readonly string[]): string[] {
  return [...new Set(capabilities.map((capability) => MEANINGS.get(capability)?.feature ?? capability))];
}
