// Built-in hook: a score of how much a request looks like a prompt injection. It is shown in the story, and nothing else is done.

import { defineHook, pass } from "../define.ts";
import { textsIn } from "./body-texts.ts";
import { checkNames } from "./option-fields.ts";

/** What such texts have in common, with a weight each. */
const SIGNS: readonly (readonly [RegExp, number])[] = [
  [
    /\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|your)\b.{0,40}\b(?:instruction|prompt|rule|direction|guideline)s?\b/is,
    0.6,
  ],
  [
    /\b(?:reveal|print|show|repeat|output|leak)\b.{0,40}\b(?:system prompt|hidden prompt|initial instructions?|developer message)\b/is,
    0.5,
  ],
  [/\byou are (?:now|no longer)\b.{0,60}\b(?:dan|jailbroken|unrestricted|unfiltered|an? ai without)\b/is, 0.5],
  [/\b(?:developer|god|jailbreak|sudo|debug) mode\b/i, 0.35],
  [/<\|?(?:im_start|system|assistant|endoftext)\|?>|\[\/?INST\]|<<\/?SYS>>/i, 0.5],
  [/^\s*(?:system|assistant)\s*:/im, 0.2],
  [/\b(?:do not|don't|never) (?:tell|mention|inform|reveal)\b.{0,40}\b(?:user|human|anyone)\b/is, 0.3],
  [/\bpretend\b.{0,40}\b(?:no|without|free of)\b.{0,20}\b(?:rules|restrictions|limits|filters)\b/is, 0.4],
  [/[A-Za-z0-9+/]{200,}={0,2}/, 0.15],
  [/[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u{e0000}-\u{e007f}]{3,}/u, 0.4],
];

/** From 0 to 1: the signs that are there, each as independent evidence. */
export function injectionScore(texts: readonly string[]): number {
  const whole = texts.join("\n");
  const unlike = SIGNS.reduce((rest, [sign, weight]) => (sign.test(whole) ? rest * (1 - weight) : rest), 1);
  return Math.round((1 - unlike) * 100) / 100;
}

export default defineHook<null>({
  options(given) {
    checkNames(given, []);
    return null;
  },
  request: ({ body }) => pass({ note: { injection_score: injectionScore(textsIn(body)) } }),
});
