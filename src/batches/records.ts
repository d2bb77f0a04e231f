// Records of a batch's log, one line each: a line of the input was begun, was not sent after all, has its result, or cannot be asked.

import type { LineResult, LineSums } from "./batch-store.ts";

export type LogRecord =
  | { kind: "begun"; position: number }
  | { kind: "unsent"; position: number }
  | { kind: "result"; position: number; sums: LineSums; result: LineResult }
  | { kind: "faulty"; result: LineResult };

const RESULT = /^r (\d+) ([oe]) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) /;
const FAULTY = /^b (\d+) /;
const BEGUN = /^s (\d+)$/;
const UNSENT = /^n (\d+)$/;
/** Longer than every head. */
const HEAD_BYTES = 200;

const decoder = new TextDecoder();

export function begunRecord(position: number): string {
  return `s ${position}\n`;
}

/** The line was begun, and no backend has got it. */
export function unsentRecord(position: number): string {
  return `n ${position}\n`;
}

export function resultRecord(position: number, { isError, text }: LineResult, sums: LineSums): string {
  const { input, cachedInput, output, reasoning, cost } = sums;
  const numbers = `${input} ${cachedInput} ${output} ${reasoning} ${cost}`;
  return `r ${position} ${isError ? "e" : "o"} ${numbers} ${Buffer.byteLength(text)} ${text}\n`;
}

export function faultyRecord({ text }: LineResult): string {
  return `b ${Buffer.byteLength(text)} ${text}\n`;
}

/** Undefined for a line that is none: a crash has torn it. */
export function readRecord(line: Uint8Array): LogRecord | undefined {
  const head = decoder.decode(line.subarray(0, HEAD_BYTES));
  const begun = BEGUN.exec(head);
  if (begun !== null) return { kind: "begun", position: Number(begun[1]) };
  const unsent = UNSENT.exec(head);
  if (unsent !== null) return { kind: "unsent", position: Number(unsent[1]) };
  const faulty = FAULTY.exec(head);
  if (faulty !== null) {
    const text = restOf(line, faulty[0], Number(faulty[1]));
    return text === undefined ? undefined : { kind: "faulty", result: { isError: true, text } };
  }
  const result = RESULT.exec(head);
  if (result === null) return undefined;
  const [whole, position, outcome, ...numbers] = result;
  const [input = 0, cachedInput = 0, output = 0, reasoning = 0, cost = 0, bytes = 0] = numbers.map(Number);
  const text = restOf(line, whole, bytes);
  if (text === undefined) return undefined;
  return {
    kind: "result",
    position: Number(position),
    sums: { input, cachedInput, output, reasoning, cost },
    result: { isError: outcome === "e", text },
  };
}

/** Heads are ASCII, so that their characters are bytes. */
function restOf(line: Uint8Array, head: string, bytes: number): string | undefined {
  return line.byteLength === head.length + bytes ? decoder.decode(line.subarray(head.length)) : undefined;
}
