// What clients ask engines with prefix caches: conversations, one system prompt for nearly all, agents, bursts, and prompts
// that have nothing in common.

import { PrefixChain } from "../../src/kv-index/prefix-hash.ts";
import type { SeededRandom } from "./seeded-random.ts";

interface Stage {
  at(ms: number, what: () => void): void;
  now(): number;
  /** `tokens`: length of the answer. */
  ask(session: string, chain: PrefixChain, tokens: number, answered: () => void): void;
  random: SeededRandom;
}

export interface Workload {
  name: string;
  begin(stage: Stage): void;
}

/** Blocks are named by numbers; what a name stands for depends on all before it. */
function chainOf(names: readonly number[]): PrefixChain {
  const words = new Uint32Array(names.length * 2);
  let hash = 0;
  names.forEach((name, block) => {
    hash = Bun.hash.xxHash32(`${name}`, hash);
    words[block * 2] = hash;
    words[block * 2 + 1] = Bun.hash.xxHash32(`high ${name}`, hash);
  });
  return new PrefixChain(words);
}

const blocksOf = (first: number, count: number) => Array.from({ length: count }, (_, block) => first + block);

/** Far from each other, so that no two have a block in common. */
const OWN = 1_000_000;
const nothing = () => {};

/** Sessions that come by chance, each with several turns. */
function sessions(
  stage: Stage,
  count: number,
  everyMs: number,
  turns: { first: (session: number) => number[]; number: number; blocks: number; pauseMs: number; tokens: number },
): void {
  const { random } = stage;
  let startMs = 0;
  for (let session = 0; session < count; session++) {
    startMs += random.exponential(everyMs);
    const prompt = turns.first(session);
    let own = OWN * (session + 1);
    const ask = (turn: number): void => {
      prompt.push(...blocksOf(own, turns.blocks));
      own += turns.blocks;
      const again =
        turn + 1 < turns.number
          ? () => stage.at(stage.now() + random.exponential(turns.pauseMs), () => ask(turn + 1))
          : nothing;
      stage.ask(`session ${session}`, chainOf(prompt), turns.tokens, again);
    };
    stage.at(startMs, () => ask(0));
  }
}

/** `size` 1 is about five thousand requests each. */
export function workloads(size: number): Workload[] {
  const times = (count: number) => Math.ceil(count * size);
  return [
    {
      name: "multi-turn",
      begin: (stage) =>
        sessions(stage, times(800), 500, {
          first: () => blocksOf(1, 2),
          number: 6,
          blocks: 6,
          pauseMs: 8_000,
          tokens: 150,
        }),
    },
    {
      name: "shared system prompt",
      begin(stage) {
        const isOther = () => stage.random.chance(0.05);
        const first = (session: number) => (isOther() ? blocksOf(-OWN * (session + 2), 30) : blocksOf(1, 30));
        sessions(stage, times(5_000), 50, { first, number: 1, blocks: 4, pauseMs: 0, tokens: 150 });
      },
    },
    {
      name: "agents",
      begin: (stage) =>
        sessions(stage, times(500), 1_000, {
          // The tools of its kind, and what its own task is about.
          first: (session) => [...blocksOf((session % 4) * 100, 20), ...blocksOf(-OWN * (session + 1), 20)],
          number: 10,
          blocks: 3,
          pauseMs: 500,
          tokens: 60,
        }),
    },
    {
      name: "bursts",
      begin(stage) {
        const { random } = stage;
        let startMs = 0;
        for (let burst = 0; burst < times(200); burst++) {
          startMs += random.exponential(2_000);
          for (let request = 0; request < 25; request++) {
            const own = OWN * (burst * 25 + request + 1);
            const prompt = chainOf([...blocksOf(-OWN * (burst + 1), 24), ...blocksOf(own, 3)]);
            stage.at(startMs + random.next() * 1_000, () => stage.ask(`${burst}/${request}`, prompt, 100, nothing));
          }
        }
      },
    },
    {
      name: "no sharing",
      begin: (stage) =>
        sessions(stage, times(5_000), 75, { first: () => [], number: 1, blocks: 20, pauseMs: 0, tokens: 150 }),
    },
  ];
}
