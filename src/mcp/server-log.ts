// What an MCP server prints to its standard error, as log lines: bounded in length and rate, secrets masked.

import { type Line, LineReader } from "../lib/line-reader.ts";
import { type Masking, oneLine } from "./masked.ts";

const MAX_LINE_BYTES = 16 * 1024;
const MAX_LOGGED_LENGTH = 1_000;
const LINES_PER_PERIOD = 50;
const PERIOD_MS = 10_000;

/** At most so many lines per period; what was left out is counted in the next line that is let through. */
export function boundedLog(write: (line: string) => void, nowMs: () => number): (line: string) => void {
  let periodEndsMs = 0;
  let inPeriod = 0;
  let leftOut = 0;
  return (line) => {
    if (nowMs() >= periodEndsMs) {
      periodEndsMs = nowMs() + PERIOD_MS;
      inPeriod = 0;
      if (leftOut > 0) write(`(${leftOut} lines were left out)`);
      leftOut = 0;
    }
    if (inPeriod++ < LINES_PER_PERIOD) write(line);
    else leftOut++;
  };
}

/** Reads to the end. Never throws. */
export async function logStream(
  stream: ReadableStream<Uint8Array>,
  mask: Masking,
  log: (line: string) => void,
): Promise<void> {
  const lines = new LineReader(MAX_LINE_BYTES);
  const decoder = new TextDecoder();
  function tell(said: Line): void {
    const isLong = said === "too-long";
    const line = isLong ? "(a very long line was left out)" : oneLine(mask(decoder.decode(said)), MAX_LOGGED_LENGTH);
    if (line !== "") log(line);
  }
  try {
    for await (const bytes of stream) for (const line of lines.read(bytes)) tell(line);
    const last = lines.end();
    if (last !== undefined) tell(last);
  } catch {
    // The pipe broke with the process, whose end is reported elsewhere.
  }
}
