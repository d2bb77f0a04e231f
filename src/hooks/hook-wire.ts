// What a gateway and the process of a module say to each other: plain data.

import type { HookEvent } from "../config/sections/hooks.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { ChunkCuts, ChunkKind, HookAnswer, HookInfo } from "./define.ts";

/** One entry of `hooks` that a process runs. */
export interface HostedHook {
  name: string;
  /** An absolute path, or builtin: and a name. */
  module: string;
  options: Record<string, unknown>;
  salt: string;
}

/** What an event carries besides the request that it belongs to. Bodies are JSON. */
export interface EventData {
  body?: Uint8Array;
  backend?: string;
  model?: string;
  attempt?: number;
  round?: number;
  part?: ChunkKind;
  index?: number;
  text?: string;
  isLast?: boolean;
  end?: {
    status: number;
    outcome: string;
    durationMs: number;
    backend?: string | undefined;
    failure?: string | undefined;
    inputTokens?: number | undefined;
    outputTokens?: number | undefined;
  };
}

export interface HookCall {
  event: HookEvent;
  hook: string;
  info: HookInfo;
  /** JSON; undefined: none was returned yet. */
  state: string | undefined;
  data: EventData;
}

export interface Noted {
  state?: string;
  note?: Record<string, number | boolean>;
}

/** A verdict that was checked. `body` is JSON. */
export type CheckedVerdict = Noted &
  (
    | { kind: "pass" }
    /** `changes`: what the story says of a changed body. */
    | { kind: "change"; body?: string; changes?: string; result?: GenerationResult; text?: string; rest?: string }
    | { kind: "refuse"; status: number; code: string; message: string }
    | { kind: "answer"; result: GenerationResult }
    | { kind: "repair"; message: string }
  );

/** What a module has, once it is loaded. */
export interface LoadedHook {
  name: string;
  events: readonly HookEvent[];
  chunks: Required<ChunkCuts>;
  /** It cannot be used. */
  problem?: string;
}

export type ToHost =
  | { kind: "start"; hooks: readonly HostedHook[] }
  | { kind: "call"; id: number; call: HookCall }
  | { kind: "asked"; id: number; answer: HookAnswer }
  | { kind: "ping" };

export type FromHost =
  | { kind: "ready"; hooks: readonly LoadedHook[] }
  | { kind: "verdict"; id: number; verdict: CheckedVerdict }
  /** `thrown`: the words of the module, for its author alone. */
  | { kind: "failed"; id: number; message: string; thrown: string }
  | { kind: "ask"; id: number; call: number; operation: string; body: string }
  | { kind: "pong" };

/** The size of what the event has for the hook to change. */
export function givenBytes({ body, text }: EventData): number {
  return body?.length ?? text?.length ?? 0;
}
