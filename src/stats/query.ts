// Query parameters that several views read; what makes no sense is refused with its name.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { parseTime, TIME_FORMS } from "../lib/parse-time.ts";

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
