// Thinking: shown, replayed, and how hard.

import { answer, call, type ScriptEntry, text, thinking } from "../../support/strict/script.ts";
import type { Ask, WireClient } from "../ask.ts";
import type { MatrixBackend } from "../backends.ts";
import type { Feature } from "./feature.ts";
import { absent, asks, FINE, isFine, lost, partsOf, textOf, WEATHER } from "./words.ts";

const group = "Thinking";
const without = ["completions"] as const;

/** Each client asks for thoughts in the words of its own format. */
function thinks(client: WireClient, backend: MatrixBackend, more: Partial<Ask> = {}): Ask {
  const ask = asks({ thoughts: true, ...(client.name !== "messages" && { effort: "medium" }), ...more });
  return backend.name === "responses" ? { ...ask, ...inSoManyWords(client) } : ask;
}

/** OpenAI shows summaries to verified organisations only, so they are asked for only when the client says so. */
function inSoManyWords({ name }: WireClient): Partial<Ask> {
  if (name === "chat") return { more: { reasoning: { effort: "medium", exclude: false } } };
  if (name !== "messages") return {};
  return { more: { thinking: { type: "enabled", budget_tokens: 2048, display: "summarized" } } };
}

const THOUGHTS = "The question is about Oslo. I know Oslo.";

function effort(level: string, without: Feature["without"] = ["completions"]): Feature {
  return {
    id: `effort-${level}`,
    group,
    title: `Effort ${level}`,
    without,
    model: "effort",
    ask: () => asks({ effort: level }),
    script: FINE,
    sees: ({ effort: seen }) => {
      if (seen === undefined) return level === "none" ? "no thinking is asked for" : false;
      return seen.split(" ").at(-1)?.toLowerCase() === level || `\`${seen}\``;
    },
    reads: isFine,
    drops: /effort|thinking/,
  };
}

export const THINKING: readonly Feature[] = [
  {
    id: "thinking",
    group,
    title: "Thoughts before the answer",
    without,
    model: "thinking",
    ask: thinks,
    script: [answer(thinking(THOUGHTS), text("Fine."))],
    reads({ parts }, { backend, client }) {
      const order = parts.map(({ type }) => type).join();
      if (textOf({ parts }) !== "Fine.") return false;
      const [first] = parts;
      if (first?.type === "thinking" && first.text === THOUGHTS && order === "thinking,text") {
        const asked = { chat: "`reasoning.exclude: false`", messages: "`display: summarized`" } as const;
        const isOnDemand = backend.name === "responses" && (client.name === "chat" || client.name === "messages");
        return isOnDemand ? `only where the client says ${asked[client.name as keyof typeof asked]}` : true;
      }
      return backend.name === "chat" && absent("the backend does not show them");
    },
  },
  {
    id: "thinking-replay",
    group,
    title: "Thoughts go back with tool results",
    without,
    model: "thinking",
    ask: (client, backend) => thinks(client, backend, { tools: [WEATHER] }),
    script: [answer(thinking(THOUGHTS), call("get_weather", { city: "Oslo" })), FINE[0] as ScriptEntry],
    follow: (reading, turn, { client, body }) =>
      turn === 0 ? client.follow(body, reading, [{ text: "sun" }]) : undefined,
    sees(received, { backend, exchange }) {
      const [made] = partsOf(received, "call");
      if (made?.proof !== undefined) return true;
      const [thought] = partsOf(received, "thinking");
      if (thought !== undefined) {
        if (backend.name === "local") return thought.text === THOUGHTS;
        return thought.proof !== "" || false;
      }
      if (backend.name === "chat") return absent("the backend does not show them");
      const entry = exchange.dropped.find(({ feature }) => /reasoning|thinking/.test(feature));
      return entry === undefined ? false : lost(entry.reason ?? `listed as ${entry.feature}`);
    },
    reads: isFine,
  },
  {
    id: "thinking-sealed",
    group,
    title: "Sealed thoughts (redacted) go back",
    without,
    model: "thinking",
    ask: (client, backend) => thinks(client, backend, { tools: [WEATHER] }),
    script: ({ name }: MatrixBackend) => [
      answer(thinking(name === "local" ? THOUGHTS : "", true), call("get_weather", { city: "Oslo" })),
      FINE[0] as ScriptEntry,
    ],
    follow: (reading, turn, { client, body }) =>
      turn === 0 ? client.follow(body, reading, [{ text: "sun" }]) : undefined,
    sees(received, { client, backend, exchange }) {
      if (backend.name !== "messages" && backend.name !== "responses") return absent("the backend has none");
      if (client.name === "ollama-api") return lost("the format has no place for them");
      const [thought] = partsOf(received, "thinking");
      if (thought !== undefined && thought.proof !== "") return true;
      const entry = exchange.dropped.find(({ feature }) => /reasoning|thinking/.test(feature));
      return entry === undefined ? false : lost(entry.reason ?? `listed as ${entry.feature}`);
    },
    reads: isFine,
  },
  effort("none", ["completions", "messages", "generate-content"]),
  effort("low"),
  effort("high"),
  effort("xhigh", ["completions", "messages", "generate-content"]),
  effort("max", ["completions", "responses", "generate-content"]),
];
