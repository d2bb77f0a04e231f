// POST /v1/embeddings of the demo backend: vectors made by hashing words, so that texts with common words are near.

import { embeddingRequestSchema, invalidField, listOf, readRequest } from "./requests.ts";
import { countInput } from "./tokens.ts";

const DEFAULT_DIMENSIONS = 256;
/** Components that one word adds to. */
const COMPONENTS_PER_WORD = 8;
const MAX_TOKENS_PER_INPUT = 8_192;
const MAX_TOKENS = 300_000;

export async function answerEmbeddings(request: Request): Promise<Response> {
  const body = await readRequest(request, embeddingRequestSchema);
  const inputs = listOf(body.input);
  const tokens = countInputs(inputs);
  return Response.json({
    object: "list",
    data: inputs.map((input, index) => {
      const vector = embed(input, body.dimensions ?? DEFAULT_DIMENSIONS);
      const embedding = body.encoding_format === "base64" ? toBase64(vector) : [...vector];
      return { object: "embedding", index, embedding };
    }),
    model: body.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

type Input = string | number[];

function countInputs(inputs: readonly Input[]): number {
  let total = 0;
  inputs.forEach((input, index) => {
    const tokens = countInput(input);
    if (tokens > MAX_TOKENS_PER_INPUT) {
      throw invalidField(`input[${index}]`, `${tokens} tokens; at most ${MAX_TOKENS_PER_INPUT} are allowed`);
    }
    total += tokens;
  });
  if (total > MAX_TOKENS) throw invalidField("input", `${total} tokens in all; at most ${MAX_TOKENS} are allowed`);
  return total;
}

/** A vector of length one; the same input always gives the same one. */
export function embed(input: Input, dimensions: number): Float32Array {
  const words = typeof input === "string" ? (input.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [input]) : input;
  const sums = new Float64Array(dimensions);
  for (const word of words) {
    for (let seed = 0; seed < COMPONENTS_PER_WORD; seed++) {
      const hash = Bun.hash.xxHash32(String(word), seed);
      const component = (hash >>> 1) % dimensions;
      sums[component] = (sums[component] as number) + (hash & 1 ? 1 : -1);
    }
  }
  const length = Math.hypot(...sums);
  if (length === 0) sums[0] = 1; // all words cancelled each other out; a zero vector has no direction to compare
  return Float32Array.from(sums, (sum) => sum / (length || 1));
}

/** Little-endian 32-bit floats, which is the byte order of every machine that Bun runs on. */
function toBase64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");
}
