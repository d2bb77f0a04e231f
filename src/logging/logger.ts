// The log: pino in process (its worker-thread transports break in compiled binaries), one line per event on stderr.

import pino, { type Logger as PinoLogger } from "pino";
import pretty from "pino-pretty";
import type { Settings } from "../config/sections/registry.ts";

export type Logger = PinoLogger;

/** Lines are written whole and at once, so that nothing is lost when the process ends. */
export function createLogger(settings: Settings["logging"]): Logger {
  const destination = pino.destination({ fd: 2, sync: true });
  const options = {
    level: settings.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  if (settings.format === "json") return pino(options, destination);
  const stream = pretty({
    colorize: settings.format === "pretty",
    singleLine: true,
    sync: true,
    destination: 2,
    translateTime: settings.format === "pretty" ? "HH:MM:ss.l" : "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'",
  });
  return pino(options, stream);
}

/** For tests and for one-off commands. */
export function silentLogger(): Logger {
  return pino({ level: "silent" });
}
