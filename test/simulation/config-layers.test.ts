// The short form of config-layers.ts.

import { test } from "bun:test";
import fc from "fast-check";
import { runSequence, sequences } from "./config-layers-run.ts";

test("whatever happens to file and API: no revoked secret is ever valid, and no change is lost that the file left alone", async () => {
  await fc.assert(fc.asyncProperty(sequences, runSequence), { numRuns: 30 });
}, 60_000);
