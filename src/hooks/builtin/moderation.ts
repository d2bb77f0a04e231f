// Built-in hook: has requests, and answers where wanted, judged by a moderation model of any backend.

import { isObject } from "../../lib/json.ts";
import { defineHook, pass, type RequestHookEvent, refuse } from "../define.ts";
import { HookFault } from "../hook-fault.ts";
import { textsIn } from "./body-texts.ts";
import { checkNames, listIn, numberIn, textIn } from "./option-fields.ts";

interface ModerationOptions {
  model: string;
  /** Undefined: what the model flags itself. */
  threshold: number | undefined;
  categories: readonly string[];
  checks: ReadonlySet<string>;
}

const CHECKED = ["request", "answer"];
const MAX_CHARACTERS = 100_000;

/** The category that is refused; undefined: none. */
export function flaggedIn(answer: unknown, { threshold, categories }: Omit<ModerationOptions, "model" | "checks">) {
  const results = isObject(answer) && Array.isArray(answer.results) ? answer.results : undefined;
  if (results === undefined) throw new HookFault("the moderation model gave no results");
  for (const result of results) {
    if (!isObject(result)) continue;
    const scores = isObject(result.category_scores) ? result.category_scores : {};
    const flags = isObject(result.categories) ? result.categories : {};
    const isOver = (name: string) =>
      threshold === undefined ? flags[name] === true : Number(scores[name] ?? 0) >= threshold;
    const names = categories.length > 0 ? categories : Object.keys(threshold === undefined ? flags : scores);
    const over = names.find(isOver);
    if (over !== undefined) return over;
    if (threshold === undefined && categories.length === 0 && result.flagged === true) return "flagged";
  }
  return undefined;
}

async function judge(event: Pick<RequestHookEvent<ModerationOptions>, "ask" | "options">, texts: readonly string[]) {
  const input = texts.join("\n").slice(0, MAX_CHARACTERS);
  if (input.trim() === "") return pass();
  const { status, body } = await event.ask("moderations", { model: event.options.model, input });
  if (status !== 200) throw new HookFault(`the moderation model answered with ${status}`);
  const flagged = flaggedIn(body, event.options);
  if (flagged === undefined) return pass();
  return refuse(403, "moderation_refused", `The content is refused by moderation: ${flagged.slice(0, 100)}.`);
}

export default defineHook<ModerationOptions>({
  options(given) {
    checkNames(given, ["model", "threshold", "categories", "checks"]);
    return {
      model: textIn(given, "model", "omni-moderation-latest") as string,
      threshold: numberIn(given, "threshold", undefined),
      categories: listIn(given, "categories", undefined),
      checks: new Set(given.checks === undefined ? ["request"] : listIn(given, "checks", CHECKED)),
    };
  },
  request: (event) => (event.options.checks.has("request") ? judge(event, textsIn(event.body)) : pass()),
  answer: (event) => (event.options.checks.has("answer") ? judge(event, textsIn(event.body)) : pass()),
});
