// Section streaming: token counts of streams, and what happens when a backend fails in the middle of one.

import { z } from "zod";
import { positiveDuration } from "./fields.ts";
import { defineSection } from "./section.ts";

export const streamingSection = defineSection({
  isExtension: true,
  description: "Token counts of streams, and streams that a backend breaks off after some text was sent.",
  schema: z.strictObject({
    count_tokens: z
      .boolean()
      .default(true)
      .describe("true: backends are asked for the token counts of every stream; who did not ask does not see them."),
    keepalive: positiveDuration()
      .prefault("15s")
      .describe(
        "How often the stream of a request that waits in the queue gets a comment (: waiting); its status is sent with the first one.",
      ),
    image_events: z
      .enum(["both", "specification", "openai"])
      .default("both")
      .describe(
        "Names of the events of image streams: those of the gateway's own specification, those of OpenAI's API, or both.",
      ),
    mid_stream_fallback: z
      .strictObject({
        enabled: z
          .boolean()
          .default(false)
          .describe(
            "Along a fallback chain. true: the next backend is asked to go on behind the text that was sent; false: it starts again.",
          ),
        exact_continuation: z
          .boolean()
          .default(true)
          .describe(
            "true: another backend of the same model goes on exactly where the text stopped, with or without a chain, where its engine can.",
          ),
        continuation_prompt: z
          .string()
          .min(1)
          .default(
            "Your answer was cut off. Continue it exactly where it ends, without repeating anything and without any remark.",
          )
          .describe("Sent as the user's message behind the text that was sent."),
      })
      .prefault({})
      .describe("What is asked of the backend that takes over."),
  }),
});
