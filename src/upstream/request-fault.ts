// What engines say when they refuse a request for what it holds, whatever the status is that they say it with: such an
// answer is a mistake of the client, and says nothing of the engine's health.

import type { Medium } from "../generation/intake.ts";

export interface RequestFault {
  /** Of the client's answer. */
  code: string;
  /** What the model does not take; "media": whatever the request holds. */
  lacks?: Medium | "media";
}

const TOO_LONG: RequestFault = { code: "context_length_exceeded" };
const MALFORMED: RequestFault = { code: "invalid_value" };

function lacking(lacks: Medium | "media"): RequestFault {
  return { code: "unsupported_content", lacks };
}

/**
 * All begin where the message begins: some engines quote the prompt in their errors, and no client is to decide what is
 * learnt of a model. A name in front is that of the model.
 */
const WORDINGS: readonly (readonly [words: RegExp, fault: RequestFault])[] = [
  // llama.cpp, tools/server (oaicompat_chat_params_parse), as HTTP 500; "by this server" in the first versions.
  [/^image input is not supported/i, lacking("image")],
  [/^audio input is not supported/i, lacking("audio")],
  [/^video input is not supported/i, lacking("video")],
  // llama.cpp before multimodal input (issue 12947), as HTTP 500, with the messages behind it.
  [/^failed to parse messages: unsupported content part type: "image_url"/i, lacking("image")],
  [/^failed to parse messages: unsupported content part type: "input_audio"/i, lacking("audio")],
  // llamafile and llama.cpp before 2024.
  [/^the server was not compiled for multimodal/i, lacking("image")],
  // vLLM, as HTTP 400 (issue 23402).
  [/^\S{1,200} is not a multimodal model\b/i, lacking("media")],
  // vLLM, vllm/multimodal/processing (validate_num_items), as HTTP 400: none at all is allowed.
  [/^at most 0 image\(s\) may be provided/i, lacking("image")],
  [/^at most 0 audio\(s\) may be provided/i, lacking("audio")],
  [/^at most 0 video\(s\) may be provided/i, lacking("video")],
  // Ollama, model/model.go (ErrNoVisionModel), as HTTP 500, behind what the runner was doing.
  [
    /^(?:failed to (?:create new sequence|process inputs): )*this model is missing data required for image input/i,
    lacking("image"),
  ],
  // Ollama, server/images.go (CheckCapabilities), as HTTP 400.
  [/^"?\S{1,200} does not support vision\b/i, lacking("image")],
  [/^"?\S{1,200} does not support audio\b/i, lacking("audio")],
  // LM Studio (its bug tracker, issues 362, 655 and 908).
  [/^(?:error: )?(?:the )?model does not support images?\b/i, lacking("image")],
  // Gateways and vendors of the same format.
  [/^(?:this|the) model does not support (?:image|vision)/i, lacking("image")],
  [/^(?:this|the) model does not support audio/i, lacking("audio")],
  [/^(?:this|the) model does not support video/i, lacking("video")],
  [/^(?:this|the) model does not support multimodal/i, lacking("media")],
  [/^no endpoints found that support image input/i, lacking("image")], // OpenRouter

  // llama.cpp, tools/server (update_slots), the second and the third as HTTP 500.
  [/^(?:the )?request (?:\(\d+ tokens\) )?exceeds the available context size/i, TOO_LONG],
  [/^context size has been exceeded/i, TOO_LONG],
  [/^input (?:\(\d+ tokens\) )?is too large to process/i, TOO_LONG],
  // vLLM, vllm/entrypoints/openai.
  [/^this model's maximum context length is/i, TOO_LONG],
  // SGLang, managers/tokenizer_manager.py and utils.py.
  [/^the input \(\d+ tokens\) is longer than the model's context length/i, TOO_LONG],
  [/^requested token count exceeds the model's maximum context length/i, TOO_LONG],
  // Ollama, server/routes.go and llm/server.go, as HTTP 400 or 500.
  [/^(?:the )?input (?:length )?exceeds (?:the |maximum )?context length/i, TOO_LONG],
  [/^input after truncation exceeds maximum context length/i, TOO_LONG],
  [/^prompt too long; exceeded max context length/i, TOO_LONG],
  // LM Studio.
  [/^(?:error: )?(?:the number of tokens to keep|trying to keep the first \d+ tokens when context)/i, TOO_LONG],

  // llama.cpp, tools/server, std::runtime_error and so HTTP 500: what stands in the request cannot be read, or not together.
  [/^failed to load image or audio file/i, MALFORMED],
  [/^failed to download (?:image|file)/i, MALFORMED],
  [/^invalid image_url\.url|^image_url\.url must be base64|^input_audio\.format must be/i, MALFORMED],
  [/^unsupported content\[\]\.type/i, MALFORMED],
  [/^expected '(?:messages|content)' to be|^'messages' is required|^"prompt" is required/i, MALFORMED],
  [/^all non-assistant messages must contain|^assistant message must contain/i, MALFORMED],
  [/^cannot use (?:both json_schema and grammar|custom grammar constraints with tools)/i, MALFORMED],
  [/^(?:only one completion choice is allowed|only no echo is supported|unsupported param: )/i, MALFORMED],
  [/^response_format type must be one of/i, MALFORMED],
  [/^(?:tools|tool_choice) param requires --jinja/i, MALFORMED],
  [/^cannot have 2 or more assistant messages|^assistant response prefill is incompatible/i, MALFORMED],
  [/^(?:top_logprobs requires logprobs|logprobs is not supported with tools)/i, MALFORMED],
  [/^(?:failed to parse (?:grammar|messages)|json schema conversion failed)/i, MALFORMED],
  [/^conversation roles must alternate/i, MALFORMED], // of chat templates
  // Ollama, as HTTP 500 where a runner says it.
  [/^(?:failed to (?:create new sequence|process inputs): )*(?:image: unknown format|invalid image input)/i, MALFORMED],
  [/^illegal base64 data/i, MALFORMED],
];

const POLICY: RequestFault = { code: "content_policy_violation" };

/** Refusals of a request that have the status of a refused credential. */
const NOT_OF_CREDENTIALS: typeof WORDINGS = [
  [/^content violates usage guidelines/i, POLICY], // xAI, as HTTP 403
  [/^(?:the )?(?:requested model|\S{1,200}) requires moderation\b/i, POLICY], // OpenRouter, as HTTP 403
];

/** The same of headers by which a client chooses an organisation or a project of the operator's account. */
const OF_ORGANISATION: typeof WORDINGS = [
  [/^openai-(?:organization|project) header should match/i, MALFORMED], // OpenAI, as HTTP 401
  [/^no such (?:organization|project)\b/i, MALFORMED],
];

/** How much of a message is looked at. */
const MAX_LOOKED_AT = 512;

/** Undefined: nothing is known of such words. */
export function requestFault(message: string): RequestFault | undefined {
  return faultIn(WORDINGS, message);
}

/**
 * The same of an answer that seems to refuse the gateway's credential.
 * @param hasChosen - whether headers of the client went along that choose the organisation
 */
export function requestFaultBehind401(message: string, hasChosen: boolean): RequestFault | undefined {
  return faultIn(NOT_OF_CREDENTIALS, message) ?? (hasChosen ? faultIn(OF_ORGANISATION, message) : undefined);
}

function faultIn(wordings: typeof WORDINGS, message: string): RequestFault | undefined {
  const start = message.trimStart().slice(0, MAX_LOOKED_AT);
  return wordings.find(([words]) => words.test(start))?.[1];
}
