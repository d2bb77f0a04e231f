// The long form: sh bin/bun test/fuzz/media-fuzz.ts [--inputs 100000] [--seed 1]. Forms and PNG images with
// random changes, half of the inputs each; ends with 0 if nothing but what they are made for was thrown.

import { parseArgs } from "node:util";
import { seededRandom } from "../simulation/seeded-random.ts";
import { fuzzMultipart } from "./multipart.ts";
import { fuzzPng } from "./png.ts";

const { values } = parseArgs({
  options: { inputs: { type: "string", default: "100000" }, seed: { type: "string", default: "1" } },
});

const random = seededRandom(Number(values.seed)).next;
const counts: Record<string, number> = {};
const wrong: unknown[] = [];

function run(inputs: number, fuzz: (random: () => number) => string): void {
  for (let done = 0; done < inputs; done++) {
    try {
      const outcome = fuzz(random);
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    } catch (error) {
      wrong.push(error);
    }
  }
}

const inputs = Number(values.inputs);
run(Math.ceil(inputs / 2), fuzzMultipart);
run(Math.floor(inputs / 2), fuzzPng);
console.log({ inputs, seed: Number(values.seed), counts, wrong: wrong.length });
for (const each of wrong.slice(0, 10)) console.log(each);
process.exitCode = wrong.length === 0 ? 0 : 1;
