// The log: pino in process (its worker-thread transports break in compiled binaries), one line per event on stderr.

import { isatty } from "node:tty";
import pino, { type Logger as PinoLogger } from "pino";
import type { Settings } from "../config/sections/registry.ts";
import { batchedOutput } from "./batched-output.ts";
import { prettyLine, textLine } from "./readable.ts";

export type Logger = PinoLogger;

const STANDARD_ERROR = 2;

/** Warnings and errors are written at once, everything else within a tenth of a second. */
export function createLogger(settings: Settings["logging"]): Logger {
  const output = batchedOutput(
    STANDARD_ERROR,
    (count) =>
      `${JSON.stringify({ level: "warn", msg: `${count} log lines were dropped: their reader was too slow` })}\n`,
  );
  const destination: Destination = {
    // pino leaves the level of each line here for streams that ask for it.
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    format: formatOf(settings),
    write(line: string) {
      const { format } = destination;
      output.write(format === undefined ? line : format(line));
      if (destination.lastLevel >= pino.levels.values.warn!) output.flush();
    },
  };
  const options = {
    level: settings.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, destination);
}

interface Destination {
  lastLevel: number;
  /** Undefined: lines go out as they are, in JSON. */
  format: ((line: string) => string) | undefined;
  write(line: string): void;
}

/** Undefined for logs that were not made by createLogger(). */
function destinationOf(log: Logger): Destination | undefined {
  const stream = (log as unknown as Record<symbol, object>)[pino.symbols.streamSym as symbol];
  return stream !== undefined && "lastLevel" in stream ? (stream as Destination) : undefined;
}

/** The log writes by these settings from now on. */
export function applyLogSettings(log: Logger, settings: Settings["logging"]): void {
  log.level = settings.level;
  const destination = destinationOf(log);
  if (destination !== undefined) destination.format = formatOf(settings);
}

/** Levels of lines that come with every request. */
export type LineLevel = "debug" | "info" | "warn";

/**
 * Writes the same lines as `log.info(fields, message)` and the like, for those that come with every request; of the fields
 * at least one is not undefined. One call of JSON.stringify makes most of a line. pino puts it together from a dozen
 * pieces, which costs three times as much, and again as much when the pieces become one text for the batch. Warnings of
 * this kind wait for their batch too: a backend in trouble must not cost a system call per request.
 */
export function lineWriter(log: Logger, message: string): (level: LineLevel, fields: object) => void {
  const destination = destinationOf(log);
  if (destination === undefined) return (level, fields) => log[level](fields, message);
  const end = `,"msg":${JSON.stringify(message)}}\n`;
  let atMs = 0;
  let time = "";
  return (level, fields) => {
    if (!log.isLevelEnabled(level)) return;
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      time = new Date(nowMs).toISOString();
    }
    destination.lastLevel = pino.levels.values.info as number;
    destination.write(`{"level":"${level}","time":"${time}",${JSON.stringify(fields).slice(1, -1)}${end}`);
  };
}

/** Undefined: lines go out as they are. Where no format is set, whoever looks at a terminal gets lines for people. */
function formatOf({ format = isatty(STANDARD_ERROR) ? "pretty" : "json" }: Settings["logging"]): Destination["format"] {
  return { json: undefined, text: textLine, pretty: prettyLine }[format];
}

/** For tests and for one-off commands. */
export function silentLogger(): Logger {
  return pino({ level: "silent" });
}
