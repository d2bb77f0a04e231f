// The log: pino in process (its worker-thread transports break in compiled binaries), one line per event on stderr.

import pino, { type Logger as PinoLogger } from "pino";
import type { Settings } from "../config/sections/registry.ts";
import { batchedOutput } from "./batched-output.ts";

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

/**
 * Writes the same info lines as `log.info(fields, message)`, for those that come with every request; of the fields at
 * least one is not undefined. One call of JSON.stringify makes most of a line. pino puts it together from a dozen pieces,
 * which costs three times as much, and again as much when the pieces become one text for the batch.
 */
export function infoLineWriter(log: Logger, message: string): (fields: object) => void {
  const destination = destinationOf(log);
  if (destination === undefined) return (fields) => log.info(fields, message);
  const info = pino.levels.values.info as number;
  const end = `,"msg":${JSON.stringify(message)}}\n`;
  let atMs = 0;
  let time = "";
  return (fields) => {
    if (!log.isLevelEnabled("info")) return;
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      time = new Date(nowMs).toISOString();
    }
    destination.lastLevel = info;
    destination.write(`{"level":"info","time":"${time}",${JSON.stringify(fields).slice(1, -1)}${end}`);
  };
}

function formatOf({ format }: Settings["logging"]): Destination["format"] {
  return format === "json" ? undefined : readable(format === "pretty");
}

function readable(colorize: boolean): (line: string) => string {
  // Loaded where it is used: most gateways log JSON, and it holds 4 MB.
  const { prettyFactory } = require("pino-pretty") as typeof import("pino-pretty");
  return prettyFactory({
    colorize,
    singleLine: true,
    translateTime: colorize ? "HH:MM:ss.l" : "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'",
  });
}

/** For tests and for one-off commands. */
export function silentLogger(): Logger {
  return pino({ level: "silent" });
}
