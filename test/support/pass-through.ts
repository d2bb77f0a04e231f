// A bridge for tests of what lies around it: every request goes on in its own bytes, and so does its answer unless it is the
// rest of another one.

import type { Bridge } from "../../src/pipeline/model-request.ts";
import { translationBy } from "./second-stream.ts";

export const passThrough: Bridge = {
  prepare(_context, { operation, body, asking }) {
    const prepared = { operation, body: body.bytes() };
    return asking.kind === "rest" ? { ...prepared, translation: translationBy("chat", asking.client) } : prepared;
  },
};
