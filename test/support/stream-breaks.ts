// Streams that break off, in every way in which a backend can.

import type { Answer } from "./fake-backend.ts";
import { eventStream, sseEvent } from "./openai-answers.ts";

/** Ways in which a backend of the chat format breaks off once all events were sent. */
export const STREAM_BREAKS: Record<string, (sent: readonly string[]) => Answer> = {
  "an orderly end of the connection": (sent) =>
    eventStream([...sent, "x"], { breakAfterBytes: size(sent), breakWith: "fin", betweenChunksMs: 20 }),
  "a reset": (sent) =>
    eventStream([...sent, "x"], { breakAfterBytes: size(sent), breakWith: "reset", betweenChunksMs: 20 }),
  "an end without finish and [DONE]": (sent) => eventStream(sent),
  "half an event": (sent) =>
    eventStream([...sent, sseEvent({ choices: [{ index: 0, delta: { content: "LOST" } }] }).slice(0, 30)]),
  "an error in band": (sent) =>
    eventStream([...sent, sseEvent({ error: { message: "cuda error", code: 500 } }), "data: [DONE]\n\n"]),
  "an error in band in one piece with text": (sent) =>
    eventStream([sent.join("") + sseEvent({ error: { message: "cuda error", code: 500 } })]),
  silence: (sent) =>
    eventStream([...sent, "x"], {
      beforeChunk: (index) => (index === sent.length ? new Promise(() => {}) : undefined),
    }),
};

export function size(pieces: readonly string[]): number {
  return Buffer.byteLength(pieces.join(""));
}
