// Names of functions, and what of a name history may say.

import type { Message } from "../../generation/content.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$/;
const MAX_LENGTH = 128;

export function isFunctionName(name: string): boolean {
  return NAME.test(name);
}

/** The name as history may say it: an old call must not fail because of its spelling. */
export function historicName(name: string): string {
  if (isFunctionName(name)) return name;
  const letters = name.replace(/[^A-Za-z0-9_.:-]/g, "_").slice(0, MAX_LENGTH - 1);
  return isFunctionName(letters) ? letters : `_${letters}`;
}

/** Of all calls of the conversation; of calls with one id the last counts. */
export function functionNames(messages: readonly Message[]): ReadonlyMap<string, string> {
  const parts = messages.flatMap((message) => message.parts);
  return new Map(parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part.name]] : [])));
}
