// Section web_search: the service that is asked when a client wants a web search and its model's backends have none.

import { z } from "zod";
import { positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const webSearchSection = defineSection({
  isExtension: true,
  description: "The search service behind web search tools, for models whose backends cannot search themselves.",
  schema: z.strictObject({
    provider: z
      .enum(["serper", "brave", "exa"])
      .optional()
      .describe("serper, brave or exa. Left out: nothing is searched, and such tools are refused."),
    api_key: text().optional().describe("The key of the service."),
    base_url: z
      .string()
      .regex(/^https?:\/\/[^\s/]\S*$/, 'expected a URL that starts with "http://" or "https://"')
      .optional()
      .describe("Default: the service's own address."),
    max_results: whole(1, 20).default(5).describe("Results of one search."),
    max_rounds: whole(1, 20)
      .default(5)
      .describe("How often in one request the model may search and read on; then it has to answer."),
    timeout: positiveDuration().prefault("10s").describe("For one search."),
  }),
  secretPaths: ["api_key"],
  urlPaths: ["base_url"],
  sentTo: ["provider", "base_url"],
});
