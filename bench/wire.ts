// What the load generator and the upstream agree on: models whose name says the answer, and the bytes of the answers.

export type Answer = { kind: "plain"; bytes: number } | { kind: "stream"; chunks: number; everyMs: number };

const PLAIN_MODEL = /^plain-(\d+)$/;
const STREAM_MODEL = /^stream-(\d+)-every-(\d+)ms$/;

/** The plan travels in the model's name, because that survives every proxy and every translation. */
export function modelFor(answer: Answer): string {
  return answer.kind === "plain" ? `plain-${answer.bytes}` : `stream-${answer.chunks}-every-${answer.everyMs}ms`;
}

export function answerFor(model: string): Answer | undefined {
  const plain = PLAIN_MODEL.exec(model);
  if (plain) return { kind: "plain", bytes: Number(plain[1]) };
  const stream = STREAM_MODEL.exec(model);
  if (stream) return { kind: "stream", chunks: Number(stream[1]), everyMs: Number(stream[2]) };
  return undefined;
}

/** A chat completion of exactly so many bytes. */
export function plainBody(bytes: number): string {
  const withContent = (content: string) =>
    JSON.stringify({
      id: "chatcmpl-bench",
      object: "chat.completion",
      created: 1_700_000_000,
      model: modelFor({ kind: "plain", bytes }),
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    });
  return withContent("x".repeat(Math.max(0, bytes - withContent("").length)));
}

/** One event of a streamed answer, about 0.2 KB like a token of a real engine. */
export const STREAM_CHUNK = `data: ${JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion.chunk",
  created: 1_700_000_000,
  model: "bench",
  choices: [{ index: 0, delta: { content: "hello world " }, finish_reason: null }],
})}\n\n`;

export const STREAM_END = "data: [DONE]\n\n";

/** How many payload bytes a whole answer has; a client that gets another number got a broken answer. */
export function payloadBytes(answer: Answer): number {
  return answer.kind === "plain"
    ? plainBody(answer.bytes).length
    : answer.chunks * STREAM_CHUNK.length + STREAM_END.length;
}
