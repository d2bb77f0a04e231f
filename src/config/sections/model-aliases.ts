// Section model_aliases: other names under which Messages clients may ask for models.

import { z } from "zod";
import { defineSection } from "./section.ts";

export const modelAliasesSection = defineSection({
  name: "model_aliases",
  adminVisible: false,
  reload: "gradual",
  description:
    "Requested model -> the model that answers. A key is a whole name, a word of it such as haiku, or default.",
  schema: z.record(z.string().min(1, "must not be empty"), z.string().min(1, "must not be empty")),
});
