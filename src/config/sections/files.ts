// Section files: limits of the Files API. The API itself is not there yet: nothing reads these settings.

import { z } from "zod";
import { whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const filesSection = defineSection({
  notInEffect: ["max_file_size"],
  description: "Uploaded files. Not in effect yet: this version has no Files API.",
  schema: z.strictObject({
    max_file_size: whole(1, 8 * 1024 ** 3)
      .default(512 * 1024 ** 2)
      .describe("Bytes of the largest upload. Not in effect yet."),
  }),
});
