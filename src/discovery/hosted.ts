// Hosted APIs whose key is in the environment, as data: one row per vendor.

import type { BackendKindName } from "../names.ts";

export interface HostedApi {
  kind: BackendKindName;
  /** The first one that is set and not empty counts. */
  keyVariables: readonly string[];
  /** The variable with which the vendor's own SDK is pointed elsewhere. */
  urlVariable?: string;
}

export const HOSTED_APIS: readonly HostedApi[] = [
  { kind: "openai", keyVariables: ["OPENAI_API_KEY"], urlVariable: "OPENAI_BASE_URL" },
  { kind: "anthropic", keyVariables: ["ANTHROPIC_API_KEY"], urlVariable: "ANTHROPIC_BASE_URL" },
  { kind: "gemini", keyVariables: ["GEMINI_API_KEY", "GOOGLE_API_KEY"] },
];
