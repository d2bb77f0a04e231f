// Section model_aliases: other names under which Messages clients may ask for models.

import { z } from "zod";
import { text } from "./fields.ts";
import { defineSection } from "./section.ts";

export const modelAliasesSection = defineSection({
  isExtension: true,
  description:
    "What Messages clients ask for -> the model that answers. A key is a whole name, a word of it such as haiku, or default.",
  schema: z.record(text(), text()),
});
