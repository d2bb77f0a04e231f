// What a model costs on a backend, by its metadata.

import type { ModelPrices } from "../stats/costs.ts";
import type { ModelMetadataSource } from "./metadata.ts";

/** Asks for the price of a model on a backend; on undefined, for that of the model wherever it is. */
export type PriceOf = (model: string, backend: string | undefined) => ModelPrices | undefined;

export function pricesIn(metadata: ModelMetadataSource): PriceOf {
  return (model, backend) => {
    const pricing = (backend === undefined ? metadata.ofAny(model, []) : metadata.of(model, backend))?.pricing;
    return (
      pricing && {
        inputTokens: pricing.input_tokens ?? 0,
        outputTokens: pricing.output_tokens ?? 0,
        cacheReadTokens: pricing.cache_read_tokens,
        cacheWriteTokens: pricing.cache_write_tokens,
        reasoningTokens: pricing.reasoning_tokens,
        image: pricing.image,
        audioMinute: pricing.audio_minute,
        batchDiscount: pricing.batch_discount,
      }
    );
  };
}
