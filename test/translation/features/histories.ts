// Histories as agents, other gateways and other engines leave them.

import { answer, call, type ScriptEntry, text as says, thinking } from "../../support/strict/script.ts";
import { type AskTurn, object, text } from "../ask.ts";
import type { Received } from "../received/received.ts";
import type { Feature } from "./feature.ts";
import { asks, FINE, isFine, partsOf, said, same, user, WEATHER } from "./words.ts";

const group = "Odd histories";
const without = ["completions"] as const;

function round(id: string, city: string): AskTurn[] {
  return [
    { role: "assistant", parts: [{ type: "call", id, name: "get_weather", arguments: { city } }] },
    user({ type: "result", id, text: `dry in ${city}` }),
  ];
}

/** Every call is followed by its own result: by id, or in its place where the format has no ids. */
function isAnswered({ turns }: Received, results: readonly string[]): boolean {
  const said: string[] = [];
  const open: { id: string; city: string }[] = [];
  for (const part of turns.flatMap(({ parts }) => parts)) {
    if (part.type === "call") open.push({ id: part.id, city: text(object(JSON.parse(part.arguments)).city) });
    if (part.type !== "result") continue;
    const [asked] = open.splice(
      Math.max(
        0,
        open.findIndex(({ id }) => id === part.id),
      ),
      1,
    );
    if (part.text !== "" && asked !== undefined && !part.text.endsWith(asked.city)) return false;
    said.push(part.text);
  }
  return open.length === 0 && same([...said].sort(), [...results].sort());
}

function history(id: string, title: string, turns: readonly AskTurn[], results: readonly string[]): Feature {
  return {
    id: `history-${id}`,
    group,
    title,
    without,
    ask: () => asks({ tools: [WEATHER], turns: [user(said("How is the weather?")), ...turns] }),
    script: FINE,
    sees: (received) => isAnswered(received, results),
    reads: isFine,
    drops: /result/,
    backendMayRefuse: true,
  };
}

export const HISTORIES: readonly Feature[] = [
  history(
    "ids",
    "Call ids that another engine made",
    [...round("functions.get_weather:0", "Oslo"), ...round("call-é/+=", "Bodø")],
    ["dry in Oslo", "dry in Bodø"],
  ),
  history("long-ids", "Call ids of 200 characters", round(`call_${"x".repeat(195)}`, "Oslo"), ["dry in Oslo"]),
  history(
    "same-ids",
    "The same call id in two turns",
    [...round("call_1", "Oslo"), ...round("call_1", "Bodø")],
    ["dry in Oslo", "dry in Bodø"],
  ),
  history(
    "order",
    "Results in another order than their calls",
    [
      {
        role: "assistant",
        parts: [
          { type: "call", id: "call_1", name: "get_weather", arguments: { city: "Oslo" } },
          { type: "call", id: "call_2", name: "get_weather", arguments: { city: "Bodø" } },
        ],
      },
      user(
        { type: "result", id: "call_2", text: "dry in Bodø" },
        { type: "result", id: "call_1", text: "dry in Oslo" },
      ),
    ],
    ["dry in Oslo", "dry in Bodø"],
  ),
  {
    ...history(
      "lost",
      "A call whose result was lost",
      [
        {
          role: "assistant",
          parts: [{ type: "call", id: "call_1", name: "get_weather", arguments: { city: "Oslo" } }],
        },
        user(said("Never mind. And now?")),
      ],
      [],
    ),
    sees(received) {
      const results = partsOf(received, "result");
      if (results.length === 1) return "a result that says so is put in its place";
      return partsOf(received, "call").length === 0 && "the call is left out";
    },
    drops: /tool|call/,
  },
  {
    ...history(
      "empty-result",
      "An empty result",
      [
        {
          role: "assistant",
          parts: [{ type: "call", id: "call_1", name: "get_weather", arguments: { city: "Oslo" } }],
        },
        user({ type: "result", id: "call_1", text: "" }),
      ],
      [""],
    ),
    sees(received, side) {
      const [result] = partsOf(received, "result");
      if (side.backend.name === "converse") return result?.text !== "" && "words say that it is empty";
      return result?.text === "" && partsOf(received, "call").length === 1;
    },
  },
  {
    ...history(
      "result-and-text",
      "A question behind the results",
      [...round("call_1", "Oslo"), user(said("And now?"))],
      ["dry in Oslo"],
    ),
  },
  {
    ...history(
      "prefill",
      "The answer's beginning is given",
      [{ role: "assistant", parts: [said("The weather is")] }],
      [],
    ),
    sees: ({ turns }) => {
      const last = turns.at(-1);
      const [part] = last?.parts ?? [];
      return last?.role === "assistant" && part?.type === "text" && part.text === "The weather is";
    },
    drops: /prefill|assistant/,
  },
  {
    id: "history-thoughts",
    group,
    title: "An answer with thoughts, and a new question",
    without,
    model: "thinking",
    ask: ({ name }) => asks({ thoughts: true, ...(name !== "messages" && { effort: "medium" }) }),
    script: [answer(thinking("Oslo it is."), says("Dry.")), FINE[0] as ScriptEntry],
    follow: (reading, turn, { client, body }) =>
      turn === 0 ? client.follow(body, reading, [], "And tomorrow?") : undefined,
    sees: ({ turns }) => {
      const words = turns.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])));
      return words.includes("Dry.") && words.at(-1) === "And tomorrow?";
    },
    reads: isFine,
  },
  {
    id: "history-rounds",
    group,
    title: "Three rounds of thoughts, calls and results",
    without,
    model: "thinking",
    ask: ({ name }) => asks({ tools: [WEATHER], thoughts: true, ...(name !== "messages" && { effort: "medium" }) }),
    script: [
      answer(thinking("One."), call("get_weather", { city: "Oslo" }), call("get_weather", { city: "Bodø" })),
      answer(thinking("Two."), says("And."), call("get_weather", { city: "Mo" })),
      answer(call("get_weather", { city: "Å" })),
      FINE[0] as ScriptEntry,
    ],
    follow: (reading, turn, { client, body }) => {
      if (turn > 2) return undefined;
      return client.follow(body, reading, turn === 0 ? [{ text: "a" }, { text: "b" }] : [{ text: "c" }]);
    },
    sees: (received) =>
      same(
        partsOf(received, "result").map(({ text: words }) => words),
        ["a", "b", "c", "c"],
      ),
    reads: isFine,
  },
  {
    id: "empty-answer",
    group,
    title: "An answer with nothing in it",
    ask: () => asks(),
    script: [{ parts: [], finish: "stop" }],
    reads: ({ parts }) =>
      parts.length === 0 || (parts.length === 1 && parts[0]?.type === "text" && parts[0].text === ""),
    differs: true,
  },
];
