// Section responses: what requests may refer to that a backend keeps.

import { z } from "zod";
import { defineSection } from "./section.ts";

export const responsesSection = defineSection({
  isExtension: true,
  description: "Earlier answers that a backend keeps, and who may build on them.",
  schema: z.strictObject({
    share_vendor_state: z
      .boolean()
      .default(false)
      .describe(
        "Whether requests may name answers, items and conversations at a backend of which it is not known whose they are, " +
          "although there are several owners.",
      ),
  }),
});
