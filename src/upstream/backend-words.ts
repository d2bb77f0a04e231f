// What a backend said of its failure, for operators: one short line, without secrets, and without what may be a prompt.

import type { Backend } from "../backends/backend.ts";
import { withoutSecrets as withoutLikelySecrets } from "../stats/without-secrets.ts";
import { errorMessage } from "./error-body.ts";
import { isCredentialRefusal, type UpstreamFailure } from "./failure.ts";
import { withoutSecrets as withoutOwnSecrets } from "./own-secrets.ts";

const MAX_LENGTH = 200;
/** Cleaning takes time, and text behind this is not shown. */
const MAX_READ_LENGTH = 2_000;
/** Engines quote prompts at length, names and values shortly. */
const LONG_QUOTE = /(["'`])(?:(?!\1).){40,}(?:\1|$)/g;
/** The beginning of JSON, such as the messages of a request. */
const JSON_DUMP = /[[{]\s*["'[{].*$/;

/** Undefined where it said nothing that can be read. The gateway has words of its own where its credential is refused. */
export function backendWords(failure: UpstreamFailure, backend: Backend): string | undefined {
  const told = failure.kind === "told-in-stream" ? failure.told : failure;
  if (told?.kind !== "status" || isCredentialRefusal(told)) return undefined;
  const clean = withoutOwnSecrets(told, backend);
  const message = clean.kind === "status" ? errorMessage(clean.body) : undefined;
  if (message === undefined) return undefined;
  const line = message.slice(0, MAX_READ_LENGTH).replaceAll(/\s+/g, " ").trim();
  const words = withoutLikelySecrets(line).replaceAll(LONG_QUOTE, "$1…$1").replace(JSON_DUMP, "…");
  if (words === "") return undefined;
  return words.length > MAX_LENGTH ? `${words.slice(0, MAX_LENGTH)}…` : words;
}
