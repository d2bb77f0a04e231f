// The long form: sh bin/bun test/simulation/config-layers.ts [--sequences 10000] [--seed 1]. Random sequences of API changes, edits
// of the file, rollbacks and restarts; ends with 0 if every one of them kept the rules. The shortest that did not is printed.

import { parseArgs } from "node:util";
import fc from "fast-check";
import { runSequence, sequences } from "./config-layers-run.ts";

const { values } = parseArgs({
  options: { sequences: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } },
});

const startedMs = performance.now();
let steps = 0;
const property = fc.asyncProperty(sequences, async (sequence) => {
  steps += sequence.length;
  await runSequence(sequence);
});
const result = await fc.check(property, { numRuns: Number(values.sequences), seed: Number(values.seed) });
const seconds = Math.round((performance.now() - startedMs) / 1_000);
console.log({ sequences: result.numRuns, steps, seed: result.seed, seconds, failed: result.failed });
if (result.failed) console.log(result.errorInstance, JSON.stringify(result.counterexample));
process.exitCode = result.failed ? 1 : 0;
