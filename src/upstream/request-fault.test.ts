// Messages as engines write them, each with the status that it comes with.

import { describe, expect, test } from "bun:test";
import { type RequestFault, requestFault, requestFaultBehind401 } from "./request-fault.ts";

const HINT = "hint: if this is unexpected, you may need to provide the mmproj";

const LACKING: readonly [message: string, lacks: NonNullable<RequestFault["lacks"]>][] = [
  [`image input is not supported - ${HINT}`, "image"],
  ["image input is not supported by this server", "image"],
  [`audio input is not supported - ${HINT}`, "audio"],
  [`video input is not supported - ${HINT}`, "video"],
  ['Failed to parse messages: Unsupported content part type: "image_url"; messages = [\n  {', "image"],
  ['Failed to parse messages: Unsupported content part type: "input_audio"; messages = [', "audio"],
  ["The server was not compiled for multimodal or the model projector can't be loaded.", "image"],
  ["facebook/opt-125m is not a multimodal model None", "media"],
  ["At most 0 image(s) may be provided in one prompt.", "image"],
  ["At most 0 audio(s) may be provided in one prompt.", "audio"],
  ["At most 0 video(s) may be provided in one prompt.", "video"],
  ["this model is missing data required for image input", "image"],
  [
    "Failed to create new sequence: failed to process inputs: this model is missing data required for image input",
    "image",
  ],
  ['"llama3.2:1b" does not support vision', "image"],
  ["registry.ollama.ai/library/llama3.2:1b does not support audio", "audio"],
  ["Model does not support images. Please use a model that does.", "image"],
  ["Error: Model does not support images. Please use a model that does.", "image"],
  ["This model does not support image input", "image"],
  ["This model does not support audio input.", "audio"],
  ["The model does not support video inputs", "video"],
  ["The model does not support multimodal input", "media"],
  ["No endpoints found that support image input", "image"],
];

const TOO_LONG = [
  "the request exceeds the available context size. try increasing the context size or enable context shift",
  "request (9533 tokens) exceeds the available context size (4096 tokens), try increasing it",
  "Context size has been exceeded.",
  "input (9533 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
  "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens",
  "The input (691793 tokens) is longer than the model's context length (540000 tokens).",
  "Requested token count exceeds the model's maximum context length of 4096 tokens.",
  "the input length exceeds the context length",
  "input length exceeds maximum context length",
  "input exceeds maximum context length and cannot be truncated further",
  "input after truncation exceeds maximum context length",
  "prompt too long; exceeded max context length by 12 tokens",
  "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with less",
];

const MALFORMED = [
  "Failed to load image or audio file",
  "Failed to download image",
  "Invalid image_url.url value",
  "image_url.url must be base64 encoded",
  "input_audio.format must be either 'wav' or 'mp3'",
  "unsupported content[].type",
  "Expected 'content' to be a string or an array",
  "'messages' is required",
  "All non-assistant messages must contain 'content'",
  "Assistant message must contain either 'content' or 'tool_calls'!",
  "Cannot use both json_schema and grammar",
  "Cannot use custom grammar constraints with tools.",
  "Only one completion choice is allowed",
  "Unsupported param: suffix",
  'response_format type must be one of "text" or "json_object", but got: x',
  "tools param requires --jinja flag",
  "Cannot have 2 or more assistant messages at the end of the list.",
  "Assistant response prefill is incompatible with enable_thinking.",
  "top_logprobs requires logprobs to be set to true",
  "Failed to parse grammar",
  "JSON schema conversion failed:\nUnrecognized schema",
  "Conversation roles must alternate user/assistant/user/assistant/...",
  "Failed to create new sequence: failed to process inputs: image: unknown format",
  "illegal base64 data at input byte 0",
];

const OF_THE_ENGINE = [
  "",
  "CUDA error: out of memory",
  "Internal Server Error",
  "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error",
  "model requires more system memory (9.1 GiB) than is available (3.2 GiB)",
  "Loading model",
  "EngineCore encountered an issue. See stack trace (above) for the root cause.",
  // What a client has written, in an error that quotes it.
  'template failed: messages = [{"content": "image input is not supported"}]',
  "could not answer: Model does not support images. Please use a model that does.",
];

describe("a mistake of the client", () => {
  test.each(LACKING)("%s: the model lacks %s", (message, lacks) => {
    expect(requestFault(message)).toEqual({ code: "unsupported_content", lacks });
  });

  test.each(TOO_LONG)("%s: too long", (message) => {
    expect(requestFault(message)).toEqual({ code: "context_length_exceeded" });
  });

  test.each(MALFORMED)("%s: malformed", (message) => {
    expect(requestFault(message)).toEqual({ code: "invalid_value" });
  });
});

describe("what has the status of a refused credential", () => {
  test.each([
    "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
    'openai/gpt-4o requires moderation on OpenRouter. Your input was flagged for "harassment".',
    'requested model requires moderation. Your input was flagged for "violence/graphic".',
  ])("%s: the content", (message) => {
    expect(requestFaultBehind401(message, false)).toEqual({ code: "content_policy_violation" });
  });

  test.each([
    "OpenAI-Organization header should match organization for API key",
    "OpenAI-Project header should match project for API key",
    "No such organization: org-x.",
  ])("%s: the client's choice, where it could choose", (message) => {
    expect(requestFaultBehind401(message, true)).toEqual({ code: "invalid_value" });
    expect(requestFaultBehind401(message, false)).toBeUndefined();
  });

  test.each(["Incorrect API key provided: sk-...", "You do not have access to this model", ""])("%j", (message) => {
    expect(requestFaultBehind401(message, true)).toBeUndefined();
  });
});

test.each(OF_THE_ENGINE)("%j is none", (message) => {
  expect(requestFault(message)).toBeUndefined();
});
