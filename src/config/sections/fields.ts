// Field types that several sections share.

import { z } from "zod";
import { DURATION_PATTERN, parseDuration } from "../../lib/duration.ts";

/** A duration text such as "30s"; the setting is its milliseconds. */
export const duration = (): z.ZodType<number, string> =>
  z
    .string({ error: 'expected a duration with its unit, such as "250ms", "30s", "5m" or "1h"' })
    .regex(new RegExp(DURATION_PATTERN), 'expected a duration with its unit, such as "250ms", "30s", "5m" or "1h"')
    .transform((text) => parseDuration(text) as number);

export const positiveDuration = (): z.ZodType<number, string> =>
  duration().refine((durationMs) => durationMs > 0, "must be longer than zero") as z.ZodType<number, string>;

/** A moment as RFC 3339 writes it, such as "2027-01-31T12:00:00Z"; the setting is its milliseconds since the Unix epoch. */
export const timestamp = (): z.ZodType<number, string> =>
  z.iso
    .datetime({ offset: true, error: 'expected a time such as "2027-01-31T12:00:00Z"' })
    .transform((text) => Date.parse(text)) as z.ZodType<number, string>;

export const text = () => z.string().min(1, "must not be empty");

export const timeZone = () =>
  text().refine(isTimeZone, 'expected a time zone such as "Europe/Berlin" or "UTC"').default("UTC");

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** One value stands for a list of it. */
export const oneOrMore = <Schema extends z.ZodType>(schema: Schema) =>
  z.union([schema.transform((one) => [one]), z.array(schema).min(1, "name at least one")]);

/** A user of Basic credentials, whose name ends at a colon. */
export const userName = () => text().regex(/^[^:]*$/, "must not contain a colon");

export const whole = (minimum: number, maximum?: number) =>
  maximum === undefined ? z.int().min(minimum) : z.int().min(minimum).max(maximum);

export const httpStatus = () => whole(100, 599);

/** A path on a backend, such as "/health". */
export const urlPath = () => z.string().regex(/^\/\S*$/, 'expected a path that starts with "/"');

/** A token, RFC 9110, section 5.6.2. */
export const headerName = () => z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "expected an HTTP header name");

/** RFC 9110, section 5.5. */
export const headerValue = () =>
  z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, "expected the value of an HTTP header, in one line");

type WithoutDefault<Field> = Field extends z.ZodDefault<infer Inner> | z.ZodPrefault<infer Inner> ? Inner : Field;

/** The same fields without their defaults and all optional, so that a backend can override single ones. */
export function overridesOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const fields = Object.entries(shape).map(([name, field]) => [
    name,
    field instanceof z.ZodDefault || field instanceof z.ZodPrefault ? field.unwrap() : field,
  ]);
  return z.strictObject(Object.fromEntries(fields) as { [Name in keyof Shape]: WithoutDefault<Shape[Name]> }).partial();
}
