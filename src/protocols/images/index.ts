// The image format: what passes untouched between its clients and its backends, and its words for errors.

import type { Format } from "../format.ts";
import { encodeErrorBody } from "../standard-error.ts";
import { typedErrorEvent } from "../typed-error-event.ts";
import { imagesPassThrough } from "./pass-through.ts";

export const images = {
  words: { errorBody: encodeErrorBody, errorEvent: typedErrorEvent },
  passing: imagesPassThrough,
} satisfies Format;
