// Every row of the matrix, in the order of the page.

import { ANSWERS } from "./answers.ts";
import { CONVERSATION } from "./conversation.ts";
import { ERRORS } from "./errors.ts";
import type { Feature } from "./feature.ts";
import { HISTORIES } from "./histories.ts";
import { SETTINGS } from "./settings.ts";
import { THINKING } from "./thinking.ts";
import { TOOLS } from "./tools.ts";

export const FEATURES: readonly Feature[] = [
  ...CONVERSATION,
  ...TOOLS,
  ...HISTORIES,
  ...THINKING,
  ...ANSWERS,
  ...SETTINGS,
  ...ERRORS,
];
