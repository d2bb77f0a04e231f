// Section batches: files of requests that are answered in the background, and how many of them.

import { z } from "zod";
import { positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const batchesSection = defineSection({
  description: "Batches: files of requests that are answered in the background.",
  isExtension: true,
  schema: z.strictObject({
    enabled: z.boolean().default(true).describe("false: there is no Batch API, and batches under way wait."),
    path: text().default("./data/batches").describe("The folder; a path below ./data lies in server.data_dir."),
    max_concurrent: whole(1, 1024).default(16).describe("Lines of all batches that are asked at the same time."),
    max_lines: whole(1, 1_000_000).default(50_000).describe("Lines of one batch."),
    max_bytes: whole(1, 8 * 1024 ** 3)
      .default(200 * 1024 ** 2)
      .describe("Bytes of the input of one batch."),
    max_open: whole(1, 10_000).default(100).describe("Batches of one owner that are not finished."),
    retention: positiveDuration().prefault("30d").describe("Finished batches are listed for this time."),
    vendor: z
      .union([z.boolean(), z.array(text()).min(1, "name at least one backend, or leave the key out")])
      .default(false)
      .describe(
        "true: lines go through the batch API of their backend's vendor where it has one, at its lower price and its own pace. " +
          "A list: at these backends alone.",
      ),
    class: text().default("batch").describe("Class of the requests in the queue in front of the backends."),
  }),
  filePaths: { path: { use: "data-folder" } },
});
