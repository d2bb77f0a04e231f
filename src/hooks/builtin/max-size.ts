// Built-in hook: refuses requests that are larger than allowed, and ends answers that are.

import { defineHook, pass, refuse } from "../define.ts";
import { textsIn } from "./body-texts.ts";
import { checkNames, numberIn } from "./option-fields.ts";

interface SizeOptions {
  messages: number | undefined;
  tools: number | undefined;
  requestCharacters: number | undefined;
  answerCharacters: number | undefined;
}

const charactersIn = (value: unknown) => textsIn(value).reduce((sum, text) => sum + text.length, 0);

export default defineHook<SizeOptions>({
  options(given) {
    checkNames(given, ["messages", "tools", "request_characters", "answer_characters"]);
    return {
      messages: numberIn(given, "messages", undefined),
      tools: numberIn(given, "tools", undefined),
      requestCharacters: numberIn(given, "request_characters", undefined),
      answerCharacters: numberIn(given, "answer_characters", undefined),
    };
  },
  chunks: { by: "delta", parts: ["text", "refusal", "reasoning", "tool-call"] },

  request(event) {
    const { messages, tools, requestCharacters } = event.options;
    const counts: [string, number, number | undefined][] = [
      ["messages", event.request?.messages.length ?? 0, messages],
      ["tools", event.request?.tools.length ?? 0, tools],
      ["characters", requestCharacters === undefined ? 0 : charactersIn(event.body), requestCharacters],
    ];
    const over = counts.find(([, count, most]) => most !== undefined && count > most);
    if (over === undefined) return pass();
    const [what, count, most] = over;
    return refuse(413, "request_too_large", `The request has ${count} ${what}; at most ${most} are allowed.`);
  },

  answer({ body, options: { answerCharacters } }) {
    if (answerCharacters === undefined || charactersIn(body) <= answerCharacters) return pass();
    return refuse(502, "answer_too_large", `The answer has more than ${answerCharacters} characters.`);
  },

  chunk({ text, state, options: { answerCharacters } }) {
    if (answerCharacters === undefined) return pass();
    const seen = (typeof state === "number" ? state : 0) + text.length;
    if (seen <= answerCharacters) return pass({ state: seen });
    return refuse(502, "answer_too_large", `The answer has more than ${answerCharacters} characters.`);
  },
});
