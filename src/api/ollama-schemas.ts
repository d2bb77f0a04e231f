// Requests and answers of Ollama's API as JSON Schema.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyObject,
  anyOf,
  anything,
  count,
  described,
  flag,
  lenientRequest,
  list,
  number,
  oneOfTexts,
  open,
  type Properties,
  ref,
  type Schemas,
  shape,
  text,
  texts,
  time,
} from "../openapi/json-schema.ts";

const modelId: JsonSchema = { type: "string", minLength: 1, description: "GET /api/tags lists the models." };

/** Numbers among the options are checked as their readers do it (protocols/ollama/read-request.ts). */
const options = described(
  open(
    {},
    {
      temperature: { type: ["number", "null"], minimum: 0 },
      top_p: { type: ["number", "null"], minimum: 0, maximum: 1 },
      top_k: { type: ["integer", "null"], minimum: 0 },
      seed: { type: ["integer", "null"] },
      num_predict: { type: ["integer", "null"], minimum: -2, description: "0 and less: no limit." },
      frequency_penalty: { type: ["number", "null"], minimum: -2, maximum: 2 },
      presence_penalty: { type: ["number", "null"], minimum: -2, maximum: 2 },
      stop: anyOf(text, texts, { type: "null" }),
    },
  ),
  "Others, such as num_ctx, are dropped and named in the log.",
);

const shared: Properties = {
  stream: described(flag, "Left out: true."),
  format: anyOf(oneOfTexts("", "json"), anyObject),
  think: anyOf(flag, text),
  keep_alive: described(anything, "Dropped: how long a model stays in memory is the backend's business."),
  options,
};

const images = described(texts, "Pictures in base64: PNG, JPEG, GIF or WebP.");

const end: Properties = {
  done_reason: text,
  total_duration: described(count, "Nanoseconds since the gateway got the request."),
  prompt_eval_count: count,
  prompt_eval_duration: described(count, "Of streams: nanoseconds until the first piece of the answer."),
  eval_count: count,
  eval_duration: described(count, "Of streams: nanoseconds from there to the end."),
};

const details = shape({
  parent_model: text,
  format: text,
  family: text,
  families: texts,
  parameter_size: text,
  quantization_level: text,
});

const listed: Properties = { name: text, model: text, size: count, digest: text, details };

export const OLLAMA_SCHEMAS: Schemas = {
  OllamaChatRequest: lenientRequest(
    { model: modelId },
    {
      ...shared,
      messages: described(list(ref("OllamaMessage")), "None: the model is only looked for."),
      tools: list(anyObject),
    },
  ),
  OllamaMessage: lenientRequest(
    { role: oneOfTexts("system", "user", "assistant", "tool") },
    { content: text, thinking: text, images, tool_calls: list(anyObject), tool_name: text, tool_call_id: text },
  ),
  OllamaGenerateRequest: lenientRequest(
    { model: modelId },
    { ...shared, prompt: text, system: text, images, suffix: text, template: text, raw: flag },
  ),
  OllamaChatAnswer: described(
    open(
      {
        model: text,
        created_at: time,
        message: open(
          { role: { const: "assistant" }, content: text },
          { thinking: text, tool_calls: list(open({ id: text, function: anyObject })) },
        ),
        done: flag,
      },
      end,
    ),
    "A whole answer, or one line of a stream; the last line is the one that is done.",
  ),
  OllamaGenerateAnswer: described(
    open({ model: text, created_at: time, response: text, done: flag }, { thinking: text, ...end }),
    "A whole answer, or one line of a stream; the last line is the one that is done.",
  ),
  OllamaEmbedRequest: lenientRequest(
    { model: modelId, input: anyOf(text, texts) },
    { dimensions: { type: "integer", minimum: 1 }, truncate: flag, keep_alive: anything, options: anything },
  ),
  OllamaEmbeddingRequest: lenientRequest({ model: modelId, prompt: text }, { keep_alive: anything, options: anything }),
  OllamaEmbeddings: open(
    { model: text, embeddings: list(list(number)) },
    { total_duration: count, prompt_eval_count: count },
  ),
  OllamaEmbedding: open({ embedding: list(number) }),
  OllamaError: described(shape({ error: text }), "An error of the gateway or of a backend."),
  OllamaVersion: shape({ version: text }),
  OllamaModels: shape({ models: list(shape({ ...listed, modified_at: time })) }),
  OllamaRunning: shape({ models: list(shape({ ...listed, expires_at: time, size_vram: count })) }),
  OllamaShowRequest: {
    ...lenientRequest({}, { model: modelId, name: described(modelId, "What older clients write.") }),
    anyOf: [
      { required: ["model"], properties: { model: modelId } },
      { required: ["name"], properties: { name: modelId } },
    ],
  },
  OllamaModel: shape({
    modelfile: text,
    parameters: text,
    template: text,
    details,
    model_info: anyObject,
    capabilities: texts,
    modified_at: time,
  }),
};
