// What a model's capabilities mean for clients: API methods and features.

const CHAT = "chat.completions";

/** The API method that a model with this capability answers. */
const METHODS: ReadonlyMap<string, string> = new Map([
  ...["chat", "vision", "code", "reasoning", "audio", "video", "function_calling", "tool"].map(
    (capability) => [capability, CHAT] as const,
  ),
  ["embedding", "embeddings"],
  ["image_generation", "images.generations"],
  ["image_edit", "images.edits"],
  ["image_variation", "images.variations"],
  ["moderation", "moderations"],
  ["rerank", "rerank"],
  ["sparse_embedding", "embed_sparse"],
]);

/** Each method once, in the order of the capabilities; a capability that is not in the table adds none. */
export function supportedMethods(capabilities: readonly string[]): string[] {
  const methods = capabilities.map((capability) => METHODS.get(capability));
  return [...new Set(methods.filter((method) => method !== undefined))];
}

/** Each feature once, in the order of the capabilities, by their own names. */
export function features(capabilities: readonly string[]): string[] {
  return [...new Set(capabilities.map((capability) => (capability === "tool" ? "function_calling" : capability)))];
}
