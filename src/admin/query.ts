// Query parameters of what the gateway has seen: times, numbers and windows; what makes no sense is refused with its name.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { parseTime, TIME_FORMS } from "../lib/parse-time.ts";

const HOUR_MS = 3_600_000;

export const WINDOW_MS: Readonly<Record<string, number>> = {
  "30m": HOUR_MS / 2,
  "1h": HOUR_MS,
  "24h": 24 * HOUR_MS,
  "7d": 7 * 24 * HOUR_MS,
};

export const WINDOW_NAMES: readonly string[] = Object.keys(WINDOW_MS);

/** What the query parameter `window` asks for. */
export interface StatsWindow {
  name: string;
  /** Undefined: all time. */
  ms: number | undefined;
}

/** Throws 400 for a window that does not exist. */
export function readWindow(query: URLSearchParams, windows = WINDOW_MS): StatsWindow {
  const name = query.get("window") ?? "all";
  if (name === "all") return { name, ms: undefined };
  const ms = Object.hasOwn(windows, name) ? windows[name] : undefined;
  if (ms !== undefined) return { name, ms };
  throw new GatewayError(
    ERRORS.invalidRequest,
    `The window must be one of ${Object.keys(windows).join(", ")}; leave it out for everything since the last reset.`,
    { param: "window" },
  );
}

export function readTime(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const timeMs = parseTime(text);
  if (timeMs === undefined) throw badParameter(name, `a time: ${TIME_FORMS}`);
  return timeMs;
}

export function readNumber(query: URLSearchParams, name: string, minimum: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (/^\d{1,12}$/.test(text) && Number(text) >= minimum) return Number(text);
  throw badParameter(name, `a whole number, at least ${minimum}`);
}

export function badParameter(param: string, expected: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `'${param}' must be ${expected}.`, { param });
}
