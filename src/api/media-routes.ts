// The endpoints for what is not text alone: pictures, speech, transcriptions, and moderations.

import type { DescribedEndpoint } from "../openapi/operation.ts";
import { readRecordingRequest, readSpeechRequest } from "../protocols/audio/read-request.ts";
import { readImageEditRequest, readImageVariationRequest } from "../protocols/images/read-edit-request.ts";
import { readImageRequest } from "../protocols/images/read-request.ts";
import { readModerationRequest } from "../protocols/moderations.ts";
import { AUDIO_SCHEMAS } from "./audio-schemas.ts";
import { generating } from "./generating.ts";
import type { GenerationParts } from "./generation.ts";
import { IMAGE_SCHEMAS } from "./image-schemas.ts";

const MEBIBYTE = 1024 * 1024;

/** In bytes. Recordings may be longer than OpenAI's own API takes (25 MB). */
const BODY_LIMITS = { images: 8 * MEBIBYTE, edits: 32 * MEBIBYTE, speech: 8 * MEBIBYTE, recordings: 64 * MEBIBYTE };

export const MEDIA_SCHEMAS = { ...IMAGE_SCHEMAS, ...AUDIO_SCHEMAS };

export function mediaRoutes(parts: GenerationParts): DescribedEndpoint[] {
  return [...imageRoutes(parts), ...audioRoutes(parts)];
}

function imageRoutes(parts: GenerationParts): DescribedEndpoint[] {
  return [
    ...generating(["/v1/images/generations"], parts, {
      operation: "images",
      maxBodyBytes: BODY_LIMITS.images,
      read: readImageRequest,
      id: "createImage",
      summary: "Pictures of a prompt",
      description: "Models that draw: see docs/images.md. A stream ends with the event `done`.",
      request: "ImageRequest",
      reply: "ImagesResponse",
      events: "ImageEvent",
      example: { model: "demo-image", prompt: "A signal box at night" },
    }),
    ...generating(["/v1/images/edits"], parts, {
      operation: "image-edits",
      maxBodyBytes: BODY_LIMITS.edits,
      read: { form: readImageEditRequest },
      id: "editImage",
      summary: "A picture, changed as a prompt says",
      takes: "multipart/form-data",
      request: "ImageEditRequest",
      reply: "ImagesResponse",
      events: "ImageEvent",
    }),
    ...generating(["/v1/images/variations"], parts, {
      operation: "image-variations",
      maxBodyBytes: BODY_LIMITS.edits,
      read: { form: readImageVariationRequest },
      id: "varyImage",
      summary: "Variations of a picture",
      takes: "multipart/form-data",
      request: "ImageVariationRequest",
      reply: "ImagesResponse",
    }),
  ];
}

function audioRoutes(parts: GenerationParts): DescribedEndpoint[] {
  return [
    ...generating(["/v1/audio/speech"], parts, {
      operation: "speech",
      maxBodyBytes: BODY_LIMITS.speech,
      read: readSpeechRequest,
      id: "createSpeech",
      summary: "A text, spoken",
      description: "The bytes of the sound file as the backend makes them, or events with `stream_format: sse`.",
      request: "SpeechRequest",
      gives: "application/octet-stream",
      events: "SpeechEvent",
      example: { model: "tts-1", input: "Mind the gap.", voice: "alloy" },
    }),
    ...generating(["/v1/audio/transcriptions"], parts, {
      operation: "transcriptions",
      maxBodyBytes: BODY_LIMITS.recordings,
      read: { form: readRecordingRequest },
      id: "createTranscription",
      summary: "What is said in a recording",
      takes: "multipart/form-data",
      request: "TranscriptionRequest",
      reply: "Transcription",
      gives: "text/plain",
      events: "TranscriptionEvent",
    }),
    ...generating(["/v1/audio/translations"], parts, {
      operation: "translations",
      maxBodyBytes: BODY_LIMITS.recordings,
      read: { form: readRecordingRequest },
      id: "createTranslation",
      summary: "What is said in a recording, in English",
      takes: "multipart/form-data",
      request: "TranslationRequest",
      reply: "Transcription",
      gives: "text/plain",
      events: "TranscriptionEvent",
    }),
    ...generating(["/v1/moderations"], parts, {
      operation: "moderations",
      maxBodyBytes: BODY_LIMITS.speech,
      read: readModerationRequest,
      id: "createModeration",
      summary: "Whether texts or pictures may do harm",
      request: "ModerationRequest",
      reply: "Moderation",
      example: { model: "omni-moderation-latest", input: "Hello!" },
    }),
  ];
}
