// The audio format, speech and transcriptions: what passes untouched, and its words for errors.

import type { Format } from "../format.ts";
import { encodeErrorBody } from "../standard-error.ts";
import { typedErrorEvent } from "../typed-error-event.ts";
import { audioPassThrough } from "./pass-through.ts";

export const audio = {
  words: { errorBody: encodeErrorBody, errorEvent: typedErrorEvent },
  passing: audioPassThrough,
} satisfies Format;
