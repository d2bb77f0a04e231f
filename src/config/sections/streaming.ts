// Section streaming: what happens when a backend fails in the middle of a stream.

import { z } from "zod";
import { defineSection } from "../section.ts";

export const streamingSection = defineSection({
  name: "streaming",
  description: "Streams that a backend breaks off after some text was sent.",
  schema: z.strictObject({
    mid_stream_fallback: z
      .strictObject({
        enabled: z
          .boolean()
          .default(false)
          .describe("true: the next backend is asked to go on behind the text that was sent; false: it starts anew."),
        continuation_prompt: z
          .string()
          .min(1)
          .default(
            "Your answer was cut off. Continue it exactly where it ends, without repeating anything and without any remark.",
          )
          .describe("Sent as the user's message behind the text that was sent."),
      })
      .prefault({})
      .describe("Only for models with a fallback chain."),
  }),
});
