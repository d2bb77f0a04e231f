// A strict backend of the Messages format.

import { Counter } from "./chat.ts";
import { Ledger } from "./ledger.ts";
import { COUNT_BODY, checkMessagesBody, type MessagesVersion } from "./messages-rules.ts";
import {
  deltas,
  finishOf,
  type JsonObject,
  type Script,
  type ScriptedAnswer,
  type ScriptedError,
  type ScriptedPart,
  usageOf,
} from "./script.ts";
import {
  notFound,
  type ReceivedRequest,
  type Reply,
  requireJson,
  type StrictBackend,
  startStrictServer,
  type Vendor,
} from "./server.ts";
import { Refused } from "./shape.ts";

export interface StrictMessagesOptions {
  models?: readonly string[];
  /** Neighbours with one role are joined, as the service does today; otherwise they are refused. */
  mergesTurns?: boolean;
  /** Proofs that it accepts besides its own: the vendor's are good at every place that serves its models. */
  ledger?: Ledger;
  /** What ids begin with behind their kind, as those of other places do. */
  idPrefix?: string;
}

const FINISH = {
  stop: "end_turn",
  "stop-sequence": "stop_sequence",
  length: "max_tokens",
  "tool-calls": "tool_use",
  "content-filter": "refusal",
  pause: "pause_turn",
} as const;

const ERROR_TYPES: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

export function startStrictMessages(script: Script, options?: StrictMessagesOptions): Promise<StrictBackend> {
  return startStrictServer(messagesVendor(options), script);
}

export function messagesVendor(options: StrictMessagesOptions = {}): Vendor {
  const models = options.models ?? ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5"];
  const ledger = options.ledger ?? new Ledger();
  const ids = new Counter(options.idPrefix);
  return {
    read: ({ path }) => (path === "/v1/models" ? modelList(models) : undefined),
    aside(request) {
      if (request.path !== "/v1/messages/count_tokens") return undefined;
      checkHeaders(request);
      COUNT_BODY(request.body, "");
      return { input_tokens: Math.ceil(request.text.length / 4) };
    },
    accept(request) {
      if (request.path !== "/v1/messages") throw notFound(request);
      const version = checkHeaders(request);
      checkMessagesBody(request.body, { version, ledger, mergesTurns: options.mergesTurns === true });
      if (!models.includes(String(request.body.model))) {
        throw new Refused("invalid", "model", `model: ${request.body.model}`, 404);
      }
      return (answer) => new MessagesAnswer(answer, request.body, ledger, ids).render();
    },
    refusal: (refused) => errorBody(refused.status, refusalText(refused)),
    failure: (error) => errorBody(error.status, error.message, error.type),
    failureFrame: (error: ScriptedError) => frame(errorBody(error.status, error.message, error.type)),
  };
}

function checkHeaders(request: ReceivedRequest): MessagesVersion {
  const { headers } = request;
  if (headers["x-api-key"] === undefined && !headers.authorization?.startsWith("Bearer ")) {
    throw new Refused("missing", "x-api-key", "header is required", 401);
  }
  const version = headers["anthropic-version"];
  if (version === undefined) throw new Refused("missing", "anthropic-version", "header is required");
  if (version !== "2023-06-01" && version !== "2026-10-21") {
    throw new Refused("invalid", "anthropic-version", `${version} is not a valid version`);
  }
  requireJson(request);
  return version;
}

function refusalText({ reason, field, message }: Refused): string {
  if (reason === "unknown") return `${field}: Extra inputs are not permitted`;
  return reason === "missing" ? `${field}: Field required` : `${field}: ${message}`;
}

function errorBody(status: number, message: string, type = ERROR_TYPES[status] ?? "api_error"): JsonObject {
  return { type: "error", error: { type, message }, request_id: "req_scripted" };
}

function modelList(models: readonly string[]): JsonObject {
  const data = models.map((id) => ({ type: "model", id, display_name: id, created_at: "2026-01-01T00:00:00Z" }));
  return { data, has_more: false, first_id: models[0], last_id: models.at(-1) };
}

interface Block {
  /** As in a whole answer. */
  whole: JsonObject;
  /** As it begins in a stream. */
  start: JsonObject;
  deltas: JsonObject[];
}

export class MessagesAnswer {
  readonly #answer: ScriptedAnswer;
  readonly #body: JsonObject;
  readonly #ledger: Ledger;
  readonly #ids: Counter;
  readonly #blocks: Block[];

  constructor(answer: ScriptedAnswer, body: JsonObject, ledger: Ledger, ids: Counter) {
    this.#answer = answer;
    this.#body = body;
    this.#ledger = ledger;
    this.#ids = ids;
    this.#blocks = answer.parts.flatMap((part) => this.#part(part));
  }

  render(): Reply {
    const headers = { "request-id": "req_scripted" };
    if (this.#body.stream === true) return { frames: this.#frames(), headers };
    const content = this.#blocks.map(({ whole }) => whole);
    const json = { ...this.#message(), content, ...this.#ending(), usage: this.#usage(usageOf(this.#answer).output) };
    return { json, headers };
  }

  #frames(): string[] {
    const message = { ...this.#message(), content: [], stop_reason: null, stop_sequence: null, usage: this.#usage(1) };
    const frames = [frame({ type: "message_start", message }), frame({ type: "ping" })];
    for (const [index, { start, deltas }] of this.#blocks.entries()) {
      frames.push(frame({ type: "content_block_start", index, content_block: start }));
      for (const delta of deltas) frames.push(frame({ type: "content_block_delta", index, delta }));
      frames.push(frame({ type: "content_block_stop", index }));
    }
    const usage = { output_tokens: usageOf(this.#answer).output };
    frames.push(frame({ type: "message_delta", delta: this.#ending(), usage }), frame({ type: "message_stop" }));
    return frames;
  }

  #message(): JsonObject {
    const id = this.#ids.next("msg_");
    return { id, type: "message", role: "assistant", model: this.#body.model, container: null, stop_details: null };
  }

  #ending(): JsonObject {
    return { stop_reason: FINISH[finishOf(this.#answer)], stop_sequence: this.#answer.stopSequence ?? null };
  }

  #usage(output: number): JsonObject {
    const { input, cacheRead, cacheWrite, reasoning } = usageOf(this.#answer);
    const searches = this.#answer.parts.filter(({ type }) => type === "search").length;
    return {
      input_tokens: input - cacheRead - cacheWrite,
      cache_read_input_tokens: cacheRead,
      cache_creation_input_tokens: cacheWrite,
      cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: 0 },
      output_tokens: output,
      ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
      ...(searches > 0 && { server_tool_use: { web_search_requests: searches, web_fetch_requests: 0 } }),
      service_tier: "standard",
    };
  }

  #part(part: ScriptedPart): Block[] {
    switch (part.type) {
      case "text":
        return [this.#text(part)];
      case "thinking":
        return [part.redacted === true ? this.#redacted() : this.#thinking(part.text)];
      case "call":
        return [this.#call(part)];
      case "search":
        return this.#search(part);
      case "refusal":
        return [this.#text({ type: "text", text: part.text })];
    }
  }

  #text({ text, citations: scripted = [] }: Extract<ScriptedPart, { type: "text" }>): Block {
    const citations = scripted.map(({ url, title, citedText }) => ({
      type: "web_search_result_location",
      url,
      title,
      cited_text: citedText,
      encrypted_index: this.#ledger.issue("index", url),
    }));
    const has = citations.length > 0;
    return {
      whole: { type: "text", text, ...(has && { citations }) },
      start: { type: "text", text: "", ...(has && { citations: [] }) },
      // The service names its sources before the words that they support.
      deltas: [
        ...citations.map((citation) => ({ type: "citations_delta", citation })),
        ...deltas(text, this.#answer).map((piece) => ({ type: "text_delta", text: piece })),
      ],
    };
  }

  #thinking(text: string): Block {
    const signature = this.#ledger.issue("signature", text);
    return {
      whole: { type: "thinking", thinking: text, signature },
      start: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...deltas(text, this.#answer).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature },
      ],
    };
  }

  #redacted(): Block {
    const whole = { type: "redacted_thinking", data: this.#ledger.issue("redacted", "") };
    return { whole, start: whole, deltas: [] };
  }

  #call({ id = this.#ids.next("toolu_"), name, arguments: input }: Extract<ScriptedPart, { type: "call" }>): Block {
    if (this.#answer.parts.some(({ type }) => type === "thinking")) this.#ledger.noteThought(id);
    const pieces = Object.keys(input).length === 0 ? [""] : ["", ...deltas(JSON.stringify(input), this.#answer)];
    return {
      whole: { type: "tool_use", id, name, input },
      start: { type: "tool_use", id, name, input: {} },
      deltas: pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
    };
  }

  #search({ query, results }: Extract<ScriptedPart, { type: "search" }>): Block[] {
    const id = this.#ids.next("srvtoolu_");
    const input = { query };
    const use = { type: "server_tool_use", id, name: "web_search" };
    const content = results.map(({ url, title, pageAge }) => ({
      type: "web_search_result",
      url,
      title,
      encrypted_content: this.#ledger.issue("page", url),
      page_age: pageAge ?? null,
    }));
    const result = { type: "web_search_tool_result", tool_use_id: id, content };
    const pieces = deltas(JSON.stringify(input), this.#answer);
    return [
      {
        whole: { ...use, input },
        start: { ...use, input: {} },
        deltas: pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
      },
      { whole: result, start: result, deltas: [] },
    ];
  }
}

function frame(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
