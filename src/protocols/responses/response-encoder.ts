// A whole answer -> the body of a Responses answer.

import type { GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { encodeFinish } from "./finish.ts";
import { encodeOutput } from "./output-items.ts";
import { createFrame, responseObject } from "./response-object.ts";

export function encodeResponse(result: GenerationResult, context: AnswerContext): JsonObject {
  return responseObject(createFrame(result, context), {
    ...encodeFinish(result.finish),
    error: null,
    output: encodeOutput(result, context),
    usage: { counts: result.usage },
  });
}
