// The public API's requests and answers as JSON Schema. Requests say what the gateway checks (src/protocols); answers say
// what clients can rely on, whichever backend has made them.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyObject,
  anyOf,
  anything,
  count,
  described,
  flag,
  integer,
  lenientRequest,
  list,
  number,
  oneOfTexts,
  open,
  orNull,
  type Properties,
  ref,
  type Schemas,
  text,
  texts,
  unixTime,
} from "../openapi/json-schema.ts";
import { SAMPLING_NUMBERS } from "../protocols/fields.ts";

const filledText: JsonSchema = { type: "string", minLength: 1 };
const modelId = described(filledText, "Id of a model, see GET /v1/models.");
const tokenLimit: JsonSchema = { type: "integer", minimum: 1 };
/** Such as a content part: the members depend on the type. */
const typed = open({ type: text });
const someTyped: JsonSchema = list(typed);
const content = anyOf(text, someTyped);
const filledList = (items: JsonSchema): JsonSchema => ({ ...list(items), minItems: 1 });

const streamFlag = described(flag, "Answer with an event stream.");
/** The very rules that requests are checked with. */
const sampling: Properties = Object.fromEntries(
  SAMPLING_NUMBERS.map(({ field, minimum, maximum, integer }) => [
    field,
    { type: integer ? "integer" : "number", minimum, maximum },
  ]),
);
const shared: Properties = {
  ...sampling,
  stream: streamFlag,
  stream_options: anyObject,
  stop: anyOf(text, texts),
  logit_bias: anyObject,
  user: text,
};

const chatMessage: JsonSchema = {
  ...open({ role: filledText }, { content: anyOf(text, someTyped, { type: "null" }) }),
  description: "Only messages of the role assistant may lack content.",
  if: { properties: { role: { const: "assistant" } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: true,
  else: { required: ["content"], properties: { content } },
};

const usage = open({ prompt_tokens: count, completion_tokens: count, total_tokens: count });

/** A whole answer or an event: `choice` is what each choice has besides its place, `more` what it may have. */
function completion(object: string, choice: Properties, more?: Properties): JsonSchema {
  return open(
    {
      id: text,
      object: { const: object },
      created: unixTime,
      model: text,
      choices: list(open({ index: count, ...choice }, more)),
    },
    { usage: orNull(usage) },
  );
}

const requests = {
  ChatCompletionRequest: lenientRequest(
    { model: modelId, messages: filledList(ref("ChatMessage")) },
    {
      ...shared,
      max_tokens: tokenLimit,
      max_completion_tokens: tokenLimit,
      top_logprobs: { type: "integer", minimum: 0, maximum: 20 },
      tools: list(anything),
      tool_choice: anything,
      reasoning_effort: described(text, "Translated for each type of backend; auto and xhigh where they are known."),
      reasoning: open({}, { effort: orNull(text) }),
    },
  ),
  CompletionRequest: lenientRequest(
    { model: modelId, prompt: anyOf(text, list(anything), { type: "null" }) },
    { ...shared, max_tokens: count, best_of: tokenLimit },
  ),
  ResponsesRequest: lenientRequest(
    { model: modelId, input: anyOf(text, list(anyObject)) },
    {
      temperature: { type: "number", minimum: 0, maximum: 2 },
      top_p: { type: "number", minimum: 0, maximum: 1 },
      max_output_tokens: tokenLimit,
      max_tool_calls: count,
      top_logprobs: { type: "integer", minimum: 0, maximum: 20 },
      stream: streamFlag,
      instructions: text,
      previous_response_id: text,
      conversation: anyOf(text, anyObject),
      include: texts,
      include_reasoning: flag,
      parallel_tool_calls: flag,
      store: flag,
      background: flag,
      reasoning: open({}, { effort: orNull(oneOfTexts("auto", "none", "minimal", "low", "medium", "high", "xhigh")) }),
      text: anyObject,
      metadata: anyObject,
      stream_options: anyObject,
      tools: list(ref("ResponsesTool")),
      tool_choice: anyOf(oneOfTexts("auto", "none", "required"), typed),
      user: text,
      prompt_cache_key: text,
      service_tier: text,
    },
  ),
  ResponsesTool: described(
    open(
      { type: text },
      { name: text, description: orNull(text), parameters: orNull(anyObject), strict: orNull(flag) },
    ),
    "A tool in the flat form; the form with a member function is refused.",
  ),
  MessagesRequest: lenientRequest(
    { model: modelId, max_tokens: count, messages: filledList(ref("MessagesMessage")) },
    messagesOptions({ stream: streamFlag }),
  ),
  CountTokensRequest: lenientRequest(
    { model: modelId, messages: filledList(ref("MessagesMessage")) },
    messagesOptions({}),
  ),
  MessagesMessage: open({ role: oneOfTexts("user", "assistant", "system"), content }),
  EmbeddingRequest: lenientRequest(
    {
      model: modelId,
      input: anyOf(filledText, filledList(anything)),
    },
    { dimensions: tokenLimit, encoding_format: oneOfTexts("float", "base64"), user: text },
  ),
  RerankRequest: lenientRequest(
    {
      model: modelId,
      query: filledText,
      documents: filledList(anyOf(filledText, { ...open({}, { text: filledText }), minProperties: 1 })),
    },
    {
      top_n: described(count, "How many results; left out or 0: all."),
      top_k: described(count, "Another spelling of top_n."),
      return_documents: flag,
      user: text,
    },
  ),
  SparseEmbeddingRequest: lenientRequest(
    { model: modelId, inputs: anyOf(filledText, filledList(filledText)) },
    { user: text },
  ),
} satisfies Record<string, JsonSchema>;

function messagesOptions(more: Properties): Properties {
  return {
    system: content,
    temperature: { type: "number", minimum: 0, maximum: 1 },
    top_p: { type: "number", minimum: 0, maximum: 1 },
    top_k: count,
    stop_sequences: texts,
    tools: list(anyObject),
    tool_choice: typed,
    metadata: anyObject,
    thinking: anyObject,
    output_config: anyObject,
    ...more,
  };
}

const answers = {
  ChatMessage: chatMessage,
  ChatCompletion: completion("chat.completion", {
    message: open(
      { role: text, content: orNull(text) },
      { reasoning_content: orNull(text), tool_calls: orNull(list(anyObject)), refusal: orNull(text) },
    ),
    finish_reason: orNull(text),
  }),
  ChatCompletionChunk: completion(
    "chat.completion.chunk",
    {
      delta: open(
        {},
        {
          role: text,
          content: orNull(text),
          reasoning_content: orNull(text),
          tool_calls: orNull(list(anyObject)),
        },
      ),
    },
    { finish_reason: orNull(text) },
  ),
  Completion: described(
    completion("text_completion", { text }, { finish_reason: orNull(text) }),
    "A text completion; the events of its stream have the same shape.",
  ),
  Response: open(
    {
      id: text,
      object: { const: "response" },
      created_at: number,
      status: oneOfTexts("in_progress", "completed", "incomplete", "failed", "cancelled", "queued"),
      model: text,
      output: list(typed),
    },
    {
      error: orNull(anyObject),
      incomplete_details: orNull(anyObject),
      usage: orNull(open({ input_tokens: count, output_tokens: count, total_tokens: count })),
    },
  ),
  ResponseEvent: open({ type: text }, { sequence_number: count }),
  Message: open({
    id: text,
    type: { const: "message" },
    role: { const: "assistant" },
    model: text,
    content: list(typed),
    stop_reason: orNull(text),
    usage: open({ input_tokens: count, output_tokens: count }),
  }),
  MessageEvent: open({
    type: oneOfTexts(
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
      "ping",
      "error",
    ),
  }),
  TokenCount: open({ input_tokens: count }),
  EmbeddingList: open(
    {
      object: { const: "list" },
      data: list(
        open({
          object: { const: "embedding" },
          index: count,
          embedding: anyOf(list(number), described(text, "Little-endian 32-bit floats in Base64.")),
        }),
      ),
      model: text,
    },
    { usage: open({ prompt_tokens: count, total_tokens: count }) },
  ),
  RerankResult: open(
    {
      id: text,
      object: { const: "list" },
      model: text,
      results: described(
        list(open({ index: count, relevance_score: number }, { document: anything })),
        "The best first.",
      ),
    },
    { usage: open({ prompt_tokens: count, total_tokens: count }), meta: anyObject },
  ),
  SparseEmbeddings: described(list(list(open({ index: integer, value: number }))), "One vector for each input."),
} satisfies Record<string, JsonSchema>;

export const GENERATION_SCHEMAS: Schemas = { ...requests, ...answers };
