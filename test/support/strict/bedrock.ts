// A strict backend of Amazon Bedrock: Converse, InvokeModel of Anthropic's models and of embeddings, model lists and
// CountTokens, whole and in frames, with signatures that are checked.

import { EventStreamCodec } from "@smithy/eventstream-codec";
import { type AwsKey, checkSignature } from "./aws-signature.ts";
import { Counter } from "./chat.ts";
import { checkConverseBody } from "./converse-rules.ts";
import { Ledger } from "./ledger.ts";
import { MessagesAnswer } from "./messages.ts";
import { checkMessagesBody } from "./messages-rules.ts";
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
  type Frame,
  notFound,
  type ReceivedRequest,
  type Reply,
  requireJson,
  type StrictBackend,
  startStrictServer,
  type Vendor,
} from "./server.ts";
import { base64, list, number, oneOf, Refused, refuse, shape, string } from "./shape.ts";

export interface StrictBedrockOptions {
  models?: readonly string[];
  /** Inference profiles, which the second list has. */
  profiles?: readonly string[];
  /** Undefined: the bearer token alone is taken. */
  key?: AwsKey;
  region?: string;
  bearer?: string;
  /** Shared with other services that take the same proofs. */
  ledger?: Ledger;
}

export const BEDROCK_KEY: AwsKey = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "sekret-aws-secret" };
export const BEDROCK_TOKEN = "bedrock-api-key-sekret";

const FINISH = {
  stop: "end_turn",
  "stop-sequence": "stop_sequence",
  length: "max_tokens",
  "tool-calls": "tool_use",
  "content-filter": "content_filtered",
  pause: "end_turn",
} as const;

const EXCEPTIONS: Record<number, string> = {
  400: "ValidationException",
  403: "AccessDeniedException",
  404: "ResourceNotFoundException",
  408: "ModelTimeoutException",
  424: "ModelErrorException",
  429: "ThrottlingException",
  500: "InternalServerException",
  503: "ServiceUnavailableException",
};

const PATH = /^\/model\/(.+)\/(converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)$/;
const PROFILES_PER_PAGE = 2;

export function startStrictBedrock(script: Script, options: StrictBedrockOptions = {}): Promise<StrictBackend> {
  const { models = ["amazon.nova-2-lite-v1:0"], profiles = [], region = "us-east-1" } = options;
  const tools = { ledger: options.ledger ?? new Ledger(), ids: new Counter("bdrk_") };
  const all = [...models, ...profiles];

  function checkCaller(request: ReceivedRequest): void {
    const { bearer = BEDROCK_TOKEN, key } = options;
    if (request.headers.authorization === `Bearer ${bearer}`) return;
    if (key === undefined) throw new Refused("invalid", "authorization", "Authentication failed: invalid token", 403);
    checkSignature(request, key, region);
  }

  function asked(request: ReceivedRequest): { model: string; method: string } {
    // As it came: an ARN has slashes, which are escaped.
    const [, escaped = "", method = ""] = PATH.exec(request.target) ?? [];
    if (method === "" || escaped.includes("/")) throw notFound(request);
    checkCaller(request);
    const model = decodeURIComponent(escaped);
    if (!all.includes(model)) {
      throw new Refused("invalid", "modelId", "The provided model identifier is invalid.");
    }
    requireJson(request);
    return { model, method };
  }

  const vendor: Vendor = {
    read(request) {
      if (request.path === "/foundation-models") {
        checkCaller(request);
        return { modelSummaries: models.map(summary) };
      }
      if (request.path !== "/inference-profiles") return undefined;
      checkCaller(request);
      return profilePage(profiles, Number(request.query.get("nextToken") ?? 0));
    },
    aside(request) {
      const { model, method } = asked(request);
      if (method === "count-tokens") return countTokens(request.body, model, tools.ledger);
      return method === "invoke" ? embed(request.body, model) : undefined;
    },
    accept(request) {
      const { model, method } = asked(request);
      const isStreamed = method.endsWith("stream");
      if (method.startsWith("invoke")) return invoke(request, model, isStreamed, tools);
      checkConverseBody(request.body, model, tools.ledger);
      return (answer) => {
        const rendered = new ConverseAnswer(answer, request.body, tools);
        return isStreamed ? frames(rendered.events().map(eventFrame)) : { json: rendered.whole() };
      };
    },
    refusal: (refused) => ({
      message: refused.field === "" ? refused.message : `${refused.field}: ${refused.message}`,
    }),
    failure: ({ message }) => ({ message }),
    failureHeaders: (error) => ({
      "x-amzn-errortype": `${exceptionOf(error)}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    }),
    failureFrame: (error) => exceptionFrame(exceptionOf(error), error.message),
  };
  return startStrictServer(vendor, script);
}

function exceptionOf(error: Refused | ScriptedError): string {
  const named = error instanceof Refused ? error.code : error.type;
  return named ?? EXCEPTIONS[error.status] ?? "InternalServerException";
}

function summary(modelId: string): JsonObject {
  const isEmbedding = modelId.includes("embed");
  return {
    modelArn: `arn:aws:bedrock:us-east-1::foundation-model/${modelId}`,
    modelId,
    modelName: modelId,
    providerName: "Amazon",
    inputModalities: modelId.includes("nova-2") ? ["TEXT", "IMAGE"] : ["TEXT"],
    outputModalities: [isEmbedding ? "EMBEDDING" : modelId.includes("image") ? "IMAGE" : "TEXT"],
    responseStreamingSupported: true,
    inferenceTypesSupported: ["ON_DEMAND"],
    modelLifecycle: { status: "ACTIVE" },
  };
}

function profilePage(profiles: readonly string[], start: number): JsonObject {
  const page = profiles.slice(start, start + PROFILES_PER_PAGE);
  const next = start + PROFILES_PER_PAGE;
  return {
    inferenceProfileSummaries: page.map((id) => ({
      inferenceProfileId: id,
      inferenceProfileName: id,
      inferenceProfileArn: `arn:aws:bedrock:us-east-1:123456789012:inference-profile/${id}`,
      models: [{ modelArn: `arn:aws:bedrock:us-east-1::foundation-model/${id.replace(/^\w+\./, "")}` }],
      status: "ACTIVE",
      type: "SYSTEM_DEFINED",
    })),
    ...(next < profiles.length && { nextToken: String(next) }),
  };
}

function countTokens(body: JsonObject, model: string, ledger: Ledger): JsonObject {
  shape({ input: shape({ invokeModel: shape({ body: base64 }) }) })(body, "");
  const { input } = body as { input: { invokeModel: { body: string } } };
  checkInvokedMessages(JSON.parse(Buffer.from(input.invokeModel.body, "base64").toString()), model, false, ledger);
  return { inputTokens: 42 };
}

const TITAN = shape({
  inputText: string({ min: 1 }),
  "dimensions?": oneOf(256, 512, 1024),
  "normalize?": oneOf(true, false),
  "embeddingTypes?": list(string()),
});
const COHERE = shape({
  texts: list(string({ min: 1, max: 2048 }), 1, 96),
  input_type: oneOf("search_document", "search_query", "classification", "clustering"),
  "truncate?": oneOf("NONE", "START", "END"),
  "embedding_types?": list(oneOf("float", "int8", "uint8", "binary", "ubinary"), 1),
  "output_dimension?": oneOf(256, 512, 1024, 1536),
  "max_tokens?": number(1),
});

/** Undefined for what is no model of embeddings. A vector begins with the length of its text. */
function embed(body: JsonObject, model: string): JsonObject | undefined {
  if (model.includes("titan-embed")) {
    TITAN(body, "");
    const { inputText, dimensions = 4 } = body as { inputText: string; dimensions?: number };
    const embedding = Array.from({ length: dimensions }, (_, index) => (index === 0 ? inputText.length : 0.5));
    return { embedding, embeddingsByType: { float: embedding }, inputTextTokenCount: inputText.split(/\s+/).length };
  }
  if (!model.includes("cohere.embed")) return undefined;
  COHERE(body, "");
  const { texts, embedding_types: types } = body as { texts: string[]; embedding_types?: string[] };
  const vectors = texts.map((text) => [text.length, 0.5, 0.25]);
  return {
    id: "cohere-1",
    texts,
    ...(types === undefined
      ? { response_type: "embeddings_floats", embeddings: vectors }
      : { response_type: "embeddings_by_type", embeddings: { float: vectors } }),
  };
}

interface Tools {
  ledger: Ledger;
  ids: Counter;
}

function invoke(request: ReceivedRequest, model: string, isStreamed: boolean, { ledger, ids }: Tools) {
  if (!model.includes("anthropic")) throw new Refused("invalid", "modelId", "Operation not allowed");
  const body = checkInvokedMessages(request.body, model, isStreamed, ledger);
  return (answer: ScriptedAnswer): Reply => {
    const rendered = new MessagesAnswer(answer, body, ledger, ids).render();
    if (!("frames" in rendered)) return { json: rendered.json };
    return frames(rendered.frames.flatMap((frame) => chunksOf(String(frame))));
  };
}

/** The body as Anthropic's own API would get it. */
function checkInvokedMessages(body: JsonObject, model: string, stream: boolean, ledger: Ledger): JsonObject {
  const { anthropic_version: version, anthropic_beta: betas, ...rest } = body;
  if (version !== "bedrock-2023-05-31") refuse("anthropic_version", "Field required");
  if (betas !== undefined) list(string({ min: 1 }), 1)(betas, "anthropic_beta");
  for (const name of ["model", "stream"]) if (name in rest) refuse(name, "Extra inputs are not permitted");
  // "us.anthropic.claude-x-v1:0" is claude-x.
  const name = model.replace(/^.*anthropic\./, "").replace(/-v\d+(:\d+)?$/, "");
  const whole = { ...rest, model: name, ...(stream && { stream }) };
  checkMessagesBody(whole, { version: "2023-06-01", ledger, mergesTurns: true });
  return whole;
}

/** Pings do not come through Bedrock; the last event has measurements besides. */
function chunksOf(frame: string): Frame[] {
  const data = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "{}") as JsonObject;
  if (data.type === "ping") return [];
  const told =
    data.type === "message_stop"
      ? { ...data, "amazon-bedrock-invocationMetrics": { inputTokenCount: 10, outputTokenCount: 5 } }
      : data;
  return [eventFrame(["chunk", { bytes: Buffer.from(JSON.stringify(told)).toString("base64") }])];
}

type NamedEvent = [name: string, payload: JsonObject];

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes as Uint8Array),
  (text) => new TextEncoder().encode(text),
);

function encodeFrame(headers: Record<string, string>, payload: JsonObject): Uint8Array {
  const all = { ...headers, ":content-type": "application/json" };
  return codec.encode({
    headers: Object.fromEntries(Object.entries(all).map(([name, value]) => [name, { type: "string" as const, value }])),
    body: new TextEncoder().encode(JSON.stringify(payload)),
  });
}

/** The service pads its events, so that their length tells nothing. */
export function eventFrame([name, payload]: NamedEvent): Uint8Array {
  return encodeFrame({ ":message-type": "event", ":event-type": name }, { ...payload, p: "abcdefghijk" });
}

export function exceptionFrame(exception: string, message: string): Uint8Array {
  const name = exception.charAt(0).toLowerCase() + exception.slice(1);
  return encodeFrame({ ":message-type": "exception", ":exception-type": name }, { message });
}

function frames(all: readonly Frame[]): Reply {
  return { frames: all, headers: { "content-type": "application/vnd.amazon.eventstream" } };
}

interface Rendered {
  whole: JsonObject;
  start?: JsonObject;
  deltas: JsonObject[];
}

class ConverseAnswer {
  readonly #answer: ScriptedAnswer;
  readonly #tools: Tools;
  readonly #blocks: Rendered[];

  constructor(answer: ScriptedAnswer, body: JsonObject, tools: Tools) {
    this.#answer = answer;
    this.#tools = tools;
    const thinks = JSON.stringify(body.additionalModelRequestFields ?? {}).includes("reasoning");
    this.#blocks = answer.parts.flatMap((part) => this.#part(part, thinks));
  }

  whole(): JsonObject {
    return {
      output: { message: { role: "assistant", content: this.#blocks.map(({ whole }) => whole) } },
      stopReason: FINISH[finishOf(this.#answer)],
      usage: this.#usage(),
      metrics: { latencyMs: 12 },
    };
  }

  events(): NamedEvent[] {
    const events: NamedEvent[] = [["messageStart", { role: "assistant" }]];
    for (const [contentBlockIndex, { start, deltas }] of this.#blocks.entries()) {
      if (start !== undefined) events.push(["contentBlockStart", { start, contentBlockIndex }]);
      for (const delta of deltas) events.push(["contentBlockDelta", { delta, contentBlockIndex }]);
      events.push(["contentBlockStop", { contentBlockIndex }]);
    }
    events.push(["messageStop", { stopReason: FINISH[finishOf(this.#answer)] }]);
    return [...events, ["metadata", { usage: this.#usage(), metrics: { latencyMs: 12 } }]];
  }

  #usage(): JsonObject {
    const { input, cacheRead, cacheWrite, output } = usageOf(this.#answer);
    return {
      inputTokens: input - cacheRead - cacheWrite,
      outputTokens: output,
      totalTokens: input + output,
      cacheReadInputTokens: cacheRead,
      cacheWriteInputTokens: cacheWrite,
      ...(cacheWrite > 0 && { cacheDetails: [{ ttl: "5m", inputTokens: cacheWrite }] }),
    };
  }

  #part(part: ScriptedPart, thinks: boolean): Rendered[] {
    switch (part.type) {
      case "refusal":
        return [this.#text(part.text)];
      case "text":
        return [part.citations === undefined ? this.#text(part.text) : this.#cited(part)];
      case "thinking":
        return thinks ? [part.redacted === true ? this.#redacted() : this.#thinking(part.text)] : [];
      case "call":
        return [this.#call(part)];
      case "search":
        return [];
    }
  }

  #text(text: string): Rendered {
    return { whole: { text }, deltas: deltas(text, this.#answer).map((piece) => ({ text: piece })) };
  }

  #cited({ text, citations = [] }: Extract<ScriptedPart, { type: "text" }>): Rendered {
    const told = citations.map(({ url, title, citedText }) => ({
      title,
      sourceContent: [{ text: citedText }],
      location: { web: { url, domain: new URL(url).hostname } },
    }));
    return {
      whole: { citationsContent: { content: [{ text }], citations: told } },
      deltas: [
        ...deltas(text, this.#answer).map((piece) => ({ text: piece })),
        ...told.map((citation) => ({ citation })),
      ],
    };
  }

  #thinking(text: string): Rendered {
    const signature = this.#tools.ledger.issue("reasoning", text);
    return {
      whole: { reasoningContent: { reasoningText: { text, signature } } },
      deltas: [
        ...deltas(text, this.#answer).map((piece) => ({ reasoningContent: { text: piece } })),
        { reasoningContent: { signature } },
      ],
    };
  }

  #redacted(): Rendered {
    const reasoningContent = { redactedContent: this.#tools.ledger.issue("redacted", "") };
    return { whole: { reasoningContent }, deltas: [{ reasoningContent }] };
  }

  #call({ id = this.#tools.ids.next("tooluse_"), name, arguments: input }: Extract<ScriptedPart, { type: "call" }>) {
    const pieces = Object.keys(input).length === 0 ? ["{}"] : deltas(JSON.stringify(input), this.#answer);
    return {
      whole: { toolUse: { toolUseId: id, name, input } },
      start: { toolUse: { toolUseId: id, name } },
      deltas: pieces.map((piece) => ({ toolUse: { input: piece } })),
    };
  }
}
