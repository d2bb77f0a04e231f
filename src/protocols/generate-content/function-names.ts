// Names of functions: results carry the name of their call here, which other formats leave to the call's id.

import type { Message } from "../../generation/content.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$/;
const MAX_LENGTH = 128;

/** For a result whose call is nowhere in the conversation. */
const UNKNOWN_NAME = "unknown_tool";

export function isFunctionName(name: string): boolean {
  return NAME.test(name);
}

/** The name as history may say it: an old call must not fail because of its spelling. */
export function historicName(name: string): string {
  if (isFunctionName(name)) return name;
  const letters = name.replace(/[^A-Za-z0-9_.:-]/g, "_").slice(0, MAX_LENGTH - 1);
  return isFunctionName(letters) ? letters : `_${letters}`;
}

/** Id of a call -> name of its function, from all calls of the conversation; of calls with one id the last counts. */
export class FunctionNames {
  readonly #names = new Map<string, string>();

  constructor(messages: readonly Message[]) {
    for (const { parts } of messages) {
      for (const part of parts) {
        if (part.type === "tool-call") this.#names.set(part.id, part.name);
      }
    }
  }

  /** `said`: the name that came with the result itself. */
  nameOf(callId: string, said?: string): string {
    return historicName(this.#names.get(callId) ?? said ?? UNKNOWN_NAME);
  }
}
