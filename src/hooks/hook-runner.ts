// What runs the hooks of one module or one address, whatever it is made of.

import type { HookAnswer } from "./define.ts";
import type { CheckedVerdict, HookCall, LoadedHook } from "./hook-wire.ts";

/** Calls under way at a runner, and what they may hold, beyond which further ones fail. */
export const MAX_CALLS = 1_000;
export const MAX_HELD_BYTES = 128 * 1024 * 1024;

/** `error`: the hook threw, returned no verdict, or its process ended. `message` is for the operator, `thrown` for its author. */
export type HookOutcome =
  | { verdict: CheckedVerdict }
  | { error: "error" | "timeout" | "unavailable"; message: string; thrown?: string };

export interface HookRunner {
  /** What the hook has, once it is loaded; undefined where it cannot be. */
  ready(name: string): Promise<LoadedHook | undefined>;
  /** Never rejects. */
  call(
    call: HookCall,
    timeoutMs: number,
    ask: (operation: string, body: string) => Promise<HookAnswer>,
  ): Promise<HookOutcome>;
  /** Calls under way. */
  readonly waiting: number;
  /** A request uses it until it calls what is returned. */
  hold(): () => void;
  /** It ends with the last request that uses it. */
  retire(): void;
  stop(): void;
}

/** Of a question of a hook that no model has answered. */
export function refusedAnswer(status: number, message: string): HookAnswer {
  return { status, body: { error: { message } } };
}
