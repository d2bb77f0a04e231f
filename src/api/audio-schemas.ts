// Requests and answers of speech, transcriptions and moderations as JSON Schema: requests say what the gateway checks, answers
// what clients can rely on.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyObject,
  anyOf,
  described,
  lenientRequest,
  list,
  oneOfTexts,
  open,
  type Schemas,
  text,
} from "../openapi/json-schema.ts";

const modelId = described({ type: "string", minLength: 1 }, "Id of a model, see GET /v1/models.");
const file: JsonSchema = {
  type: "string",
  contentMediaType: "application/octet-stream",
  description: "The recording.",
};

const transcribed = {
  ...{ language: text, prompt: text, response_format: text, temperature: text },
  stream: oneOfTexts("true", "false"),
};

export const AUDIO_SCHEMAS = {
  SpeechRequest: lenientRequest(
    { model: modelId, input: { type: "string", minLength: 1 } },
    { voice: anyOf(text, anyObject), instructions: text, response_format: text, stream_format: text },
  ),
  SpeechEvent: described(open({ type: text }), "speech.audio.delta, and speech.audio.done at the end."),
  TranscriptionRequest: open({ file, model: modelId }, transcribed),
  TranslationRequest: open({ file, model: modelId }, transcribed),
  Transcription: open({ text }),
  TranscriptionEvent: described(
    open({}),
    "transcript.text.delta, and transcript.text.done at the end; vLLM sends chunks.",
  ),
  ModerationRequest: lenientRequest(
    { input: anyOf({ type: "string", minLength: 1 }, { ...list(anyOf(text, anyObject)), minItems: 1 }) },
    { model: described(text, "Default: omni-moderation-latest.") },
  ),
  Moderation: open({ results: list(anyObject) }),
} satisfies Schemas;
