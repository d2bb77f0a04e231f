// Section model_metadata: what is known of models, and whether the model list shows it.

import { z } from "zod";
import { defineSection } from "./section.ts";

export const modelMetadataSection = defineSection({
  isExtension: true,
  description: "Facts about models: names, limits, prices, how they think.",
  schema: z.strictObject({
    file: z
      .string()
      .min(1)
      .optional()
      .describe("YAML file with the top-level key models; --model-metadata wins over it."),
    enrichment: z
      .boolean()
      .default(true)
      .describe("Whether GET /v1/models names the backends of a model and its metadata."),
  }),
  filePaths: { file: { use: "file", endings: [".yaml", ".yml", ".json"] } },
  aliases: { model_metadata_file: "file" },
});
