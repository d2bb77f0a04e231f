// What of a text is personal or secret by its form: e-mail addresses, phone and card numbers, bank accounts, keys of vendors. Pure.

/** In the order in which they are looked for: what is found first is no other thing. */
export const SENSITIVE_KINDS = ["key", "email", "iban", "card", "phone"] as const;

export type SensitiveKind = (typeof SENSITIVE_KINDS)[number];

/** Offsets are UTF-16 code units; `end` is exclusive. */
export interface Finding {
  kind: SensitiveKind;
  start: number;
  end: number;
}

interface Pattern {
  /** What every match has, where that is found much sooner than a match: with a rare sign at its start, to which the search leaps. */
  sign?: RegExp;
  find: RegExp;
  /** What the pattern cannot say; left out: every match counts. */
  isValid?(match: string): boolean;
}

/** Keys of well-known vendors, tokens that are signed, and private keys. */
const KEYS = [
  /sk-[A-Za-z0-9_-]{16,200}/,
  /(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,200}/,
  /gh[pousr]_[A-Za-z0-9]{30,255}/,
  /github_pat_\w{22,255}/,
  /glpat-[\w-]{16,200}/,
  /xox[abeoprs]-[A-Za-z0-9-]{10,250}/,
  /(?:AKIA|ASIA)[A-Z0-9]{16}/,
  /AIza[\w-]{35}/,
  /(?:hf|gsk|r8)_[A-Za-z0-9]{20,200}/,
  /npm_[A-Za-z0-9]{30,200}/,
  /eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,2000}/,
  /-----BEGIN (?:[A-Z]{1,10} )?PRIVATE KEY-----[A-Za-z0-9+/=\s]{1,8192}-----END (?:[A-Z]{1,10} )?PRIVATE KEY-----/,
];

/** The starts of all of them, told by a sign that texts seldom have. */
const KEY_SIGN = /[-_zAJ](?<=sk-|pat-|xox[abeoprs]-|-----|k_|gh[pousr]_|pat_|hf_|r8_|npm_|A[KS]IA|AIz|eyJ)/;

/** Numbers with the prefix of a country or of a trunk line, and those of North America. */
const PHONES = [
  /(?:\+[1-9]\d{0,2}|\(?0\d{1,5}\)?)(?:[ ./-]{0,2}\(?\d{1,6}\)?){2,6}/,
  /\(\d{3}\) ?\d{3}[ .-]\d{4}/,
  /\d{3}[.-]\d{3}[.-]\d{4}/,
];

const anyOf = (patterns: readonly RegExp[]) => patterns.map(({ source }) => source).join("|");

/** Every repetition has an upper bound, so that a hostile text cannot make the search slow. */
const PATTERNS: Readonly<Record<SensitiveKind, Pattern>> = {
  key: { sign: KEY_SIGN, find: new RegExp(`(?<![\\w-])(?:${anyOf(KEYS)})(?![\\w-])`, "g") },
  email: {
    sign: /@/,
    find: /(?<![\w.%+-])[A-Za-z0-9_%+-][\w.%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])/g,
  },
  iban: {
    find: /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/g,
    isValid: isIban,
  },
  card: { find: /(?<![\d.,+-])\d(?:[ -]?\d){12,18}(?![\d-])/g, isValid: isCard },
  phone: {
    find: new RegExp(`(?<![\\w.+/-])(?:${anyOf(PHONES)})(?![\\w-])`, "g"),
    isValid: isPhone,
  },
};

/** Takes the place of what was found: a sign that no pattern matches. */
const FOUND = "[";

/** In their order, without overlaps: what one pattern has found, those behind it in the list do not see. */
export function sensitiveIn(text: string, kinds: readonly SensitiveKind[] = SENSITIVE_KINDS): Finding[] {
  const found: Finding[] = [];
  let rest = text;
  for (const kind of SENSITIVE_KINDS) {
    if (!kinds.includes(kind)) continue;
    const { sign, find, isValid } = PATTERNS[kind];
    if (sign?.test(text) === false) continue;
    const before = found.length;
    for (const match of rest.matchAll(find)) {
      if (isValid?.(match[0]) !== false) found.push({ kind, start: match.index, end: match.index + match[0].length });
    }
    rest = without(rest, found.slice(before));
  }
  return found.sort((one, other) => one.start - other.start);
}

function without(text: string, findings: readonly Finding[]): string {
  return spliced(text, findings, ({ start, end }) => FOUND.repeat(end - start));
}

/** @param findings - in their order */
function spliced(text: string, findings: readonly Finding[], replacement: (finding: Finding) => string): string {
  if (findings.length === 0) return text;
  const pieces: string[] = [];
  let from = 0;
  for (const finding of findings) {
    pieces.push(text.slice(from, finding.start), replacement(finding));
    from = finding.end;
  }
  return pieces.join("") + text.slice(from);
}

/** What stands in the place of a finding. */
export function placeholder(kind: SensitiveKind): string {
  return `[redacted ${kind}]`;
}

/** The same text where nothing was found. */
export function redacted(text: string): string {
  return withReplaced(text, SENSITIVE_KINDS, placeholder);
}

/** @param replacement - of what was found */
export function withReplaced(
  text: string,
  kinds: readonly SensitiveKind[],
  replacement: (kind: SensitiveKind, found: string) => string,
): string {
  return spliced(text, sensitiveIn(text, kinds), ({ kind, start, end }) => replacement(kind, text.slice(start, end)));
}

/** The Luhn check of card numbers, whose first digits name an industry that issues cards. */
export function isCard(text: string): boolean {
  const digits = text.replaceAll(/\D/g, "");
  if (digits.length < 13 || digits.length > 19 || !/^[2-6]/.test(digits) || /^(\d)\1*$/.test(digits)) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits.at(-1 - index));
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** ISO 13616: the number with its first four characters at the end is 1 modulo 97. */
export function isIban(text: string): boolean {
  const compact = text.replaceAll(" ", "");
  if (compact.length < 15 || compact.length > 34) return false;
  let rest = 0;
  for (const character of compact.slice(4) + compact.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

/** E.164 numbers have at most 15 digits; fewer than 8 are rather something else. */
function isPhone(text: string): boolean {
  const { length } = text.replaceAll(/\D/g, "");
  return length >= 8 && length <= 15;
}
