// What a strict backend is told to answer, in words of no vendor. Independent of src on purpose: it is what the codecs
// are measured by.

export type JsonObject = Record<string, unknown>;

export interface ScriptedCitation {
  url: string;
  title: string;
  citedText: string;
  /** Offsets in the text of the part. */
  start: number;
  end: number;
}

export type ScriptedPart =
  | { type: "text"; text: string; citations?: readonly ScriptedCitation[] }
  /** `redacted`: only a sealed form is shown, where the vendor has one. */
  | { type: "thinking"; text: string; redacted?: boolean }
  /** Without an id the backend makes one as its vendor does. */
  | { type: "call"; name: string; arguments: JsonObject; id?: string }
  | { type: "refusal"; text: string }
  /** A web search that the vendor made itself. */
  | { type: "search"; query: string; results: readonly { url: string; title: string; pageAge?: string }[] };

export type ScriptedFinish = "stop" | "stop-sequence" | "length" | "tool-calls" | "content-filter" | "pause";

export interface ScriptedUsage {
  /** All tokens of the prompt, those of the cache included. */
  input: number;
  cacheRead?: number;
  cacheWrite?: number;
  /** All generated tokens, thinking included. */
  output: number;
  reasoning?: number;
}

export interface ScriptedError {
  status: number;
  message: string;
  /** As the vendor calls it; made from the status when left out. */
  type?: string;
  retryAfter?: string;
}

export interface ScriptedAnswer {
  parts: readonly ScriptedPart[];
  /** tool-calls when there is a call, else stop. */
  finish?: ScriptedFinish;
  stopSequence?: string;
  usage?: ScriptedUsage;
  /** Characters of a delta. */
  deltaLength?: number;
  /** Arguments of neighbouring calls arrive in turns, where the format can do that. */
  interleaved?: boolean;
  /** The stream ends after so many frames: with the vendor's error event, or cut without a word. */
  breakAfterFrames?: number;
  breakWith?: ScriptedError | "cut";
}

export type ScriptEntry = ScriptedAnswer | { error: ScriptedError };

/** Answers in the order of the requests that were accepted, or made for each of them. */
export type Script = readonly ScriptEntry[] | ((body: JsonObject) => ScriptEntry);

export const text = (text: string, citations?: readonly ScriptedCitation[]): ScriptedPart => ({
  type: "text",
  text,
  ...(citations !== undefined && { citations }),
});

export const thinking = (text: string, redacted = false): ScriptedPart => ({ type: "thinking", text, redacted });

export const call = (name: string, args: JsonObject = {}, id?: string): ScriptedPart => ({
  type: "call",
  name,
  arguments: args,
  ...(id !== undefined && { id }),
});

export const refusal = (text: string): ScriptedPart => ({ type: "refusal", text });

export const answer = (...parts: ScriptedPart[]): ScriptedAnswer => ({ parts });

export const failure = (
  status: number,
  message = "scripted failure",
  more: Partial<ScriptedError> = {},
): ScriptEntry => ({
  error: { status, message, ...more },
});

const DEFAULT_DELTA_LENGTH = 5;

/** The text cut into deltas; pieces never cut a surrogate pair. */
export function deltas(text: string, answer: ScriptedAnswer): string[] {
  const characters = [...text];
  const length = answer.deltaLength ?? DEFAULT_DELTA_LENGTH;
  const pieces: string[] = [];
  for (let start = 0; start < characters.length; start += length) {
    pieces.push(characters.slice(start, start + length).join(""));
  }
  return pieces;
}

export function finishOf(answer: ScriptedAnswer): ScriptedFinish {
  return answer.finish ?? (answer.parts.some((part) => part.type === "call") ? "tool-calls" : "stop");
}

export function usageOf(answer: ScriptedAnswer): Required<ScriptedUsage> {
  return { input: 10, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0, ...answer.usage };
}

/** Runs of neighbouring calls and single other parts, in order. */
export function groups(answer: ScriptedAnswer): ScriptedPart[][] {
  const found: ScriptedPart[][] = [];
  for (const part of answer.parts) {
    const last = found.at(-1);
    if (part.type === "call" && last?.[0]?.type === "call") last.push(part);
    else found.push([part]);
  }
  return found;
}

/** Lists whose members come in turns: [a, b], [c] -> a, c, b. */
export function inTurns<Member>(lists: readonly (readonly Member[])[]): Member[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1))).flat();
}
