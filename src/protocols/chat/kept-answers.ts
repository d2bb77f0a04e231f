// Chat answers that are kept and given again.

import { isObject } from "../../lib/json.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import { hasFinishedChoices, isStored, isWholeChunkStream, storingNothing, WITHOUT_EFFECT } from "../kept-chunks.ts";
import { hasSearchTool } from "../search-tool.ts";
import { asStream, asWhole } from "./change-form.ts";

export const chatKept: KeptAnswers = {
  withoutEffect: WITHOUT_EFFECT,
  countsWhenAsked: true,
  hasSideEffect: isStored,
  keepingNothing: storingNothing,
  dependsOnMore: ({ tools, web_search_options }) => isObject(web_search_options) || hasSearchTool({ tools }),
  isWhole: hasFinishedChoices,
  isWholeStream: isWholeChunkStream,
  asStream,
  asWhole,
};
