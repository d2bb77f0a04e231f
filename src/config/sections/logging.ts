// Section logging.

import { z } from "zod";
import { defineSection } from "./section.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;

export const loggingSection = defineSection({
  reload: "immediate",
  listsFields: true,
  description: "Log lines on standard error.",
  schema: z.strictObject({
    level: z.enum(LOG_LEVELS).default("info"),
    format: z
      .enum(["json", "text", "pretty"])
      .optional()
      .describe(
        "json: one object a line; text: for people; pretty: coloured. Default: pretty on a terminal, else json.",
      ),
    access_log: z.boolean().default(true).describe("One line per request; false: only for those that failed."),
  }),
});
