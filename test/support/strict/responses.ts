// A strict backend of the Responses format.

import { Counter, modelList } from "./chat.ts";
import { Ledger } from "./ledger.ts";
import { openAiFailure, openAiRefusal } from "./openai-errors.ts";
import { checkResponsesBody, type ResponseStore } from "./responses-rules.ts";
import {
  deltas,
  finishOf,
  groups,
  inTurns,
  type JsonObject,
  type Script,
  type ScriptedAnswer,
  type ScriptedPart,
  usageOf,
} from "./script.ts";
import {
  notFound,
  type Reply,
  requireBearer,
  requireJson,
  type StrictBackend,
  startStrictServer,
  type Vendor,
} from "./server.ts";
import { Refused } from "./shape.ts";

export interface StrictResponsesOptions {
  models?: readonly string[];
}

const CREATED = 1_790_000_000;

export function startStrictResponses(script: Script, options: StrictResponsesOptions = {}): Promise<StrictBackend> {
  const models = options.models ?? ["gpt-5", "gpt-4o"];
  const ids = new Counter();
  const store: ResponseStore = { ledger: new Ledger(), openCalls: new Map(), reasonedBy: new Map() };
  const vendor: Vendor = {
    read: ({ path }) => (path === "/v1/models" ? modelList(models, "system") : undefined),
    accept(request) {
      if (request.path !== "/v1/responses") throw notFound(request);
      requireBearer(request, "invalid_api_key");
      requireJson(request);
      checkResponsesBody(request.body, store);
      if (!models.includes(String(request.body.model))) {
        throw new Refused(
          "invalid",
          "model",
          `The model '${request.body.model}' does not exist`,
          400,
          "model_not_found",
        );
      }
      return (answer) => new ResponsesAnswer(answer, request.body, ids, store).render();
    },
    refusal: openAiRefusal,
    failure: openAiFailure,
    // The live service nests what its types have flat; clients read both.
    failureFrame(error) {
      const { error: nested } = openAiFailure(error) as { error: JsonObject };
      return frame({ type: "error", sequence_number: 99, error: nested });
    },
  };
  return startStrictServer(vendor, script);
}

interface Item {
  /** As it is at the end. */
  whole: JsonObject & { id: string };
  /** As it is added to a stream. */
  start: JsonObject;
  /** Events between added and done; item_id and output_index are filled in. */
  events: JsonObject[];
}

class ResponsesAnswer {
  readonly #answer: ScriptedAnswer;
  readonly #body: JsonObject;
  readonly #ids: Counter;
  readonly #store: ResponseStore;
  readonly #id: string;
  readonly #items: Item[];

  constructor(answer: ScriptedAnswer, body: JsonObject, ids: Counter, store: ResponseStore) {
    this.#answer = answer;
    this.#body = body;
    this.#ids = ids;
    this.#store = store;
    this.#id = ids.next("resp_");
    this.#items = answer.parts.map((part) => this.#item(part));
    this.#remember();
  }

  render(): Reply {
    const headers = { "x-request-id": "req_scripted" };
    if (this.#body.stream !== true) return { headers, json: this.#final() };
    let sequence = 0;
    return { headers, frames: this.#events().map((event) => frame({ ...event, sequence_number: sequence++ })) };
  }

  #remember(): void {
    const calls = this.#items.flatMap(({ whole }) => (typeof whole.call_id === "string" ? [whole.call_id] : []));
    if (this.#body.store !== false) this.#store.openCalls.set(this.#id, calls);
    let reasoning: string | undefined;
    for (const { whole } of this.#items) {
      if (whole.type === "reasoning") reasoning = whole.id;
      else if (reasoning !== undefined) this.#store.reasonedBy.set(whole.id, reasoning);
    }
  }

  #final(): JsonObject {
    const output = this.#items.map(({ whole }) => whole);
    const { input, cacheRead, cacheWrite, output: written, reasoning } = usageOf(this.#answer);
    const usage = {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
      output_tokens: written,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + written,
    };
    return { ...this.#snapshot(this.#status()), output, usage };
  }

  #status(): "completed" | "incomplete" {
    const finish = finishOf(this.#answer);
    return finish === "length" || finish === "content-filter" ? "incomplete" : "completed";
  }

  #snapshot(status: string): JsonObject {
    const body = this.#body;
    const reason = finishOf(this.#answer) === "length" ? "max_output_tokens" : "content_filter";
    return {
      id: this.#id,
      object: "response",
      created_at: CREATED,
      status,
      error: null,
      incomplete_details: status === "incomplete" ? { reason } : null,
      instructions: body.instructions ?? null,
      max_output_tokens: body.max_output_tokens ?? null,
      metadata: body.metadata ?? {},
      model: `${body.model}-2026-01-01`,
      output: [],
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      previous_response_id: body.previous_response_id ?? null,
      reasoning: { effort: null, summary: null },
      store: body.store ?? true,
      temperature: body.temperature ?? 1,
      text: body.text ?? { format: { type: "text" } },
      tool_choice: body.tool_choice ?? "auto",
      tools: body.tools ?? [],
      top_p: body.top_p ?? 1,
      truncation: "disabled",
      usage: null,
      user: null,
    };
  }

  #events(): JsonObject[] {
    const response = this.#snapshot("in_progress");
    const indexed = this.#items.map((item, output_index) => {
      const place = (event: JsonObject) => ({ type: event.type, item_id: item.whole.id, output_index, ...event });
      return [
        { type: "response.output_item.added", output_index, item: item.start },
        ...item.events.map(place),
        { type: "response.output_item.done", output_index, item: item.whole },
      ];
    });
    let next = 0;
    const ordered = groups(this.#answer).flatMap((group) => {
      const lists = group.map(() => indexed[next++] ?? []);
      return this.#answer.interleaved ? inTurns(lists) : lists.flat();
    });
    return [
      { type: "response.created", response },
      { type: "response.in_progress", response },
      ...ordered,
      { type: `response.${this.#status()}`, response: this.#final() },
    ];
  }

  #item(part: ScriptedPart): Item {
    switch (part.type) {
      case "text":
        return this.#text(part);
      case "refusal":
        return this.#refusal(part.text);
      case "thinking":
        return this.#reasoning(part.redacted === true ? "" : part.text);
      case "call":
        return this.#call(part);
      case "search":
        return this.#search(part);
    }
  }

  #text({ text, citations = [] }: Extract<ScriptedPart, { type: "text" }>): Item {
    const annotations = citations.map(({ url, title, start, end }) => ({
      type: "url_citation",
      url,
      title,
      start_index: start,
      end_index: end,
    }));
    const part = { type: "output_text", text, annotations, logprobs: [] };
    const empty = { ...part, text: "", annotations: [] };
    return this.#message(part, empty, [
      ...deltas(text, this.#answer).map((delta) => ({
        type: "response.output_text.delta",
        content_index: 0,
        delta,
        logprobs: [],
      })),
      ...annotations.map((annotation, annotation_index) => ({
        type: "response.output_text.annotation.added",
        content_index: 0,
        annotation_index,
        annotation,
      })),
      { type: "response.output_text.done", content_index: 0, text, logprobs: [] },
    ]);
  }

  #refusal(refusal: string): Item {
    return this.#message({ type: "refusal", refusal }, { type: "refusal", refusal: "" }, [
      ...deltas(refusal, this.#answer).map((delta) => ({ type: "response.refusal.delta", content_index: 0, delta })),
      { type: "response.refusal.done", content_index: 0, refusal },
    ]);
  }

  #message(part: JsonObject, empty: JsonObject, events: JsonObject[]): Item {
    const whole = {
      id: this.#ids.next("msg_"),
      type: "message",
      role: "assistant",
      status: this.#status(),
      content: [part],
    };
    const around = (step: string, value: JsonObject) => ({
      type: `response.content_part.${step}`,
      content_index: 0,
      part: value,
    });
    return {
      whole,
      start: { ...whole, status: "in_progress", content: [] },
      events: [around("added", empty), ...events, around("done", part)],
    };
  }

  #reasoning(text: string): Item {
    const id = this.#ids.next("rs_");
    const { include, reasoning } = this.#body as { include?: string[]; reasoning?: { summary?: string } };
    const isSealed = include?.includes("reasoning.encrypted_content") === true;
    const sealed = isSealed ? { encrypted_content: this.#store.ledger.issue("reasoning", id) } : {};
    const isShown = text !== "" && typeof reasoning?.summary === "string";
    const part = { type: "summary_text", text };
    const at = { summary_index: 0 };
    return {
      whole: { id, type: "reasoning", summary: isShown ? [part] : [], ...sealed },
      start: { id, type: "reasoning", summary: [], ...sealed },
      events: isShown
        ? [
            { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
            ...deltas(text, this.#answer).map((delta) => ({
              type: "response.reasoning_summary_text.delta",
              ...at,
              delta,
            })),
            { type: "response.reasoning_summary_text.done", ...at, text },
            { type: "response.reasoning_summary_part.done", ...at, part },
          ]
        : [],
    };
  }

  #call(part: Extract<ScriptedPart, { type: "call" }>): Item {
    const text = JSON.stringify(part.arguments);
    const call_id = part.id ?? this.#ids.next("call_");
    const whole = {
      id: this.#ids.next("fc_"),
      type: "function_call",
      status: "completed",
      arguments: text,
      call_id,
      name: part.name,
    };
    return {
      whole,
      start: { ...whole, status: "in_progress", arguments: "" },
      events: [
        ...deltas(text, this.#answer).map((delta) => ({ type: "response.function_call_arguments.delta", delta })),
        { type: "response.function_call_arguments.done", arguments: text, name: part.name },
      ],
    };
  }

  #search({ query, results }: Extract<ScriptedPart, { type: "search" }>): Item {
    const id = this.#ids.next("ws_");
    const sources = results.map(({ url }) => ({ type: "url", url }));
    return {
      whole: { id, type: "web_search_call", status: "completed", action: { type: "search", query, sources } },
      start: { id, type: "web_search_call", status: "in_progress" },
      events: ["in_progress", "searching", "completed"].map((step) => ({ type: `response.web_search_call.${step}` })),
    };
  }
}

function frame(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
