// What the load generator and the upstream agree on: models whose name says the answer.

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
