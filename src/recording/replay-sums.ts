// Counts the results of a replay.

import type { AnswerSums, ReplayAnswer, ReplayResult, ReplaySums } from "./replay.ts";

const NO_ANSWERS: AnswerSums = { inputTokens: 0, outputTokens: 0, cost: 0, firstByteMs: 0, firstBytes: 0, failed: 0 };

export const NO_RESULTS: ReplaySums = {
  ...{ done: 0, identical: 0, different: 0, better: 0, worse: 0, same: 0 },
  ...{ recorded: NO_ANSWERS, replayed: NO_ANSWERS },
};

export function withResult(sums: ReplaySums, { recorded, replayed, identical, judged }: ReplayResult): ReplaySums {
  const better = judged?.better;
  return {
    done: sums.done + 1,
    identical: sums.identical + Number(identical === true),
    different: sums.different + Number(identical === false),
    better: sums.better + Number(better === "replayed"),
    worse: sums.worse + Number(better === "recorded"),
    same: sums.same + Number(better === "same"),
    recorded: withAnswer(sums.recorded, recorded),
    replayed: withAnswer(sums.replayed, replayed),
  };
}

/** @param answer - null: there is none, which is a failure */
function withAnswer(sums: AnswerSums, answer: ReplayAnswer | null): AnswerSums {
  if (answer === null) return { ...sums, failed: sums.failed + 1 };
  const { inputTokens, outputTokens, cost, firstByteMs, status } = answer;
  return {
    inputTokens: sums.inputTokens + (inputTokens ?? 0),
    outputTokens: sums.outputTokens + (outputTokens ?? 0),
    cost: sums.cost + cost,
    firstByteMs: sums.firstByteMs + (firstByteMs ?? 0),
    firstBytes: sums.firstBytes + Number(firstByteMs !== null),
    failed: sums.failed + Number(status >= 400),
  };
}
