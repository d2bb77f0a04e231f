// The conditions of a route (routes[].when): whether a request meets them, and in which words its story says so.

import type { ConditionSettings, Feature } from "../config/sections/routes.ts";
import { compileGlob } from "../lib/glob.ts";

/** What of a request conditions look at. What has to be computed is a function, and called at most once for each condition. */
export interface RouteSubject {
  inputTokens(): number;
  has(feature: Feature): boolean;
  keyId: string | undefined;
  /** The user that the key names, and the one that the request names. */
  users(): readonly (string | undefined)[];
  organizationId: string | undefined;
  header(name: string): string | null;
  metadata(name: string): unknown;
  /** Milliseconds since 1970. */
  wallTimeMs: number;
}

export interface RouteCondition {
  /** Such as "has image" or "key batch-*, hours 22:00-06:00". */
  words: string;
  holds(subject: RouteSubject): boolean;
}

/** The conditions alone, whatever they lead to. */
type Conditions = Omit<ConditionSettings, "targets"> & { targets?: unknown };

export function compileCondition(settings: Conditions): RouteCondition {
  const { input_tokens, has, key, user, organization, header = {}, metadata = {}, hours, time_zone } = settings;
  const tests: ((subject: RouteSubject) => boolean)[] = [];
  const words: string[] = [];
  function add(text: string, test: (subject: RouteSubject) => boolean): void {
    words.push(text);
    tests.push(test);
  }
  // Those that cost least come first.
  if (key !== undefined)
    add(
      `key ${key.join(" or ")}`,
      matching(key, ({ keyId }) => [keyId]),
    );
  if (organization !== undefined) {
    add(
      `organization ${organization.join(" or ")}`,
      matching(organization, ({ organizationId }) => [organizationId]),
    );
  }
  if (user !== undefined)
    add(
      `user ${user.join(" or ")}`,
      matching(user, (subject) => subject.users()),
    );
  for (const [name, patterns] of Object.entries(header)) {
    add(
      `header ${name}`,
      matching(patterns, (subject) => [subject.header(name)]),
    );
  }
  for (const [name, patterns] of Object.entries(metadata)) {
    add(
      `metadata ${name}`,
      matching(patterns, (subject) => [subject.metadata(name)]),
    );
  }
  if (hours !== undefined) add(`hours ${hours} ${time_zone}`, within(hours, time_zone));
  if (has !== undefined) add(`has ${has.join(", ")}`, (subject) => has.every((feature) => subject.has(feature)));
  if (input_tokens !== undefined) add(`input_tokens ${input_tokens}`, comparison(input_tokens));
  return { words: words.join("; "), holds: (subject) => tests.every((test) => test(subject)) };
}

function matching(
  patterns: readonly string[],
  values: (subject: RouteSubject) => readonly unknown[],
): (subject: RouteSubject) => boolean {
  const globs = patterns.map(compileGlob);
  return (subject) =>
    values(subject).some((value) => typeof value === "string" && globs.some((matches) => matches(value)));
}

const COMPARISONS: Readonly<Record<string, (left: number, right: number) => boolean>> = {
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
};

function comparison(text: string): (subject: RouteSubject) => boolean {
  const [, sign = "", bound] = /^([<>]=?)\s*(\d+)$/.exec(text) ?? [];
  const compare = COMPARISONS[sign];
  return ({ inputTokens }) => compare?.(inputTokens(), Number(bound)) === true;
}

/** The end of the part does not belong to it; one that does not end behind its beginning goes over midnight. */
function within(hours: string, timeZone: string): (subject: RouteSubject) => boolean {
  const [from = 0, until = 0] = hours.split("-").map(minutesOf);
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return ({ wallTimeMs }) => {
    const now = minutesOf(clock.format(wallTimeMs));
    return from < until ? now >= from && now < until : now >= from || now < until;
  };
}

function minutesOf(text: string): number {
  const [hour, minute] = text.split(":").map(Number);
  return (hour as number) * 60 + (minute as number);
}
