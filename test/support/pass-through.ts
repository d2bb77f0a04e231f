// A bridge for tests of what lies around it: every request goes on in its own bytes.

import type { Bridge } from "../../src/pipeline/forward-request.ts";

export const passThrough: Bridge = { prepare: (_context, { operation, body }) => ({ operation, body: body.bytes() }) };
