// What answers carry besides text and calls: refusals, why they ended, citations, token counts.

import {
  answer,
  call,
  refusal,
  type ScriptEntry,
  type ScriptedAnswer,
  type ScriptedUsage,
  text,
} from "../../support/strict/script.ts";
import type { Finish, ReadUsage } from "../ask.ts";
import type { Feature, Finding, Side } from "./feature.ts";
import { absent, asks, FINE, isFine, lost, textOf, WEATHER } from "./words.ts";

const group = "Answers";

function finish(id: Finish, title: string, scripted: ScriptedAnswer, more: Partial<Feature> = {}): Feature {
  return {
    id: `finish-${id}`,
    group,
    title: `Ends: ${title}`,
    ask: (client) => asks({ ...(client.name !== "responses" && { stop: ["STOP"] }), tools: [WEATHER] }),
    script: [scripted],
    reads({ finish: seen }, { client }) {
      const wanted = client.finishes[id];
      if (seen === wanted || seen === `${wanted}:STOP`) return true;
      return `\`${seen}\``;
    },
    ...more,
  };
}

const USAGE: ScriptedUsage = { input: 100, cacheRead: 60, cacheWrite: 20, output: 50, reasoning: 30 };
const COUNTED: readonly ScriptEntry[] = [{ ...(FINE[0] as ScriptedAnswer), usage: USAGE }];

function usage(
  id: string,
  title: string,
  check: (read: ReadUsage, side: Side) => Finding,
  without: Feature["without"] = ["ollama-api"],
): Feature {
  return {
    id: `usage-${id}`,
    group: "Token counts",
    title,
    without,
    model: "thinking",
    ask: () => asks(),
    script: COUNTED,
    reads: (reading, side) => (reading.usage === undefined ? false : check(reading.usage, side)),
  };
}

export const ANSWERS: readonly Feature[] = [
  finish("stop", "the model was done", answer(text("Done."))),
  finish("stop-sequence", "a stop sequence", {
    ...answer(text("Up to here")),
    finish: "stop-sequence",
    stopSequence: "STOP",
  }),
  finish("length", "the limit of tokens", { ...answer(text("Up to")), finish: "length" }),
  finish("tool-calls", "tool calls", answer(call("get_weather", { city: "Oslo" })), { without: ["completions"] }),
  finish("content-filter", "a content filter", { ...answer(text("Up to")), finish: "content-filter" }),
  {
    id: "blocked",
    group,
    title: "Nothing but a content filter",
    ask: () => asks(),
    script: [{ parts: [], finish: "content-filter" }],
    reads({ finish: seen, parts }, { client }) {
      if (parts.length > 0 && textOf({ parts }) !== "") return false;
      return seen === client.finishes["content-filter"] || `\`${seen}\``;
    },
  },
  {
    id: "refusal",
    group,
    title: "Refusals",
    ask: () => asks(),
    script: ({ name }) => [
      { ...answer(refusal("I cannot help.")), ...(name === "messages" && { finish: "content-filter" as const }) },
    ],
    reads(reading, { client, backend }) {
      const [part] = reading.parts;
      const hasReason = reading.finish === client.finishes["content-filter"];
      if (part?.type === "refusal" && part.text === "I cannot help.") return true;
      if (textOf(reading) !== "I cannot help.") return false;
      if (backend.name === "generate-content") return absent("the backend has none");
      if (client.name === "messages" && hasReason) return true;
      return hasReason ? "as text, with the reason of a filter" : "as text";
    },
  },
  {
    id: "citations",
    group,
    title: "Citations of web pages",
    ask: () => asks(),
    script: [
      answer(
        text("Oslo is dry.", [
          { url: "https://met.example/", title: "Met", citedText: "Oslo is dry.", start: 0, end: 12 },
        ]),
      ),
    ],
    reads({ parts }, { client }) {
      const [part] = parts;
      if (part?.type !== "text" || part.text !== "Oslo is dry.") return false;
      if (part.citations[0] === "https://met.example/") return true;
      return (
        (client.name === "completions" || client.name === "ollama-api") && lost("the format has no place for them")
      );
    },
  },
  usage("totals", "Prompt and output", ({ input, output }) => input === 100 && output === 50, []),
  usage("cache-read", "Read from the cache", ({ cacheRead }) => cacheRead === 60),
  usage("cache-write", "Written to the cache", ({ cacheWrite }, { backend, client }) => {
    if (cacheWrite === 20) return true;
    if (client.name === "generate-content") return lost("the format does not count them apart");
    return backend.name === "generate-content" && absent("the backend does not count them");
  }),
  usage("reasoning", "Thinking", ({ reasoning }, { backend }) => {
    return reasoning === 30 || (backend.name === "converse" && absent("the backend does not count it"));
  }),
  {
    id: "usage-hidden",
    group: "Token counts",
    title: "Of a stream: not told unless asked for",
    without: ["responses", "messages", "ollama-api", "generate-content"],
    ask: () => asks({ usage: false }),
    script: FINE,
    differs: true,
    reads: (reading, { streamed }) => isFine(reading) && (streamed ? reading.usage === undefined : true),
  },
];
