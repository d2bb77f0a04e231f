// A strict backend of the generateContent format.

import { Counter } from "./chat.ts";
import { checkGenerateContentBody, isAtLeast3 } from "./generate-content-rules.ts";
import { Ledger } from "./ledger.ts";
import {
  deltas,
  finishOf,
  type JsonObject,
  type Script,
  type ScriptedAnswer,
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

export interface StrictGenerateContentOptions {
  models?: readonly string[];
  /** Older models give no ids with their calls. */
  withoutCallIds?: boolean;
  /** Frames end with CRLF, as some proxies write them. */
  crlf?: boolean;
  /** Proofs that it accepts besides its own. */
  ledger?: Ledger;
}

const FINISH = {
  stop: "STOP",
  "stop-sequence": "STOP",
  length: "MAX_TOKENS",
  "tool-calls": "STOP",
  "content-filter": "SAFETY",
  pause: "STOP",
} as const;

const STATUS: Record<number, string> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

const PATH = /^\/(?:v1beta|v1)\/models\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/;

export function startStrictGenerateContent(
  script: Script,
  options?: StrictGenerateContentOptions,
): Promise<StrictBackend> {
  return startStrictServer(generateContentVendor(options), script);
}

export function generateContentVendor(options: StrictGenerateContentOptions = {}): Vendor {
  const models = options.models ?? ["gemini-2.5-flash", "gemini-3-pro"];
  const ledger = options.ledger ?? new Ledger();
  const ids = new Counter();
  const lineEnd = options.crlf ? "\r\n" : "\n";
  const frame = (value: unknown) => `data: ${JSON.stringify(value)}${lineEnd}${lineEnd}`;
  return {
    read: ({ path }) => (/^\/(v1beta|v1)\/models$/.test(path) ? modelList(models) : undefined),
    aside(request) {
      const [, , method] = PATH.exec(request.path) ?? [];
      if (method !== "countTokens") return undefined;
      checkHeaders(request);
      return { totalTokens: Math.ceil(request.text.length / 4) };
    },
    accept(request) {
      const [, model, method] = PATH.exec(request.path) ?? [];
      if (model === undefined) throw notFound(request);
      checkHeaders(request);
      if (!models.includes(model)) throw new Refused("invalid", "model", `models/${model} is not found`, 404);
      checkGenerateContentBody(request.body, model, ledger);
      return (answer) => {
        const rendered = new GenerateContentAnswer(answer, model, request.body, { ledger, ids, options });
        return method === "generateContent" ? { json: rendered.whole() } : stream(rendered.chunks(), request, frame);
      };
    },
    refusal: (refused) => googleError(refused.status, refusalText(refused)),
    failure: (error) => googleError(error.status, error.message, error.type),
    failureFrame: (error) => frame(googleError(error.status, error.message, error.type)),
  };
}

function checkHeaders(request: ReceivedRequest): void {
  if (request.headers["x-goog-api-key"] === undefined && !request.query.has("key")) {
    throw new Refused("missing", "x-goog-api-key", "Method doesn't allow unregistered callers.", 403);
  }
  requireJson(request);
}

function stream(chunks: readonly JsonObject[], request: ReceivedRequest, frame: (value: unknown) => string): Reply {
  if (request.query.get("alt") === "sse") return { frames: chunks.map(frame) };
  // Without alt=sse the stream is one JSON array, written bit by bit.
  const frames = chunks.map((chunk, index) => `${index === 0 ? "[" : ",\r\n"}${JSON.stringify(chunk)}`);
  return { headers: { "content-type": "application/json" }, frames: [...frames, "]"] };
}

function refusalText({ reason, field, message }: Refused): string {
  if (reason === "unknown") {
    return `Invalid JSON payload received. Unknown name "${field.split(".").at(-1)}" at '${field}': Cannot find field.`;
  }
  return `* GenerateContentRequest.${field}: ${message}`;
}

export function googleError(code: number, message: string, status = STATUS[code] ?? "UNKNOWN"): JsonObject {
  return { error: { code, message, status } };
}

function modelList(models: readonly string[]): JsonObject {
  return {
    models: models.map((id) => ({
      name: `models/${id}`,
      displayName: id,
      inputTokenLimit: 1_048_576,
      outputTokenLimit: 65_536,
      supportedGenerationMethods: ["generateContent", "countTokens"],
    })),
  };
}

interface Tools {
  ledger: Ledger;
  ids: Counter;
  options: StrictGenerateContentOptions;
}

class GenerateContentAnswer {
  readonly #answer: ScriptedAnswer;
  readonly #model: string;
  readonly #showsThoughts: boolean;
  readonly #tools: Tools;
  readonly #id: string;
  #hasSigned = false;

  constructor(answer: ScriptedAnswer, model: string, body: JsonObject, tools: Tools) {
    this.#answer = answer;
    this.#model = model;
    this.#showsThoughts = /"include_?[tT]houghts":true/.test(JSON.stringify(body));
    this.#tools = tools;
    this.#id = tools.ids.next("response-");
  }

  whole(): JsonObject {
    const parts = this.#answer.parts.flatMap((part) => this.#part(part));
    if (this.#isBlockedPrompt()) return this.#envelope({ promptFeedback: { blockReason: "SAFETY" } });
    return this.#envelope({ candidates: [this.#candidate(parts, true)] });
  }

  chunks(): JsonObject[] {
    if (this.#isBlockedPrompt()) return [this.whole()];
    const answer = this.#answer;
    const pieces = answer.parts.flatMap((part) =>
      this.#part(part).flatMap((whole) => {
        const { text } = whole;
        if (typeof text !== "string") return [whole];
        const { thoughtSignature, ...rest } = whole;
        const texts = deltas(text, answer).map((piece) => ({ ...rest, text: piece }));
        // The proof of a text comes in a part of its own at the end.
        return thoughtSignature === undefined ? texts : [...texts, { text: "", thoughtSignature }];
      }),
    );
    const chunks = pieces.map((piece) => this.#envelope({ candidates: [this.#candidate([piece], false)] }));
    return [...chunks, this.#envelope({ candidates: [this.#candidate([], true)] })];
  }

  /** Nothing was answered, for the prompt was blocked. */
  #isBlockedPrompt(): boolean {
    return this.#answer.parts.length === 0 && this.#answer.finish === "content-filter";
  }

  #candidate(parts: readonly JsonObject[], isLast: boolean): JsonObject {
    return {
      ...(parts.length > 0 && { content: { role: "model", parts } }),
      ...(isLast && { finishReason: FINISH[finishOf(this.#answer)], ...this.#grounding() }),
      index: 0,
    };
  }

  #envelope(members: JsonObject): JsonObject {
    const { input, cacheRead, output, reasoning } = usageOf(this.#answer);
    const usageMetadata = {
      promptTokenCount: input,
      ...(cacheRead > 0 && { cachedContentTokenCount: cacheRead }),
      candidatesTokenCount: output - reasoning,
      ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
      totalTokenCount: input + output,
    };
    return { ...members, usageMetadata, modelVersion: this.#model, responseId: this.#id };
  }

  #part(part: ScriptedPart): JsonObject[] {
    switch (part.type) {
      case "text": {
        const isSigned =
          isAtLeast3(this.#model) && this.#thought() && !this.#hasCalls() && part === this.#answer.parts.at(-1);
        return [{ text: part.text, ...(isSigned && { thoughtSignature: this.#tools.ledger.issue("text", "") }) }];
      }
      case "thinking":
        return this.#showsThoughts ? [{ text: part.text, thought: true }] : [];
      case "call":
        return [this.#call(part)];
      case "refusal":
        return [{ text: part.text }];
      case "search":
        return [];
    }
  }

  #call({ id, name, arguments: args }: Extract<ScriptedPart, { type: "call" }>): JsonObject {
    const { ledger, ids, options } = this.#tools;
    const callId = options.withoutCallIds ? undefined : (id ?? ids.next("fc-"));
    // Of parallel calls only the first is signed; newer models sign always, older ones when they thought.
    const isSigned = !this.#hasSigned && (isAtLeast3(this.#model) || this.#thought());
    this.#hasSigned = true;
    return {
      functionCall: { ...(callId !== undefined && { id: callId }), name, args },
      ...(isSigned && { thoughtSignature: ledger.issue("call", name) }),
    };
  }

  #thought(): boolean {
    return this.#answer.parts.some(({ type }) => type === "thinking");
  }

  #hasCalls(): boolean {
    return this.#answer.parts.some(({ type }) => type === "call");
  }

  #grounding(): JsonObject {
    const citations = this.#answer.parts.flatMap((part) => (part.type === "text" ? (part.citations ?? []) : []));
    if (citations.length === 0) return {};
    return {
      groundingMetadata: {
        groundingChunks: citations.map(({ url, title }) => ({ web: { uri: url, title } })),
        groundingSupports: citations.map(({ start, end, citedText }, index) => ({
          segment: { startIndex: start, endIndex: end, text: citedText },
          groundingChunkIndices: [index],
        })),
      },
    };
  }
}
