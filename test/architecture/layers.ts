// The floors of the house, which imports go down.

/** From the top to the bottom; folders on one line may import each other as long as no cycle of files appears. */
export const LAYERS: readonly (readonly string[])[] = [
  ["main.ts"],
  ["runtime", "workers", "agent-mode"],
  ["dashboard"],
  ["cli", "api", "admin"],
  ["acp"],
  ["openapi"],
  ["server", "otlp"],
  ["pipeline"],
  ["mcp"],
  ["agent"],
  ["response-cache"],
  ["fleet"],
  ["routing", "upstream", "web-search"],
  ["demo", "discovery"],
  ["health", "models", "prompts", "kv-index"],
  ["backends"],
  ["rate-limit", "request-log"],
  ["backup"],
  ["access", "files", "stats", "metrics", "redis"],
  ["protocols"],
  ["generation", "media"],
  ["tracing", "logging", "object-storage"],
  ["config"],
  ["errors"],
  ["names.ts"],
  ["lib"],
];

/** The rooms of src/config, likewise. */
export const CONFIG_ROOMS: readonly string[] = ["store", "compile", "change", "schema", "sections", "files", "values"];
