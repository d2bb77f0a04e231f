// A streamed chat with a model, by the public API, as any client would ask.

import { type ReadonlySignal, signal } from "@preact/signals";
import { type Api, messageOf, toError } from "./app/api.ts";
import type { CurlRequest } from "./curl.ts";
import { createSseReader } from "./sse.ts";

export interface ShownMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

/** How an answer came. */
export interface AnswerSoFar {
  backend: string | null;
  ownId: string | null;
  cache: string | null;
  startedMs: number;
  firstMs: number | undefined;
  endedMs: number | undefined;
  tokens: number | undefined;
}

/** What the fields hold. */
export interface Wanted {
  model: string;
  system: string;
  temperature: string;
  max: string;
  key: string;
}

interface ConversationState {
  messages: readonly ShownMessage[];
  answer: AnswerSoFar | undefined;
  failure: string | undefined;
  isRunning: boolean;
}

interface StreamChunk {
  choices?: { delta?: { content?: string | null; reasoning_content?: string | null } }[];
  usage?: { completion_tokens?: number } | null;
  error?: { message?: string };
}

const PATH = "v1/chat/completions";
const EMPTY: ConversationState = { messages: [], answer: undefined, failure: undefined, isRunning: false };
const BEGUN = { backend: null, ownId: null, cache: null, firstMs: undefined, endedMs: undefined, tokens: undefined };

/** What is asked when this text is sent now. */
export function chatRequest(wanted: Wanted, messages: readonly ShownMessage[], text: string): CurlRequest {
  const { model, system, temperature, max } = wanted;
  const before = messages.filter(({ content }) => content !== "");
  return {
    method: "POST",
    path: PATH,
    body: {
      model,
      messages: [
        ...(system === "" ? [] : [{ role: "system", content: system }]),
        ...before,
        { role: "user", content: text },
      ],
      stream: true,
      stream_options: { include_usage: true },
      ...(temperature !== "" && { temperature: Number(temperature) }),
      ...(max !== "" && { max_tokens: Number(max) }),
    },
  };
}

/** Long because these functions share one conversation. */
export function createConversation({ base }: Pick<Api, "base">) {
  const state = signal<ConversationState>(EMPTY);
  let leaving: AbortController | undefined;

  function change(more: Partial<ConversationState>): void {
    state.value = { ...state.peek(), ...more };
  }

  function answered(more: Partial<AnswerSoFar>): void {
    const { answer } = state.peek();
    if (answer !== undefined) change({ answer: { ...answer, ...more } });
  }

  async function send(wanted: Wanted, text: string): Promise<void> {
    const { messages } = state.peek();
    const request = chatRequest(wanted, messages, text);
    const left = new AbortController();
    leaving = left;
    change({
      messages: [...messages, { role: "user", content: text }, { role: "assistant", content: "" }],
      answer: { ...BEGUN, startedMs: performance.now() },
      failure: undefined,
      isRunning: true,
    });
    let failure: string | undefined;
    try {
      await follow(request, wanted.key, left.signal);
    } catch (thrown) {
      if (!left.signal.aborted) failure = messageOf(thrown);
    }
    if (leaving !== left) return; // another conversation has begun
    leaving = undefined;
    answered({ endedMs: performance.now() });
    const all = state.peek().messages;
    change({ messages: all.at(-1)?.content === "" ? all.slice(0, -1) : all, failure, isRunning: false });
  }

  async function follow({ method, path, body }: CurlRequest, key: string, signal: AbortSignal): Promise<void> {
    const response = await fetch(new URL(path, base), {
      method,
      headers: { "Content-Type": "application/json", ...(key !== "" && { Authorization: `Bearer ${key}` }) },
      body: JSON.stringify(body),
      signal,
    });
    answered({
      backend: response.headers.get("x-signalbox-backend"),
      ownId: response.headers.get("x-signalbox-request-id"),
      cache: response.headers.get("x-cache"),
    });
    if (!response.ok || response.body === null) throw toError(response, await response.json().catch(() => undefined));
    const read = createSseReader();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const data of read(decoder.decode(value, { stream: true }))) take(data);
    }
  }

  function take(data: string): void {
    if (data === "[DONE]") return;
    const { choices, usage, error } = JSON.parse(data) as StreamChunk;
    if (error !== undefined) throw new Error(error.message ?? "The stream ended with an error.");
    const delta = choices?.[0]?.delta;
    const text = delta?.content ?? delta?.reasoning_content ?? "";
    if (usage) answered({ tokens: usage.completion_tokens });
    if (text === "") return;
    const { messages, answer } = state.peek();
    const last = messages.at(-1) as ShownMessage;
    change({ messages: [...messages.slice(0, -1), { ...last, content: last.content + text }] });
    if (answer?.firstMs === undefined) answered({ firstMs: performance.now() });
  }

  function stop(): void {
    leaving?.abort();
  }

  return {
    state: state as ReadonlySignal<ConversationState>,
    send,
    stop,
    clear(): void {
      stop();
      leaving = undefined;
      state.value = EMPTY;
    },
  };
}
