// Playground: a streamed chat with any model, by the public API, as any client would ask.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import { messageOf, toError } from "../api.ts";
import { type MakePage, resource } from "../context.ts";
import { duration, rate } from "../format.ts";
import { button, commandLine, field, notice } from "../parts.ts";
import { linkTo } from "../route.ts";
import { createSseReader } from "../sse.ts";
import { type Children, h, type View } from "../view.ts";

interface ShownMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

/** How an answer came. */
interface AnswerSoFar {
  backend: string | null;
  ownId: string | null;
  cache: string | null;
  startedMs: number;
  firstMs: number | undefined;
  endedMs: number | undefined;
  tokens: number | undefined;
}

interface StreamChunk {
  choices?: { delta?: { content?: string | null; reasoning_content?: string | null } }[];
  usage?: { completion_tokens?: number } | null;
  error?: { message?: string };
}

const PATH = "v1/chat/completions";

/** Long because these functions share one conversation. */
export const playgroundPage: MakePage = (context) => {
  const backends = resource<BackendStatusList>(context, () => "admin/backends");
  const wanted = {
    model: context.route.query.get("model") ?? "",
    system: "",
    temperature: "",
    max: "",
    key: "",
    text: "",
  };
  let messages: ShownMessage[] = [];
  let told: AnswerSoFar | undefined;
  let failure: string | undefined;
  let leaving: AbortController | undefined;
  context.onLeave(() => leaving?.abort());

  const models = () => [...new Set((backends.data?.backends ?? []).flatMap((row) => row.models))].sort();
  const model = () => (wanted.model === "" ? (models()[0] ?? "") : wanted.model);

  function bodyOf(conversation: readonly ShownMessage[]): object {
    const { system, temperature, max } = wanted;
    return {
      model: model(),
      messages: [...(system === "" ? [] : [{ role: "system", content: system }]), ...conversation],
      stream: true,
      stream_options: { include_usage: true },
      ...(temperature !== "" && { temperature: Number(temperature) }),
      ...(max !== "" && { max_tokens: Number(max) }),
    };
  }

  async function send(): Promise<void> {
    const text = wanted.text.trim();
    if (text === "" || leaving !== undefined) return;
    const asked: ShownMessage[] = [...messages, { role: "user", content: text }];
    const answer: ShownMessage = { role: "assistant", content: "" };
    messages = [...asked, answer];
    wanted.text = "";
    failure = undefined;
    leaving = new AbortController();
    context.redraw();
    showEnd(true);
    try {
      await follow(bodyOf(asked), answer, leaving.signal);
    } catch (thrown) {
      if (!leaving.signal.aborted) failure = messageOf(thrown);
    }
    if (told !== undefined) told.endedMs = performance.now();
    if (answer.content === "") messages = messages.filter((message) => message !== answer);
    leaving = undefined;
    context.redraw();
    showEnd(false);
  }

  async function follow(body: object, answer: ShownMessage, signal: AbortSignal): Promise<void> {
    told = {
      backend: null,
      ownId: null,
      cache: null,
      startedMs: performance.now(),
      firstMs: undefined,
      endedMs: undefined,
      tokens: undefined,
    };
    const response = await fetch(new URL(PATH, context.api.base), {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        ...(wanted.key !== "" && { Authorization: `Bearer ${wanted.key}` }),
      },
      body: JSON.stringify(body),
      signal,
    });
    told.backend = response.headers.get("x-signalbox-backend");
    told.ownId = response.headers.get("x-signalbox-request-id");
    told.cache = response.headers.get("x-cache");
    if (!response.ok || response.body === null) throw toError(response, await response.json().catch(() => undefined));
    const read = createSseReader();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const data of read(decoder.decode(value, { stream: true }))) take(data, answer);
      context.redraw();
      showEnd(false);
    }
  }

  function take(data: string, answer: ShownMessage): void {
    if (data === "[DONE]" || told === undefined) return;
    const { choices, usage, error } = JSON.parse(data) as StreamChunk;
    if (error !== undefined) throw new Error(error.message ?? "The stream ended with an error.");
    const delta = choices?.[0]?.delta;
    const text = delta?.content ?? delta?.reasoning_content ?? "";
    if (text !== "") told.firstMs ??= performance.now();
    answer.content += text;
    if (usage) told.tokens = usage.completion_tokens;
  }

  function clear(): void {
    leaving?.abort();
    messages = [];
    told = undefined;
    failure = undefined;
    context.redraw();
  }

  const set = (more: Partial<typeof wanted>) => {
    Object.assign(wanted, more);
    context.redraw();
  };
  const command = () =>
    context.curl({
      method: "POST",
      path: PATH,
      body: bodyOf([
        ...messages.filter(({ content }) => content !== ""),
        { role: "user", content: wanted.text || "Hello!" },
      ]),
    });

  return {
    title: "Playground",
    view: () => [
      h(
        "div",
        { class: "head" },
        h("h1", { tabindex: "-1" }, "Playground"),
        button("Start over", clear, { kind: "small", disabled: messages.length === 0 }),
      ),
      h(
        "div",
        { class: "playground" },
        settings(wanted, models(), model(), set),
        h(
          "section",
          { class: "card chat", "aria-label": "Conversation" },
          conversation(messages, leaving !== undefined),
          failure !== undefined && h("div", { role: "alert" }, notice("bad", failure)),
          tellingLine(told),
          composer(wanted.text, leaving !== undefined, { set, send: () => void send(), stop: () => leaving?.abort() }),
        ),
      ),
      h("details", { class: "asked" }, h("summary", null, "This request with curl"), commandLine(context, command())),
    ],
  };
};

/** Nearer to the end than this, the page follows the answer. */
const NEAR_END_PX = 80;

/** Once it is drawn. A reader who has scrolled up stays there. */
function showEnd(isWanted: boolean): void {
  const talk = document.querySelector(".talk");
  if (talk === null) return;
  const isNear = talk.scrollHeight - talk.scrollTop - talk.clientHeight < NEAR_END_PX;
  if (!isWanted && !isNear) return;
  requestAnimationFrame(() => requestAnimationFrame(() => talk.scrollTo(0, talk.scrollHeight)));
}

type Wanted = { model: string; system: string; temperature: string; max: string; key: string };

function settings(
  wanted: Wanted,
  models: readonly string[],
  model: string,
  set: (more: Partial<Wanted>) => void,
): View {
  return h(
    "section",
    { class: "card", "aria-label": "Settings" },
    field("model", "Model", wanted.model, (value) => set({ model: value }), { list: models, placeholder: model }),
    h(
      "div",
      { class: "field" },
      h("label", { for: "system" }, "System prompt"),
      h("textarea", {
        id: "system",
        rows: 3,
        value: wanted.system,
        oninput: (event: { target: HTMLTextAreaElement }) => set({ system: event.target.value }),
      }),
    ),
    field("temperature", "Temperature", wanted.temperature, (value) => set({ temperature: value }), {
      type: "number",
      min: 0,
      max: 2,
      step: "any",
      placeholder: "the model's own",
    }),
    field("max", "Most tokens", wanted.max, (value) => set({ max: value }), {
      type: "number",
      min: 1,
      step: 1,
      placeholder: "the model's own",
    }),
    field("key", "API key, if one is needed", wanted.key, (value) => set({ key: value }), {
      type: "password",
      autocomplete: "off",
    }),
    h("p", { class: "faint" }, "The key stays on this page and is gone with it. Requests are counted as any others."),
  );
}

function conversation(messages: readonly ShownMessage[], isRunning: boolean): View {
  const nothing = h("p", { class: "empty" }, "Ask any model something.");
  return h(
    "div",
    { class: "talk", tabindex: "0", role: "log", "aria-label": "Messages", "aria-busy": String(isRunning) },
    messages.length === 0
      ? nothing
      : messages.map(({ role, content }, index) =>
          h(
            "div",
            { class: `message ${role}`, key: String(index) },
            h("span", { class: "faint" }, role === "user" ? "You" : "Model"),
            h("p", null, content === "" ? "…" : content),
          ),
        ),
  );
}

function tellingLine(told: AnswerSoFar | undefined): Children {
  if (told === undefined) return h("p", { class: "faint telling" }, "\u00a0");
  const { backend, cache, startedMs, firstMs, endedMs, tokens, ownId } = told;
  const writingMs = firstMs === undefined || endedMs === undefined ? undefined : endedMs - firstMs;
  const parts = [
    backend !== null && `from ${backend}`,
    cache !== null && `cache ${cache.toLowerCase()}`,
    firstMs !== undefined && `first token after ${duration(firstMs - startedMs)}`,
    endedMs !== undefined && `done after ${duration(endedMs - startedMs)}`,
    tokens !== undefined &&
      `${tokens} tokens${writingMs !== undefined && writingMs > 1 ? `, ${rate((tokens / writingMs) * 1000)} per second` : ""}`,
  ].filter((part) => part !== false);
  return h(
    "p",
    { class: "faint telling", role: "status" },
    parts.join(" · "),
    ownId !== null && [" · ", h("a", { href: linkTo("request", ownId) }, "what happened")],
  );
}

interface ComposerActions {
  set(more: { text: string }): void;
  send(): void;
  stop(): void;
}

function composer(text: string, isRunning: boolean, { set, send, stop }: ComposerActions): View {
  const onkeydown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  const onsubmit = (event: Event) => {
    event.preventDefault();
    send();
  };
  return h(
    "form",
    { class: "composer", onsubmit },
    h("label", { for: "prompt", class: "unseen" }, "Your message"),
    h("textarea", {
      id: "prompt",
      rows: 2,
      placeholder: "Your message; Enter sends it, Shift and Enter begin a new line",
      value: text,
      onkeydown,
      oninput: (event: { target: HTMLTextAreaElement }) => set({ text: event.target.value }),
    }),
    isRunning ? button("Stop", stop, { kind: "danger" }) : h("button", { type: "submit", class: "main" }, "Send"),
  );
}
