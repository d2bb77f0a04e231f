// The log: one line per event on stderr.

import type { Settings } from "../config/sections/registry.ts";
import { isTerminal } from "../lib/terminal.ts";
import { batchedOutput } from "./batched-output.ts";
import { describeError } from "./describe-error.ts";
import { prettyLine, textLine } from "./readable.ts";

/** From the least to the most important. */
const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

type Level = (typeof LEVELS)[number];

interface WriteLine {
  /** Members that are undefined are left out; a thrown value stands under `err`. */
  (fields: object, message: string): void;
  (message: string): void;
}

export interface Logger extends Readonly<Record<Level, WriteLine>> {
  /** Lines below this level are not written. */
  level: Level | "silent";
  isLevelEnabled(level: Level): boolean;
  readonly destination: LogDestination;
}

interface LogDestination {
  /** Undefined: lines go out as they are, in JSON. */
  format?: ((line: string) => string) | undefined;
  /** Takes one line with its end; it may wait for others. */
  write(line: string): void;
  /** Writes all lines that wait. */
  flush?(): void;
}

const STANDARD_ERROR = 2;

/**
 * Warnings and errors are written at once, everything else within a tenth of a second. `isShared`: other processes of this
 * gateway write to the same output.
 */
export function createLogger(settings: Settings["logging"], isShared = false): Logger {
  const output = batchedOutput(
    STANDARD_ERROR,
    (count) =>
      `${JSON.stringify({ level: "warn", msg: `${count} log lines were dropped: their reader was too slow` })}\n`,
    isShared,
  );
  return loggerTo({ ...output, format: formatOf(settings) }, settings.level);
}

export function loggerTo(destination: LogDestination, level: Logger["level"] = "info"): Logger {
  const isLevelEnabled = (asked: Level) => logger.level !== "silent" && isAtLeast(asked, logger.level);
  const writer = (level: Level): WriteLine => {
    const isUrgent = isAtLeast(level, "warn");
    return (first: object | string, message?: string) => {
      if (!isLevelEnabled(level)) return;
      const fields = typeof first === "string" ? { msg: first } : { ...withErrorDescribed(first), msg: message };
      send(destination, `${JSON.stringify({ level, time: new Date().toISOString(), ...fields })}\n`);
      if (isUrgent) destination.flush?.();
    };
  };
  const writers = Object.fromEntries(LEVELS.map((level) => [level, writer(level)])) as Record<Level, WriteLine>;
  const logger: Logger = { ...writers, level, isLevelEnabled, destination };
  return logger;
}

function isAtLeast(one: Level, other: Level): boolean {
  return LEVELS.indexOf(one) >= LEVELS.indexOf(other);
}

function withErrorDescribed(fields: { err?: unknown }): object {
  return "err" in fields ? { ...fields, err: describeError(fields.err) } : fields;
}

function send(destination: LogDestination, line: string): void {
  destination.write(destination.format === undefined ? line : destination.format(line));
}

/** The log writes by these settings from now on. */
export function applyLogSettings(log: Logger, settings: Settings["logging"]): void {
  log.level = settings.level;
  log.destination.format = formatOf(settings);
}

/** Levels of lines that come with every request. */
export type LineLevel = "debug" | "info" | "warn";

/**
 * Writes the same lines as `log.info(fields, message)` and the like, for those that come with every request; of the fields
 * at least one is not undefined. The time is put into words once a millisecond, and no object is made of the fields and the
 * rest. Warnings of this kind wait for their batch too: a backend in trouble must not cost a system call per request.
 */
export function lineWriter(log: Logger, message: string): (level: LineLevel, fields: object) => void {
  const { destination } = log;
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
    send(destination, `{"level":"${level}","time":"${time}",${JSON.stringify(fields).slice(1, -1)}${end}`);
  };
}

/** Undefined: lines go out as they are. Where no format is set, a terminal gets lines for people. */
function formatOf({
  format = isTerminal(STANDARD_ERROR) ? "pretty" : "json",
}: Settings["logging"]): LogDestination["format"] {
  return { json: undefined, text: textLine, pretty: prettyLine }[format];
}

/** For tests and for one-off commands. */
export function silentLogger(): Logger {
  return loggerTo({ write() {} }, "silent");
}
