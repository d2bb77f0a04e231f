// A backend whose model says what a test has written down: one answer after the other, with calls of tools.

import type { Answer } from "./fake-backend.ts";
import { eventStream, sseEvent } from "./openai-answers.ts";

export interface ScriptedCall {
  name: string;
  arguments: object;
}

export interface ScriptedAnswer {
  text?: string;
  thought?: string;
  calls?: readonly ScriptedCall[];
}

/** A chat stream with that answer; ids of calls are made of the given one. */
export function scriptedAnswer({ text, thought, calls = [] }: ScriptedAnswer, id: string): Answer {
  const chunk = (delta: object, finish: string | null = null) =>
    sseEvent({
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created: 1_763_700_000,
      model: "m",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  const words = (all: string | undefined, member: string) =>
    (all?.match(/\S+\s*/g) ?? []).map((word) => chunk({ [member]: word }));
  return eventStream([
    chunk({ role: "assistant", content: "" }),
    ...words(thought, "reasoning_content"),
    ...words(text, "content"),
    ...calls.flatMap(({ name, arguments: given }, index) => {
      const json = JSON.stringify(given);
      const half = Math.ceil(json.length / 2);
      return [
        chunk({
          tool_calls: [{ index, id: `call_${id}_${index}`, type: "function", function: { name, arguments: "" } }],
        }),
        chunk({ tool_calls: [{ index, function: { arguments: json.slice(0, half) } }] }),
        chunk({ tool_calls: [{ index, function: { arguments: json.slice(half) } }] }),
      ];
    }),
    chunk({}, calls.length > 0 ? "tool_calls" : "stop"),
    sseEvent({
      id: "u",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [],
      usage: { prompt_tokens: 40, completion_tokens: 9, total_tokens: 49 },
    }),
    "data: [DONE]\n\n",
  ]);
}

/** Answers one request after the other; fails the test's request when nothing is left to say. */
export function scriptedTurns(answers: readonly ScriptedAnswer[]): () => Answer {
  let asked = 0;
  return () => {
    const answer = answers[asked++];
    if (answer === undefined)
      return { status: 500, body: JSON.stringify({ error: { message: "the script is over" } }) };
    return scriptedAnswer(answer, String(asked));
  };
}
