// Embeddings of more inputs than a backend takes at once: asked for in slices, answered as one list.

import type { JsonObject } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { RequestContext } from "./context.ts";
import type { Generate, Generated, StreamFrame } from "./generate.ts";
import type { ModelRequest } from "./model-request.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** `mostInputs`: how many inputs each backend of the model takes at once. */
export function withEmbeddingBatches(generate: Generate, mostInputs: (model: string) => number): Generate {
  async function generateSlices(
    context: RequestContext,
    request: ModelRequest,
    frame: StreamFrame,
    input: readonly unknown[],
    most: number,
  ): Promise<Generated> {
    const vectors: JsonObject[] = [];
    const usage = { prompt_tokens: 0, total_tokens: 0 };
    let last: Generated | undefined;
    let answer: JsonObject = {};
    for (let start = 0; start < input.length; start += most) {
      last = await generate(
        { ...context, vendorTurn: undefined },
        slice(request, input.slice(start, start + most)),
        frame,
      );
      if (last.kind !== "plain") return last;
      answer = JSON.parse(decoder.decode(last.result.body)) as JsonObject;
      for (const vector of answer.data as JsonObject[]) vectors.push({ ...vector, index: vectors.length });
      const counted = answer.usage as Partial<typeof usage> | undefined;
      usage.prompt_tokens += counted?.prompt_tokens ?? 0;
      usage.total_tokens += counted?.total_tokens ?? 0;
    }
    const { result, ...rest } = last as Extract<Generated, { kind: "plain" }>;
    const body = encoder.encode(JSON.stringify({ ...answer, data: vectors, usage }));
    return { ...rest, result: { ...result, body } };
  }

  return (context, request, frame) => {
    const { input } = request.body.value;
    const isList = request.operation === "embeddings" && Array.isArray(input) && input.length > 1;
    if (!isList || input.every((entry) => typeof entry === "number")) return generate(context, request, frame);
    const most = mostInputs(request.model);
    return input.length <= most
      ? generate(context, request, frame)
      : generateSlices(context, request, frame, input, most);
  };
}

function slice(request: ModelRequest, input: readonly unknown[]): ModelRequest {
  return { ...request, body: JsonBody.written({ ...request.body.value, input }) };
}
