// What a replay is: recorded requests asked again of another model, target of a route or with another prompt, side by side with
// what was answered then.

import type { CallerReference } from "../access/caller-reference.ts";
import type { Overrides } from "../config/sections/routes.ts";

/** How the requests are asked. */
export interface ReplaySpec {
  /** As it is shown: what the operator has named. */
  model: string | null;
  route: string | null;
  arm: string | null;
  prompt: string | null;
  key: string | null;
  judge: { model: string; rubric: string } | null;
  /** What requests name as their model; null: the one that they named. */
  ask: string | null;
  set: Overrides | null;
  /** Text of the prompt, which takes the place of the instructions. */
  instructions: string | null;
  creator: CallerReference;
}

/** interrupted: its answers could not be kept. */
export type ReplayStatus = "running" | "completed" | "interrupted";

export interface StoredReplay {
  id: string;
  atMs: number;
  status: ReplayStatus;
  spec: ReplaySpec;
  total: number;
  sums: ReplaySums;
}

export interface ReplayAnswer {
  status: number;
  /** Of the request that was made. */
  requestId: string;
  text: string;
  toolCalls: readonly ToolCallText[];
  finish: string | null;
  error: string | null;
  backend: string | null;
  inputTokens: number | null;
  outputTokens: number | null;
  cost: number;
  firstByteMs: number | null;
  durationMs: number;
}

export interface ToolCallText {
  name: string;
  arguments: string;
}

export type JudgedBetter = "replayed" | "recorded" | "same";

export interface ReplayResult {
  recorded: ReplayAnswer;
  /** Null: it could not be asked, `reason` says why. */
  replayed: ReplayAnswer | null;
  reason: string | null;
  /** Whether text and calls are the same; null where the temperature is not 0. */
  identical: boolean | null;
  judged: { better: JudgedBetter | null; reason: string } | null;
}

export interface ReplayItem {
  position: number;
  recording: string;
  /** It was under way when an earlier process ended: what the backend did then is not known. */
  isAskedAgain: boolean;
  /** Null: not asked yet. */
  result: ReplayResult | null;
}

/** Of the results of a replay; those of recordings that were deleted since are counted on. */
export interface ReplaySums {
  done: number;
  identical: number;
  different: number;
  /** The judge finds the replayed answer better. */
  better: number;
  worse: number;
  same: number;
  recorded: AnswerSums;
  replayed: AnswerSums;
}

export interface AnswerSums {
  inputTokens: number;
  outputTokens: number;
  /** In 10^-9 of the currency's unit. */
  cost: number;
  /** All together, of so many answers. */
  firstByteMs: number;
  firstBytes: number;
  failed: number;
}
