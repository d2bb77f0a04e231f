// Hides secret values in text of other programs: what a server prints may quote its environment.

/** Shorter ones are words like "1" or "true", which would tear every line apart and hide nothing. */
const MIN_LENGTH = 6;
const MASK = "***";

/** Of a server: values of its environment, of its headers, and of its address. */
export function secretsOf(server: {
  env?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  url?: string;
}): string[] {
  const url = URL.parse(server.url ?? "");
  // The text behind "Bearer" is a secret without that word as well.
  const headers = Object.values(server.headers ?? {}).flatMap((value) => [value, ...value.split(/\s+/)]);
  const inAddress = url === null ? [] : [url.password, ...url.searchParams.values()];
  return [...Object.values(server.env ?? {}), ...headers, ...inAddress];
}

export type Masking = (text: string) => string;

export function maskingOf(values: Iterable<string>): Masking {
  // The longest first, so that none is left in part because another is its beginning.
  const pieces = [...values].flatMap((value) => [value, ...value.split("\n").map((line) => line.trim())]);
  const secrets = [...new Set(pieces)]
    .filter((piece) => piece.length >= MIN_LENGTH)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}

/** One line of bounded length, for a log or a person. */
export function oneLine(text: string, maxLength = 500): string {
  const line = text
    .slice(0, maxLength * 2)
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim();
  return line.length > maxLength ? `${line.slice(0, maxLength).trimEnd()} …` : line;
}
