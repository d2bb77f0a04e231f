// Section files: uploaded files, where they are kept, and how many there may be.

import { z } from "zod";
import { bucketFields, keyPrefix } from "./bucket-fields.ts";
import { positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

/** Of the public Files API (OpenAI's `FilePurpose`, and evals). */
const PURPOSES = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];

const s3 = z.strictObject({ ...bucketFields("storage s3"), key_prefix: keyPrefix("signalbox/") });

export const filesSection = defineSection({
  description: "Uploaded files, where they are kept, and how many there may be.",
  schema: z.strictObject({
    enabled: z.boolean().default(true).describe("false: there is no Files API, and files cannot be referred to."),
    storage: z
      .enum(["local", "s3"], { error: "expected one of local, s3" })
      .default("local")
      .describe("local: on the disk, below path. s3: in a bucket, for all gateways with this bucket and key_prefix."),
    path: text().default("./data/files").describe("The folder; a path below ./data lies in server.data_dir."),
    max_file_size: whole(1, 8 * 1024 ** 3)
      .default(512 * 1024 ** 2)
      .describe("Bytes of the largest upload; at most 5 GiB with storage s3."),
    max_total_size: whole(0).default(0).describe("Bytes of all files together; 0: no limit."),
    retention: positiveDuration()
      .refine((durationMs) => durationMs >= 1000, "must be at least a second")
      .optional()
      .describe("After this time files are removed, unless the upload says otherwise. Default: never."),
    allowed_purposes: z
      .array(text())
      .min(1, "name at least one purpose")
      .default(PURPOSES)
      .describe("What uploads may say that they are for."),
    require_key: z.boolean().default(false).describe("true: callers without an API key get 401."),
    s3: s3.prefault({}).describe("For storage s3."),
  }),
  filePaths: { path: { use: "data-folder" } },
  secretPaths: ["s3.access_key", "s3.secret_key"],
  sentTo: ["s3.endpoint", "s3.bucket", "s3.region"],
});
