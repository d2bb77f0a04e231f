// Section recording: what clients and models have said, kept encrypted, to be found, read and asked again.

import { z } from "zod";
import { bucketFields, keyPrefix } from "./bucket-fields.ts";
import { positiveDuration, text, whole } from "./fields.ts";
import { conditionFields, NAMES_A_CONDITION, patterns } from "./routes.ts";
import { defineSection } from "./section.ts";

const MOST_CONDITIONS = 50;
const MEBIBYTE = 1024 ** 2;

const condition = z
  .strictObject({
    model: patterns().optional().describe("As it was asked for, behind aliases and routes; * stands for any text."),
    route: patterns().optional().describe("The route that was asked for."),
    ...conditionFields,
  })
  .refine(...NAMES_A_CONDITION);

const s3 = z.strictObject({ ...bucketFields("storage s3"), key_prefix: keyPrefix("signalbox/recordings/") });

export const recordingSection = defineSection({
  description: "Requests and answers of clients, kept encrypted to be found, read and asked again.",
  isExtension: true,
  schema: z.strictObject({
    enabled: z.boolean().default(false),
    share: z
      .number()
      .min(0)
      .max(1)
      .default(1)
      .describe("Of the requests that match, from 0 to 1; each has the same chance."),
    match: z
      .array(condition)
      .max(MOST_CONDITIONS, `must be at most ${MOST_CONDITIONS} conditions`)
      .default([])
      .describe("Which requests: those that meet one of the entries. Empty: all."),
    what: z
      .array(z.enum(["request", "answer"]))
      .min(1, "name request, answer or both")
      .default(["request", "answer"])
      .describe("The bodies that are kept."),
    retention: positiveDuration().prefault("7d").describe("Older recordings are removed."),
    max_bytes: whole(MEBIBYTE, 1024 ** 4)
      .default(1024 * MEBIBYTE)
      .describe("Of all recordings together; the oldest make room for new ones."),
    max_body_bytes: whole(1024, 64 * MEBIBYTE)
      .default(4 * MEBIBYTE)
      .describe("Of one body; what is longer is cut."),
    redact: z
      .boolean()
      .default(true)
      .describe("E-mail addresses, phone, card and account numbers and keys are taken out before anything is kept."),
    storage: z
      .enum(["local", "s3"], { error: "expected one of local, s3" })
      .default("local")
      .describe("Where the bodies are. s3: in a bucket; the index stays below path."),
    path: text()
      .default("./data/recordings")
      .describe("The folder of the index and of the key; a path below ./data lies in server.data_dir."),
    s3: s3.prefault({}).describe("For storage s3."),
  }),
  restartFields: ["path"],
  // Conditions have no names: a list of them is one value.
  entryNames: { match: ["name"] },
  filePaths: { path: { use: "data-folder" } },
  secretPaths: ["s3.access_key", "s3.secret_key"],
  sentTo: ["s3.endpoint", "s3.bucket", "s3.region"],
});
