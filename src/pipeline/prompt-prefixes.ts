// What requests have in common with earlier ones: the hashes of a prompt's prefixes, as each backend gets it, and what is
// learnt from the answers to it.

import { formatOf } from "../backends/operations.ts";
import type { ContentPart, MediaSource } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { CanonicalPrompt } from "../kv-index/canonical-prompt.ts";
import { confirms } from "../kv-index/claim-trust.ts";
import type { KvIndex } from "../kv-index/kv-index.ts";
import type { PrefixChain } from "../kv-index/prefix-hash.ts";
import type { RequestBody } from "../lib/request-body.ts";
import { injectIntoRequest } from "../prompts/inject.ts";
import type { PromptSource } from "../prompts/resolve.ts";
import type { PromptReader } from "../protocols/prompt-reader.ts";
import { passThrough } from "../protocols/registry.ts";
import { isBackendsFault } from "../upstream/send.ts";
import type { ModelRequest } from "./model-request.ts";
import type { PromptPrefixes } from "./prefixes.ts";

/** The hashes under one prompt of the gateway's own. */
interface Hashed {
  prompt: string | undefined;
  chain: PrefixChain | undefined;
}

/** What was hashed of one body. */
interface KnownPrompt {
  model: string;
  neutral: GenerationRequest | undefined;
  hashed: Hashed[];
}

/** `index` is undefined where prompts are only spread by their first block. */
export function createPromptPrefixes(
  prompts: PromptSource,
  index: Pick<KvIndex, "claimOf" | "learn" | "ended"> | undefined,
): PromptPrefixes {
  const canonical = new CanonicalPrompt();
  const known = new WeakMap<RequestBody, KnownPrompt>();

  function knownOf({ body, model, asking: { neutral } }: ModelRequest): KnownPrompt {
    let found = known.get(body);
    if (found === undefined || found.model !== model || found.neutral !== neutral) {
      found = { model, neutral, hashed: [] };
      known.set(body, found);
    }
    return found;
  }

  function hash(request: ModelRequest, prompt: string | undefined): PrefixChain | undefined {
    const { model, operation } = request;
    const { neutral } = request.asking;
    if (neutral !== undefined) {
      const asked = prompt === undefined ? neutral : injectIntoRequest(neutral, prompt, prompts.merge);
      canonical.begin(model, asked.tools.length === 0 ? undefined : asked.tools);
      readNeutral(asked, canonical);
      return canonical.end();
    }
    const format = formatOf(operation);
    if (format === undefined) return undefined;
    const { readPrompt, injectPrompt } = passThrough(format);
    if (readPrompt === undefined) return undefined;
    const { value } = request.body;
    const changes = prompt === undefined ? undefined : injectPrompt?.(value, prompt, prompts.merge);
    canonical.begin(model, value.tools);
    readPrompt(changes === undefined ? value : { ...value, ...changes }, canonical);
    return canonical.end();
  }

  function at(request: ModelRequest, backendName: string): PrefixChain | undefined {
    const { hashed } = knownOf(request);
    const prompt = prompts.promptFor(request.model, backendName);
    for (const each of hashed) if (each.prompt === prompt) return each.chain;
    const chain = hash(request, prompt);
    hashed.push({ prompt, chain });
    return chain;
  }

  return {
    at,
    claimOf: (prefix, backendName) => index?.claimOf(backendName, prefix),
    began(request, { name }) {
      const chain = index === undefined ? undefined : at(request, name);
      if (chain !== undefined) index?.learn(name, chain);
    },
    ended({ name }, failure, claim, usage) {
      // Who leaves, or asks for what cannot be, says nothing of the backend.
      if (failure === undefined) index?.ended(name, false, confirms(usage, claim));
      else if (failure.kind !== "aborted") index?.ended(name, isBackendsFault(failure));
    },
  };
}

function readNeutral({ system, messages }: GenerationRequest, reader: PromptReader): void {
  if (system.length > 0) {
    reader.message("system");
    for (const { text } of system) reader.text(text);
  }
  for (const { role, parts } of messages) {
    reader.message(role);
    for (const part of parts) readPart(part, reader);
  }
}

function readPart(part: ContentPart, reader: PromptReader): void {
  switch (part.type) {
    case "text":
    case "refusal":
      reader.text(part.text);
      return;
    case "image":
    case "document":
    case "audio":
    case "video":
      readSource(part.source, reader);
      return;
    case "tool-result":
      for (const each of part.parts) readPart(each, reader);
      return;
    default:
  }
}

function readSource(source: MediaSource, reader: PromptReader): void {
  if (source.kind === "base64") reader.base64(source.data);
  else reader.media(source.kind === "url" ? source.url : source.fileId);
}
