// Words that several features share.

import { answer, type ScriptEntry, text } from "../../support/strict/script.ts";
import type { Ask, AskTool, AskTurn, Reading, ReadPart } from "../ask.ts";
import type { Received, SeenPart } from "../received/received.ts";
import type { Verdict } from "./feature.ts";

export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const PDF = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").toString(
  "base64",
);
export const WAV = Buffer.from("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00", "latin1").toString(
  "base64",
);

export const QUESTION = "What is the weather in Oslo? Answer as JSON if asked to.";
export const FINE: readonly ScriptEntry[] = [answer(text("It is fine. ☀️ 10 °C."))];
const FINE_TEXT = "It is fine. ☀️ 10 °C.";

export const user = (...parts: AskTurn["parts"]): AskTurn => ({ role: "user", parts });
export const said = (words: string) => ({ type: "text", text: words }) as const;
export const asks = (more: Partial<Ask> = {}): Ask => ({ turns: [user(said(QUESTION))], ...more });

export const WEATHER: AskTool = {
  name: "get_weather",
  description: "The weather of a city.",
  schema: {
    type: "object",
    properties: { city: { type: "string", description: "Its name." }, days: { type: "integer" } },
    required: ["city"],
  },
};
export const CLOCK: AskTool = {
  name: "get_time",
  description: "The time of a city.",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

export const lost = (note: string): Verdict => ({ outcome: "dropped", note });
export const absent = (note: string): Verdict => ({ outcome: "absent", note });

export function partsOf<Type extends SeenPart["type"]>(
  received: Received,
  type: Type,
): Extract<SeenPart, { type: Type }>[] {
  return received.turns.flatMap(({ parts }) =>
    parts.filter((part): part is Extract<SeenPart, { type: Type }> => part.type === type),
  );
}

export function textOf({ parts }: Pick<Reading, "parts">): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export function callsOf({ parts }: Pick<Reading, "parts">): Extract<ReadPart, { type: "call" }>[] {
  return parts.filter((part) => part.type === "call");
}

export const isFine = (reading: Reading): boolean => textOf(reading) === FINE_TEXT;

export function same(one: unknown, other: unknown): boolean {
  return Bun.deepEquals(one, other);
}
