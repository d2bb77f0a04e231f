// Section global_prompts: system prompts that the gateway adds to every request.

import { z } from "zod";
import { text } from "./fields.ts";
import { defineSection, type FilePathUse } from "./section.ts";

/** Files that prompts are written to and read from by the admin API. */
export const PROMPT_ENDINGS = [".md", ".txt", ".prompt"] as const;

const PROMPT: FilePathUse = { use: "prompt", endings: PROMPT_ENDINGS };

const ownPrompt = z
  .strictObject({
    prompt: z.string().optional(),
    prompt_file: text().optional().describe("Wins over prompt."),
  })
  .refine(({ prompt, prompt_file }) => prompt !== undefined || prompt_file !== undefined, {
    message: "needs prompt or prompt_file",
  });

export const globalPromptsSection = defineSection({
  reload: "immediate",
  description: "A system prompt for every request: that of the model, else of the backend, else the default.",
  schema: z.strictObject({
    default: z.string().optional(),
    default_file: text().optional().describe("Wins over default. Files are relative to prompts_dir."),
    prompts_dir: z.string().min(1).default("prompts").describe("The only folder that prompt files are read from."),
    backends: z.record(z.string(), ownPrompt).default({}).describe("Prompts by backend name."),
    models: z.record(z.string(), ownPrompt).default({}).describe("Prompts by model id."),
    merge_strategy: z
      .enum(["prepend", "append", "replace"])
      .default("prepend")
      .describe("Where the prompt stands: before the system prompt of the request, behind it, or in its place."),
    separator: z.string().default("\n\n").describe("Between the two."),
  }),
  filePaths: {
    prompts_dir: { use: "folder" },
    default_file: PROMPT,
    "backends.*.prompt_file": PROMPT,
    "models.*.prompt_file": PROMPT,
  },
});
