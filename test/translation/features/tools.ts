// Tools: their definitions, calls, results and choices.

import { answer, call, type ScriptEntry, text } from "../../support/strict/script.ts";
import type { Ask, AskTurn, Reading, WireClient } from "../ask.ts";
import type { Received } from "../received/received.ts";
import type { Feature, Finding } from "./feature.ts";
import {
  absent,
  asks,
  CLOCK,
  callsOf,
  FINE,
  isFine,
  PNG,
  partsOf,
  said,
  same,
  textOf,
  user,
  WEATHER,
} from "./words.ts";

const group = "Tools";
const without = ["completions"] as const;

const OSLO = '{"city":"Oslo","days":2}';
const BERGEN = '{"city":"Bergen","days":1}';
const DOUBLE: readonly ScriptEntry[] = [
  answer(
    call("get_weather", { city: "Oslo", days: 2 }),
    call("get_time", { city: "Bergen" }),
    call("get_weather", { city: "Bergen", days: 1 }),
  ),
];

const callText = (reading: Reading): string =>
  callsOf(reading)
    .map(({ name, arguments: args }) => `${name} ${args}`)
    .join("; ");

function isThreeCalls(reading: Reading): boolean | string {
  const isRight = callText(reading) === `get_weather ${OSLO}; get_time {"city":"Bergen"}; get_weather ${BERGEN}`;
  const ids = new Set(callsOf(reading).map(({ id }) => id));
  if (isRight && ids.size === 1 && ids.has(""))
    return "without ids, as the backend gives none; the order tells them apart";
  return isRight && ids.size === 3;
}

const HISTORY: readonly AskTurn[] = [
  user(said("How is the weather?")),
  {
    role: "assistant",
    parts: [
      said("I will look."),
      { type: "call", id: "call_1", name: "get_weather", arguments: { city: "Oslo", days: 2 } },
      { type: "call", id: "call_2", name: "get_weather", arguments: { city: "Bergen", days: 1 } },
    ],
  },
  user({ type: "result", id: "call_1", text: "sun" }, { type: "result", id: "call_2", text: '{"sky":"rain"}' }),
];

function seesResults(received: Received): Finding {
  const results = partsOf(received, "result").map(({ text: words }) => words);
  const calls = partsOf(received, "call").map(({ arguments: args }) => args);
  const ids = new Set(partsOf(received, "call").map(({ id }) => id));
  const isLinked = partsOf(received, "result").every(({ id }) => ids.has(id));
  return same(results, ["sun", '{"sky":"rain"}']) && same(calls, [OSLO, BERGEN]) && isLinked;
}

const failing = (image?: string): readonly AskTurn[] => [
  user(said("How is the weather?")),
  { role: "assistant", parts: [{ type: "call", id: "call_1", name: "get_weather", arguments: { city: "Oslo" } }] },
  user({ type: "result", id: "call_1", text: "no such place", isError: true, ...(image && { image }) }),
];

function choice(id: string, title: string, toolChoice: NonNullable<ReturnType<typeof asks>["toolChoice"]>): Feature {
  const wanted = typeof toolChoice === "string" ? toolChoice : `tool ${toolChoice.name}`;
  return {
    id: `choice-${id}`,
    group,
    title: `tool_choice: ${title}`,
    without: ["completions", "ollama-api"],
    ask: () => asks({ tools: [WEATHER, CLOCK], toolChoice }),
    script: FINE,
    sees({ choice: seen, tools }) {
      if (seen === wanted) return tools.length === 2 || "the other tools are left out";
      if (seen === undefined && wanted === "auto") return tools.length === 2 || false;
      if (wanted === "none" && tools.length === 0) return "the tools are left out";
      if (seen === undefined) return false;
      return tools.length === 1 ? `as ${seen}, with that tool alone` : `as ${seen}`;
    },
    reads: isFine,
    drops: /tool_choice/,
  };
}

function searches({ name }: WireClient): Ask {
  if (name === "chat") return asks({ more: { web_search_options: {} } });
  if (name === "generate-content") return asks({ more: { tools: [{ googleSearch: {} }] } });
  const type = name === "messages" ? "web_search_20250305" : "web_search";
  return asks({ more: { tools: [{ type, ...(name === "messages" && { name: "web_search" }) }] } });
}

const PAGE = { url: "https://met.example/", title: "Met" };
const SEARCHED: readonly ScriptEntry[] = [
  answer(
    { type: "search", query: "weather Oslo", results: [PAGE] },
    text("Oslo is dry.", [{ ...PAGE, citedText: "Oslo is dry.", start: 0, end: 12 }]),
  ),
];

export const TOOLS: readonly Feature[] = [
  {
    id: "tool-definition",
    group,
    title: "Definitions with JSON Schema",
    without,
    ask: () => asks({ tools: [WEATHER, CLOCK] }),
    script: FINE,
    sees({ tools }) {
      const [weather, clock] = tools;
      if (weather?.name !== WEATHER.name || clock?.name !== CLOCK.name) return false;
      if (weather.description !== WEATHER.description) return false;
      return same(weather.schema, WEATHER.schema) || "the schema is adapted";
    },
    reads: isFine,
  },
  {
    id: "tool-call",
    group,
    title: "A call behind text",
    without,
    ask: () => asks({ tools: [WEATHER, CLOCK] }),
    script: [answer(text("I will look."), call("get_weather", { city: "Oslo", days: 2 }))],
    reads: (reading) => textOf(reading) === "I will look." && callText(reading) === `get_weather ${OSLO}`,
  },
  {
    id: "tool-empty",
    group,
    title: "A call without arguments",
    without,
    ask: () => asks({ tools: [{ name: "now", description: "The time.", schema: { type: "object", properties: {} } }] }),
    script: [answer(call("now", {}))],
    sees: ({ tools }) => tools.length === 1,
    reads: (reading) => callText(reading) === "now {}",
  },
  {
    id: "tool-parallel",
    group,
    title: "Parallel calls",
    without,
    ask: () => asks({ tools: [WEATHER, CLOCK] }),
    script: DOUBLE,
    reads: isThreeCalls,
  },
  {
    id: "tool-interleaved",
    group,
    title: "Parallel calls whose arguments come in turns",
    without,
    ask: () => asks({ tools: [WEATHER, CLOCK] }),
    script: DOUBLE.map((entry) => ({ ...entry, interleaved: true }) as ScriptEntry),
    reads: isThreeCalls,
  },
  {
    id: "tool-text-after",
    group,
    title: "Text behind a call keeps its place",
    without,
    ask: () => asks({ tools: [WEATHER] }),
    script: [answer(text("First."), call("get_weather", { city: "Oslo" }), text("Last."))],
    differs: true,
    reads({ parts }, { client }) {
      const order = parts.map((part) => (part.type === "text" ? part.text : part.type)).join(" ");
      if (order === "First. call Last.") return true;
      if (order !== "First.Last. call") return false;
      return client.name === "chat" || client.name === "ollama-api"
        ? "the format puts all text of a plain answer before the calls; a stream keeps the order"
        : "the backend's plain answers put all text before the calls; a stream keeps the order";
    },
  },
  {
    id: "tool-result",
    group,
    title: "Results of parallel calls",
    without,
    ask: () => asks({ tools: [WEATHER], turns: HISTORY }),
    script: FINE,
    sees: seesResults,
    reads: isFine,
  },
  {
    id: "tool-round",
    group,
    title: "Call, result and answer in one conversation",
    without,
    ask: () => asks({ tools: [WEATHER, CLOCK] }),
    script: [DOUBLE[0] as ScriptEntry, FINE[0] as ScriptEntry],
    follow: (reading, turn, { client, body }) =>
      turn === 0 ? client.follow(body, reading, [{ text: "sun" }, { text: "noon" }, { text: "rain" }]) : undefined,
    sees(received) {
      const calls = partsOf(received, "call");
      const results = partsOf(received, "result");
      const isLinked = results.every(({ id }, index) => id === calls[index]?.id);
      return (
        isLinked &&
        same(
          results.map(({ text: words }) => words),
          ["sun", "noon", "rain"],
        )
      );
    },
    reads: isFine,
  },
  {
    id: "tool-error",
    group,
    title: "A failed tool (is_error)",
    without: ["completions", "chat", "responses", "ollama-api"],
    ask: () => asks({ tools: [WEATHER], turns: failing() }),
    script: FINE,
    sees(received, { backend }) {
      const [result] = partsOf(received, "result");
      if (!result?.text.includes("no such place")) return false;
      if (backend.name === "messages" && result.isError) return true;
      if (backend.name === "generate-content" && result.isError) return "as `error` of the response";
      return result.isError ? "as a mark in the text" : false;
    },
    reads: isFine,
    drops: /is_error/,
  },
  {
    id: "tool-image",
    group,
    title: "Images in tool results",
    without: ["completions", "chat"],
    ask: () => asks({ tools: [WEATHER], turns: failing(PNG) }),
    script: FINE,
    sees(received) {
      const [result] = partsOf(received, "result");
      if (!result?.text.includes("no such place")) return false;
      if (result.images === 1) return true;
      return partsOf(received, "image").length === 1 && "moved to a message of the user behind the results";
    },
    reads: isFine,
    drops: /image/,
  },
  choice("auto", "auto", "auto"),
  choice("none", "none", "none"),
  choice("required", "required", "required"),
  choice("named", "one tool by name", { name: "get_time" }),
  {
    id: "one-call",
    group,
    title: "No parallel calls",
    without: ["completions", "ollama-api", "generate-content"],
    ask: () => asks({ tools: [WEATHER, CLOCK], parallelCalls: false }),
    script: FINE,
    sees: ({ oneCall }) => oneCall,
    reads: isFine,
    drops: /parallel/,
  },
  {
    id: "tool-custom",
    group,
    title: "Free-form tools (type custom)",
    without: ["completions", "messages", "ollama-api", "generate-content"],
    ask: (client) =>
      asks({
        more: {
          tools: [
            client.name === "chat"
              ? { type: "custom", custom: { name: "shell", description: "Runs a command." } }
              : { type: "custom", name: "shell", description: "Runs a command." },
          ],
        },
      }),
    script: FINE,
    sees({ tools }) {
      const [tool] = tools;
      if (tool?.name !== "shell") return false;
      return Object.keys(tool.schema).length === 0 || "as a function with one text argument";
    },
    reads: isFine,
  },
  {
    id: "tool-custom-call",
    group,
    title: "Calls of free-form tools",
    without: ["completions", "messages", "ollama-api", "generate-content"],
    ask: (client) =>
      asks({
        more: {
          tools: [
            client.name === "chat"
              ? { type: "custom", custom: { name: "shell", description: "Runs a command." } }
              : { type: "custom", name: "shell", description: "Runs a command." },
          ],
        },
      }),
    script: ({ name }) =>
      name === "chat" || name === "responses" ? FINE : [answer(call("shell", { input: 'ls "a b"\n' }))],
    reads(reading, { backend, client }) {
      if (backend.name === "chat" || backend.name === "responses") return isFine(reading);
      const [made] = callsOf(reading);
      if (made === undefined) return false;
      if (client.name === "chat" && backend.name === "local") return absent("passes untouched; the engine decides");
      return made.custom === true && made.arguments === 'ls "a b"\n';
    },
  },
  {
    id: "web-search",
    group,
    title: "Web search by the vendor",
    without: ["completions", "ollama-api"],
    ask: searches,
    script: FINE,
    sees: ({ hosted, body }) => hosted.length > 0 || body.web_search_options !== undefined,
    reads: isFine,
    drops: /web_search/,
    backendMayRefuse: true,
  },
  {
    id: "web-search-shown",
    group,
    title: "The vendor's searches and their sources in the answer",
    without: ["completions", "ollama-api"],
    ask: searches,
    script: ({ name }) => (name === "messages" || name === "responses" ? SEARCHED : FINE),
    backendMayRefuse: true,
    reads(reading, { client, backend }) {
      if (backend.name !== "messages" && backend.name !== "responses") return absent("not scripted: see citations");
      const [search, ...others] = reading.parts.filter(({ type }) => type === "search");
      const cited = reading.parts.some((part) => part.type === "text" && part.citations[0] === "https://met.example/");
      if (!cited || others.length > 0) return false;
      if (search?.type === "search") return search.query === "weather Oslo" || `asked as ${search.query}`;
      return client.name === "chat" && "the sources as citations, the search itself has no place";
    },
  },
];
