// A strict backend of the chat completions format: the hosted API, or a local engine that knows less.

import { type ChatDialect, checkChatBody } from "./chat-rules.ts";
import { openAiFailure, openAiRefusal } from "./openai-errors.ts";
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

export interface StrictChatOptions {
  /** "local": no key, no hosted fields, thoughts are shown. */
  dialect?: ChatDialect;
  models?: readonly string[];
  /** What a local engine calls its thoughts. */
  reasoningField?: "reasoning_content" | "reasoning";
  ownedBy?: string;
}

const FINISH = {
  stop: "stop",
  "stop-sequence": "stop",
  length: "length",
  "tool-calls": "tool_calls",
  "content-filter": "content_filter",
  pause: "stop",
} as const;

const CREATED = 1_790_000_000;

export function startStrictChat(script: Script, options: StrictChatOptions = {}): Promise<StrictBackend> {
  const { dialect = "openai", models = ["gpt-4o", "gpt-5"] } = options;
  const ids = new Counter();
  const vendor: Vendor = {
    read({ path }) {
      if (dialect === "local" && path === "/health") return {};
      return path === "/v1/models"
        ? modelList(models, options.ownedBy ?? (dialect === "local" ? "vllm" : "system"))
        : undefined;
    },
    accept(request) {
      if (request.path !== "/v1/chat/completions") throw notFound(request);
      if (dialect === "openai") requireBearer(request, "invalid_api_key");
      requireJson(request);
      const { body } = request;
      checkChatBody(body, dialect);
      if (!models.includes(String(body.model))) {
        throw new Refused("invalid", "model", `The model '${body.model}' does not exist`, 404, "model_not_found");
      }
      const field = dialect === "local" ? (options.reasoningField ?? "reasoning_content") : undefined;
      return (answer) => new ChatAnswer(answer, body, ids, field).render();
    },
    refusal: openAiRefusal,
    failure: openAiFailure,
    failureFrame: (error) => dataFrame(openAiFailure(error)),
  };
  return startStrictServer(vendor, script);
}

export class Counter {
  readonly #mark: string;
  #count = 0;

  /** @param mark - stands behind the prefix of every id */
  constructor(mark = "") {
    this.#mark = mark;
  }

  next(prefix: string): string {
    this.#count += 1;
    return `${prefix}${this.#mark}${String(this.#count).padStart(12, "0")}`;
  }
}

export function modelList(models: readonly string[], ownedBy: string): JsonObject {
  return { object: "list", data: models.map((id) => ({ id, object: "model", created: CREATED, owned_by: ownedBy })) };
}

type Call = Extract<ScriptedPart, { type: "call" }>;

export class ChatAnswer {
  readonly #answer: ScriptedAnswer;
  readonly #body: JsonObject;
  readonly #id: string;
  readonly #ids: Counter;
  readonly #reasoningField: string | undefined;

  constructor(answer: ScriptedAnswer, body: JsonObject, ids: Counter, reasoningField: string | undefined) {
    this.#answer = answer;
    this.#body = body;
    this.#ids = ids;
    this.#id = ids.next("chatcmpl-");
    this.#reasoningField = reasoningField;
  }

  render(): Reply {
    return this.#body.stream === true ? { frames: this.#frames() } : { json: this.#whole() };
  }

  #whole(): JsonObject {
    const { parts } = this.#answer;
    const textOf = (type: string) =>
      parts.map((part) => (part.type === type && "text" in part ? part.text : "")).join("");
    const calls = parts.filter((part) => part.type === "call");
    const refusal = textOf("refusal");
    const reasoning = textOf("thinking");
    const content = textOf("text");
    const hasContent = content !== "" || (calls.length === 0 && refusal === "");
    const annotations = this.#annotations();
    const message = {
      role: "assistant",
      content: hasContent ? content : null,
      refusal: refusal === "" ? null : refusal,
      ...(this.#reasoningField !== undefined && reasoning !== "" && { [this.#reasoningField]: reasoning }),
      ...(annotations.length > 0 && { annotations }),
      ...(calls.length > 0 && { tool_calls: calls.map((part) => this.#call(part)) }),
    };
    const choice = { index: 0, message, logprobs: null, finish_reason: FINISH[finishOf(this.#answer)] };
    return { ...this.#head("chat.completion"), choices: [choice], usage: this.#usage() };
  }

  #frames(): string[] {
    const { stream_options } = this.#body as { stream_options?: { include_usage?: boolean } };
    const withUsage = stream_options?.include_usage === true;
    const chunk = (choices: unknown[], usage: unknown = null) =>
      dataFrame({ ...this.#head("chat.completion.chunk"), choices, ...(withUsage && { usage }) });
    const delta = (value: JsonObject, finish_reason: string | null = null) =>
      chunk([{ index: 0, delta: value, logprobs: null, finish_reason }]);
    const annotations = this.#annotations();
    const sources = annotations.length > 0 ? [delta({ annotations })] : [];
    // The hosted API names its sources behind the text, routers of the format before it.
    const isLocal = this.#reasoningField !== undefined;
    return [
      delta({ role: "assistant", content: "", refusal: null }),
      ...(isLocal ? sources : []),
      ...this.#deltas().map((value) => delta(value)),
      ...(isLocal ? [] : sources),
      delta({}, FINISH[finishOf(this.#answer)]),
      ...(withUsage ? [chunk([], this.#usage())] : []),
      "data: [DONE]\n\n",
    ];
  }

  #deltas(): JsonObject[] {
    const answer = this.#answer;
    let callIndex = 0;
    return groups(answer).flatMap((group) => {
      const [first] = group;
      if (first?.type === "call") {
        const calls = (group as Call[]).map((part) => this.#callDeltas(part, callIndex++));
        return answer.interleaved ? inTurns(calls) : calls.flat();
      }
      if (first?.type === "text") return deltas(first.text, answer).map((content) => ({ content }));
      if (first?.type === "refusal") return deltas(first.text, answer).map((refusal) => ({ refusal }));
      const field = this.#reasoningField;
      if (first?.type !== "thinking" || field === undefined) return [];
      return deltas(first.text, answer).map((text) => ({ [field]: text }));
    });
  }

  #callDeltas(part: Call, index: number): JsonObject[] {
    const whole = this.#call(part);
    const { arguments: text } = whole.function;
    const first = { index, ...whole, function: { name: part.name, arguments: "" } };
    const rest = deltas(text, this.#answer).map((piece) => ({ index, function: { arguments: piece } }));
    return [first, ...rest].map((call) => ({ tool_calls: [call] }));
  }

  #call(part: Call): { id: string; type: "function"; function: { name: string; arguments: string } } {
    const id = part.id ?? this.#ids.next("call_");
    return { id, type: "function", function: { name: part.name, arguments: JSON.stringify(part.arguments) } };
  }

  #annotations(): JsonObject[] {
    let offset = 0;
    return this.#answer.parts.flatMap((part) => {
      if (part.type !== "text") return [];
      const start = offset;
      offset += part.text.length;
      return (part.citations ?? []).map(({ url, title, start: from, end }) => ({
        type: "url_citation",
        url_citation: { url, title, start_index: start + from, end_index: start + end },
      }));
    });
  }

  #head(object: string): JsonObject {
    return { id: this.#id, object, created: CREATED, model: `${this.#body.model}-2026-01-01`, service_tier: "default" };
  }

  #usage(): JsonObject {
    const { input, cacheRead, cacheWrite, output, reasoning } = usageOf(this.#answer);
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }) },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
  }
}

export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
