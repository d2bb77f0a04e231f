// The shape of errors at paths that have no endpoint: SDKs of a format read errors in its shape alone.

import { generateContentClient } from "../protocols/generate-content/index.ts";
import { messagesClient } from "../protocols/messages/index.ts";
import type { ClientWords } from "../protocols/protocol.ts";
import type { ErrorWords } from "../server/endpoint.ts";
import { errorsOf } from "./generation.ts";
import { OLLAMA_WORDS } from "./ollama-models.ts";

const FORMATS: readonly (readonly [paths: RegExp, words: ClientWords])[] = [
  [/^\/(?:anthropic|v1\/messages)(?:\/|$)/, messagesClient],
  [/^\/(?:v1beta|v1alpha)(?:\/|$)/, generateContentClient],
  [/^\/api(?:\/|$)/, OLLAMA_WORDS],
];

/** Undefined: the standard shape. */
export function errorsAt(path: string): ErrorWords | undefined {
  const words = FORMATS.find(([paths]) => paths.test(path))?.[1];
  return words && errorsOf(words);
}
