// Built-in hook: takes personal data and keys out of requests, and puts them back into answers.

import type { JsonObject } from "../../lib/json.ts";
import { SENSITIVE_KINDS, type SensitiveKind, withReplaced } from "../../redaction/sensitive.ts";
import { change, defineHook, pass } from "../define.ts";
import { changeTexts } from "./body-texts.ts";
import { booleanIn, checkNames, listIn } from "./option-fields.ts";

interface RedactOptions {
  kinds: readonly SensitiveKind[];
  putBack: boolean;
}

/** The values behind the placeholders of a request. */
type Values = Record<string, string>;

const PLACEHOLDER = /\[(?:EMAIL|PHONE|CARD|IBAN|KEY)_[a-z0-9]{8}\]/g;
/** The beginning of one, at the end of a piece of a stream. */
const UNFINISHED = /\[(?:[A-Z]{0,5}|(?:EMAIL|PHONE|CARD|IBAN|KEY)_[a-z0-9]{0,8})$/;
const MAX_VALUES = 1_000;

/** The same value has the same placeholder, so that prompts stay alike from turn to turn; without the salt it tells nothing. */
function placeholderOf(kind: SensitiveKind, value: string, salt: string): string {
  const digest = new Bun.CryptoHasher("sha256", salt).update(value).digest();
  const letters = [...digest.subarray(0, 8)].map((byte) => (byte % 36).toString(36)).join("");
  return `[${kind.toUpperCase()}_${letters}]`;
}

/** @param values - filled with what was taken out */
export function redactText(text: string, kinds: readonly SensitiveKind[], salt: string, values: Values): string {
  return withReplaced(text, kinds, (kind, found) => {
    const placeholder = placeholderOf(kind, found, salt);
    if (Object.keys(values).length < MAX_VALUES) values[placeholder] ??= found;
    return placeholder;
  });
}

export function putBack(text: string, values: Values, isJson = false): string {
  return text.replaceAll(PLACEHOLDER, (placeholder) => {
    const value = values[placeholder];
    if (value === undefined) return placeholder;
    return isJson ? JSON.stringify(value).slice(1, -1) : value;
  });
}

export default defineHook<RedactOptions>({
  options(given) {
    checkNames(given, ["kinds", "put_back"]);
    return {
      kinds: listIn(given, "kinds", SENSITIVE_KINDS) as SensitiveKind[],
      putBack: booleanIn(given, "put_back", true),
    };
  },
  chunks: { by: "delta", parts: ["text", "refusal", "reasoning", "tool-call"] },

  request({ body, options: { kinds }, salt }) {
    const values: Values = {};
    const redacted = changeTexts(body, (text) => redactText(text, kinds, salt, values)) as JsonObject;
    const note = { redacted: Object.keys(values).length };
    return redacted === body ? pass() : change({ body: redacted }, { state: values, note });
  },

  answer({ body, state, options }) {
    if (state === undefined || !options.putBack) return pass();
    const restored = changeTexts(body, (text, isJson) => putBack(text, state as Values, isJson)) as JsonObject;
    return restored === body ? pass() : change({ body: restored });
  },

  chunk({ text, state, part, isLast, options }) {
    if (state === undefined || !options.putBack) return pass();
    const begun = isLast ? undefined : UNFINISHED.exec(text);
    const whole = begun ? text.slice(0, begun.index) : text;
    const restored = putBack(whole, state as Values, part === "tool-call");
    if (begun) return change({ text: restored, rest: begun[0] });
    return restored === text ? pass() : change({ text: restored });
  },
});
