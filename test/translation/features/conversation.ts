// Texts, instructions, turns and media.

import { mediaOf, type SeenTurn } from "../received/received.ts";
import type { Feature } from "./feature.ts";
import { asks, FINE, isFine, PDF, PNG, partsOf, QUESTION, said, user, WAV } from "./words.ts";

const group = "Conversation";
/** A public address needs no name service, and nobody asks it: the backend is given the URL. */
const IMAGE_URL = "https://93.184.216.34/cat.png";
const LOCAL_URL = "http://127.0.0.1/cat.png";

const wordsOf = ({ parts }: SeenTurn): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("");

export const CONVERSATION: readonly Feature[] = [
  {
    id: "text",
    group,
    title: "Text, streamed in pieces",
    ask: () => asks(),
    script: FINE,
    sees: ({ turns, stream }, { streamed }) =>
      turns.length === 1 &&
      wordsOf(turns[0] as SeenTurn) === QUESTION &&
      (stream === streamed || !streamed || turns.length === 1),
    reads: isFine,
  },
  {
    id: "model",
    group,
    title: "The answer names the model that was asked for",
    ask: () => asks(),
    script: FINE,
    reads: ({ model }, { backend }) => model === backend.plainModel || `it names \`${model}\`, as the backend does`,
  },
  {
    id: "system",
    group,
    title: "System prompt",
    without: ["completions"],
    ask: () => asks({ system: "You are a weatherman." }),
    script: FINE,
    sees: ({ system }) => system.join() === "You are a weatherman.",
    reads: isFine,
  },
  {
    id: "system-mid",
    group,
    title: "Instructions in the middle of a conversation",
    without: ["completions", "messages", "generate-content"],
    ask: () =>
      asks({
        turns: [
          user(said("Hello.")),
          { role: "assistant", parts: [said("Hello!")] },
          { role: "system", parts: [said("Be brief now.")] },
          user(said(QUESTION)),
        ],
      }),
    script: FINE,
    sees({ turns, system }) {
      if (turns.some((turn) => turn.role === "system" && wordsOf(turn) === "Be brief now.")) return true;
      if (system.some((words) => words.includes("Be brief now."))) return "moved to the system prompt";
      const turn = turns.find((candidate) => wordsOf(candidate).includes("Be brief now."));
      return turn === undefined ? false : `as text of the ${turn.role}`;
    },
    reads: isFine,
  },
  {
    id: "multi-turn",
    group,
    title: "Several turns",
    without: ["completions"],
    ask: () =>
      asks({
        turns: [user(said("Hello.")), { role: "assistant", parts: [said("Hello!")] }, user(said(QUESTION))],
      }),
    script: FINE,
    sees: ({ turns }) =>
      turns.map((turn) => `${turn.role}: ${wordsOf(turn)}`).join("; ") ===
      `user: Hello.; assistant: Hello!; user: ${QUESTION}`,
    reads: isFine,
  },
  {
    id: "prompts",
    group,
    title: "Several prompts in one request",
    without: ["chat", "responses", "messages", "ollama-api", "generate-content"],
    ask: () => asks({ more: { prompt: ["one", "two"] } }),
    script: FINE,
  },
  {
    id: "image-data",
    group,
    title: "Images as data",
    without: ["completions"],
    ask: () => asks({ turns: [user(said("What is this?"), { type: "image", data: PNG })] }),
    script: FINE,
    sees: (received) => partsOf(received, "image").some(({ source }) => source === PNG),
    reads: isFine,
  },
  {
    id: "image-url",
    group,
    title: "Images by URL",
    without: ["completions", "ollama-api"],
    // For a backend that cannot fetch, the gateway does it. It refuses this address: proof enough that it would ask others.
    ask: (_, { name }) =>
      asks({
        turns: [
          user(said("What is this?"), { type: "image", url: name === "generate-content" ? LOCAL_URL : IMAGE_URL }),
        ],
      }),
    script: FINE,
    refusal: ({ message }) =>
      message.includes("leads to a local") && message.includes("not fetched")
        ? { outcome: "changed", note: "fetched by the gateway, from public addresses only, and sent as data" }
        : undefined,
    sees: (received) => partsOf(received, "image").some(({ source }) => mediaOf(source) === IMAGE_URL),
    reads: isFine,
  },
  {
    id: "document",
    group,
    title: "Documents (PDF)",
    without: ["completions", "ollama-api"],
    ask: () => asks({ turns: [user(said("Sum it up."), { type: "document", data: PDF, name: "paper.pdf" })] }),
    script: FINE,
    sees(received) {
      const [document] = partsOf(received, "document");
      if (document === undefined) return false;
      return document.name === "paper.pdf" || "without its name";
    },
    reads: isFine,
  },
  {
    id: "audio",
    group,
    title: "Audio",
    without: ["completions", "messages", "responses", "ollama-api"],
    ask: () => asks({ turns: [user(said("What is said?"), { type: "audio", data: WAV })] }),
    script: FINE,
    sees: (received) => partsOf(received, "audio").length === 1,
    reads: isFine,
  },
  {
    id: "unknown-part",
    group,
    title: "A content part of an unknown type",
    without: ["completions", "ollama-api"],
    ask: ({ name }) => {
      if (name === "generate-content") {
        return asks({ more: { contents: [{ role: "user", parts: [{ text: QUESTION }, { hologram: "x" }] }] } });
      }
      const text = { type: name === "responses" ? "input_text" : "text", text: QUESTION };
      const message = [{ role: "user", content: [text, { type: "hologram", data: "x" }] }];
      return asks({ more: name === "responses" ? { input: message } : { messages: message } });
    },
    script: FINE,
    sees: ({ body }) => JSON.stringify(body).includes("hologram"),
    reads: isFine,
    // Parts without a type have no name.
    drops: /hologram|^(?:an unknown )?part$|^content of another format$/,
    backendMayRefuse: true,
  },
];
