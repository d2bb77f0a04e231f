// Formats are known in their folders: outside of src/protocols nobody asks for one by its name, or looks into its folder.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

/** Formats, and operations that have a format to themselves. */
const NAMES = [
  ...["chat", "completions", "responses", "messages", "generate-content", "converse"],
  ...["embeddings", "embed-content", "embed-one-content", "invoke-embeddings", "embed-sparse", "rerank"],
  ...["count-tokens", "count-content", "invoke-count-tokens"],
  ...["images", "image-edits", "image-variations", "image-content"],
  ...["speech", "transcriptions", "translations", "moderations"],
].join("|");

/** Where they are named all the same, or words that look like them. */
const NAMED_IN: ReadonlyMap<string, string> = new Map([
  ["api/content.ts", "endpoints: which operation a path stands for"],
  ["api/media-routes.ts", "endpoints: which operation a path stands for"],
  ["api/ollama.ts", "endpoints: which operation a path stands for"],
  ["api/routes.ts", "endpoints: which operation a path stands for"],
  ["backends/bedrock/row.ts", "a row: which operations a kind has"],
  ["backends/kind.ts", "what follows from the operations that a row has"],
  ["backends/kinds.ts", "the rows: which operations a kind has"],
  ["backends/operations.ts", "the operations, and which stand in for others"],
  ["backends/vertex/row.ts", "a row: which operations a kind has"],
  ["config/sections/backends.ts", "what backends[].protocols may say; the configuration lies below the kinds"],
  ["hooks/builtin/max-size.ts", "the words of its options"],
  ["hooks/builtin/moderation.ts", "the operation that it asks for"],
  ["generation/as-events.ts", "the vendor that signs text"],
  ["generation/request.ts", "in whose words requests are refused that no client has sent"],
  ["media/inline-media.ts", "the member of a body"],
  ["metrics/request-metrics.ts", "the words of the OpenTelemetry conventions"],
  ["models/capabilities.ts", "the words of a model's metadata"],
  ["models/price-list.ts", "the words of LiteLLM's list"],
  ["pipeline/embedding-batches.ts", "the one operation whose inputs are cut into slices"],
  ["pipeline/media-bridge.ts", "the operations that pass, or are translated without the neutral model"],
  ["pipeline/vector-bridge.ts", "the operations that are translated without the neutral model"],
  ["presets.ts", "what a vendor is asked for"],
  ["runtime/data-plane.ts", "what the endpoints want to know of backends"],
]);

/** Who looks into the folder of a format. */
const LOOKED_INTO_BY: ReadonlyMap<string, string> = new Map([
  ["api/content.ts", "endpoints that this format alone has"],
  ["api/errors-at.ts", "the words of formats at paths without an endpoint"],
  ["api/media-routes.ts", "endpoints: who reads a request"],
  ["api/messages.ts", "endpoints that this format alone has"],
  ["api/ollama-models.ts", "endpoints that this format alone has"],
  ["api/ollama.ts", "endpoints: who reads a request, and embeddings in its words"],
  ["api/responses.ts", "what its endpoint does before and after"],
  ["api/routes.ts", "endpoints: who reads a request"],
  ["upstream/amazon-answer.ts", "what its frames and its refusals say"],
  ["backends/bedrock/row.ts", "which models embed"],
  ["backends/kinds.ts", "what a row says to the chat format"],
  ["pipeline/media-bridge.ts", "the operations that pass, or are translated without the neutral model"],
  ["pipeline/response-store.ts", "the items that only its answers have"],
  ["pipeline/vector-bridge.ts", "the operations that are translated without the neutral model"],
]);

const NAMED = new RegExp(`"(?:${NAMES})"`);
const LOOKS_INTO = /from "(?:\.\.\/)+protocols\/[\w-]+\//;
const COMMENT = /^\s*(?:\/\/|\*|\/\*)/;

const outside = sourceFiles.filter((file) => !file.startsWith("protocols/"));

async function linesLike(file: string, pattern: RegExp): Promise<string[]> {
  const lines = (await sourceText(file)).split("\n");
  return lines.filter((line) => pattern.test(line) && !COMMENT.test(line)).map((line) => `${file}: ${line.trim()}`);
}

for (const [rule, pattern, allowed] of [
  ["formats are asked for what they can do, not by their names", NAMED, NAMED_IN],
  ["nobody looks into the folder of a format", LOOKS_INTO, LOOKED_INTO_BY],
] as const) {
  test(rule, async () => {
    const found = await Promise.all(
      outside.filter((file) => !allowed.has(file)).map((file) => linesLike(file, pattern)),
    );
    expect(found.flat()).toEqual([]);
  });

  test(`${rule}: those who may do`, async () => {
    for (const file of allowed.keys())
      expect([file, (await linesLike(file, pattern)).length > 0]).toEqual([file, true]);
  });
}
