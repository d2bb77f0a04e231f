// Playground: a streamed chat with any model, by the public API, as any client would ask.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import { useApp } from "../app/context.ts";
import { setting, useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { type AnswerSoFar, chatRequest, createConversation, type ShownMessage, type Wanted } from "../conversation.ts";
import { duration, rate } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Head } from "../parts/card.tsx";
import { WithCurl } from "../parts/copy.tsx";
import { Area, Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Notice } from "../parts/notice.tsx";

/** Nearer to the end than this, the page follows the answer. */
const NEAR_END_PX = 80;

export function PlaygroundPage() {
  const { api, visits } = useApp();
  const backends = useResource<BackendStatusList>("admin/backends");
  const asked = visits.current.value.route.query.get("model") ?? "";
  const fields = useKept<Wanted>("fields", () => ({ model: asked, system: "", temperature: "", max: "", key: "" }));
  const text = useKept("text", () => "");
  const conversation = useKept("conversation", () => createConversation(api)).value;
  const { current: visit } = useRef(visits.current.value);
  // It goes on while a sign-in that is over is renewed, and ends with the visit.
  useLayoutEffect(
    () => () => {
      if (visits.current.peek() !== visit) conversation.stop();
    },
    [conversation, visit, visits],
  );

  const models = [...new Set((backends.data.value?.backends ?? []).flatMap((row) => row.models))].sort();
  const wanted = { ...fields.value, model: fields.value.model || (models[0] ?? "") };
  const { messages, answer, failure, isRunning } = conversation.state.value;
  function send(): void {
    const message = text.value.trim();
    if (message === "" || isRunning) return;
    text.value = "";
    void conversation.send(wanted, message);
  }
  return (
    <>
      <Head title="Playground">
        <Button kind="small" isDisabled={messages.length === 0} onClick={conversation.clear}>
          Start over
        </Button>
      </Head>
      <div class="playground">
        <Settings
          fields={fields.value}
          models={models}
          model={wanted.model}
          change={(more) => {
            fields.value = { ...fields.value, ...more };
          }}
        />
        <section class="card chat" aria-label="Conversation">
          <Talk messages={messages} isRunning={isRunning} />
          {failure !== undefined && (
            <Notice tone="bad" isAlert>
              {failure}
            </Notice>
          )}
          <AnswerLine answer={answer} />
          <Composer
            text={text.value}
            set={setting(text)}
            send={send}
            stop={isRunning ? conversation.stop : undefined}
          />
        </section>
      </div>
      <WithCurl title="This request with curl" requests={[chatRequest(wanted, messages, text.value || "Hello!")]} />
    </>
  );
}

interface SettingsProps {
  fields: Wanted;
  models: readonly string[];
  /** The model that is asked where none is chosen. */
  model: string;
  change(more: Partial<Wanted>): void;
}

function Settings({ fields, models, model, change }: SettingsProps) {
  const about = (name: keyof Wanted, label: string) => ({
    ...{ id: name, label, value: fields[name] },
    set: (value: string) => change({ [name]: value }),
  });
  const number = { type: "number", placeholder: "the model's own" } as const;
  return (
    <section class="card" aria-label="Settings">
      <Field {...about("model", "Model")} list={models} placeholder={model} />
      <Area {...about("system", "System prompt")} rows={3} />
      <Field {...about("temperature", "Temperature")} {...number} min={0} max={2} step="any" />
      <Field {...about("max", "Max tokens")} {...number} min={1} step={1} />
      <Field {...about("key", "API key (optional)")} type="password" />
      <p class="faint">The key stays in this page only. Requests count like any others.</p>
    </section>
  );
}

function Talk({ messages, isRunning }: { messages: readonly ShownMessage[]; isRunning: boolean }) {
  const talk = useRef<HTMLDivElement>(null);
  const wasNear = useRef(true);
  const { current: element } = talk;
  // Before the answer is drawn: a reader who has scrolled up stays there.
  if (element !== null) {
    wasNear.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END_PX;
  }
  const count = messages.length;
  const shown = useRef(count);
  useLayoutEffect(() => {
    if (wasNear.current || count > shown.current) talk.current?.scrollTo(0, talk.current.scrollHeight);
    shown.current = count;
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too
    <div ref={talk} class="talk" tabIndex={0} role="log" aria-label="Messages" aria-busy={isRunning}>
      {count === 0 && <p class="empty">Send a message to any model.</p>}
      {messages.map(({ role, content }, index) => (
        <div key={index} class={`message ${role}`}>
          <span class="faint">{role === "user" ? "You" : "Model"}</span>
          <p>{content === "" ? "…" : content}</p>
        </div>
      ))}
    </div>
  );
}

function AnswerLine({ answer }: { answer: AnswerSoFar | undefined }) {
  if (answer === undefined) return <p class="faint telling">{"\u00a0"}</p>;
  return (
    <p class="faint telling" role="status">
      {answerText(answer)}
      {answer.ownId !== null && (
        <>
          {" · "}
          <Link to="request" id={answer.ownId}>
            what happened
          </Link>
        </>
      )}
    </p>
  );
}

function answerText({ backend, cache, startedMs, firstMs, endedMs, tokens }: AnswerSoFar): string {
  const writingMs = firstMs === undefined || endedMs === undefined ? 0 : endedMs - firstMs;
  const parts = [
    backend !== null && `from ${backend}`,
    cache !== null && `cache ${cache.toLowerCase()}`,
    firstMs !== undefined && `first token after ${duration(firstMs - startedMs)}`,
    endedMs !== undefined && `done after ${duration(endedMs - startedMs)}`,
    tokens !== undefined &&
      `${tokens} tokens${writingMs > 1 ? `, ${rate((tokens / writingMs) * 1000)} per second` : ""}`,
  ];
  return parts.filter((part) => part !== false).join(" · ");
}

interface ComposerProps {
  text: string;
  set(text: string): void;
  send(): void;
  /** undefined: nothing runs. */
  stop: (() => void) | undefined;
}

function Composer({ text, set, send, stop }: ComposerProps) {
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label for="prompt" class="unseen">
        Your message
      </label>
      <textarea
        id="prompt"
        rows={2}
        placeholder="Message (Enter sends, Shift+Enter adds a line)"
        value={text}
        onInput={(event) => set(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      {stop === undefined ? (
        <button type="submit" class="main">
          Send
        </button>
      ) : (
        <Button kind="danger" onClick={stop}>
          Stop
        </Button>
      )}
    </form>
  );
}
