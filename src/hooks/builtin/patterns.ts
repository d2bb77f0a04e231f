// What the built-in hook `redact` looks for: patterns, and the checksums that tell a number from one that only looks alike.

/** In the order in which they are looked for: what is found first is no other thing. */
export const REDACTED = ["key", "email", "iban", "card", "phone"] as const;

export type Redacted = (typeof REDACTED)[number];

interface Pattern {
  find: RegExp;
  isOne?(found: string): boolean;
}

const digitsOf = (text: string) => text.replaceAll(/\D/g, "");

/** Each quantifier is bounded and each pattern begins at a place of its own: a text takes time in proportion to its length. */
export const PATTERNS: Readonly<Record<Redacted, Pattern>> = {
  key: {
    find: new RegExp(
      [
        /\bsk-(?:ant-|proj-|or-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200}/,
        /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
        /\bgh[pousr]_[A-Za-z0-9]{36,255}\b/,
        /\bgithub_pat_[A-Za-z0-9_]{22,255}\b/,
        /\bglpat-[A-Za-z0-9_-]{20,64}/,
        /\bxox[abposr]-[A-Za-z0-9-]{10,250}/,
        /\bAIza[0-9A-Za-z_-]{35}/,
        /\bhf_[A-Za-z0-9]{30,64}\b/,
        /\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,128}\b/,
        /\bnpm_[A-Za-z0-9]{36}\b/,
        /-----BEGIN (?:[A-Z]{1,10} )?PRIVATE KEY-----[A-Za-z0-9+/=\s]{1,8192}-----END (?:[A-Z]{1,10} )?PRIVATE KEY-----/,
      ]
        .map(({ source }) => source)
        .join("|"),
      "g",
    ),
  },
  email: {
    find: /(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}\b/g,
  },
  iban: {
    find: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/g,
    isOne: hasIbanChecksum,
  },
  card: {
    find: /(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d-])/g,
    isOne: (found) => hasLuhnChecksum(digitsOf(found)),
  },
  phone: {
    find: /(?<![\w.+-])(?:\+\d{1,3}|\(?0\d{1,5}\)?)(?:[ ./-]{0,2}\(?\d{1,6}\)?){2,6}(?![\w-])/g,
    isOne: (found) => digitsOf(found).length >= 8 && digitsOf(found).length <= 15,
  },
};

export function hasLuhnChecksum(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0 && !/^0+$/.test(digits);
}

/** ISO 13616: the digits behind the country are a remainder of 97. */
export function hasIbanChecksum(text: string): boolean {
  const iban = text.replaceAll(" ", "");
  if (iban.length < 15 || iban.length > 34) return false;
  let remainder = 0;
  for (const sign of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(sign, 36);
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
  }
  return remainder === 1;
}
