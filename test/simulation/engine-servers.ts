// Engines with continuous batching as HTTP servers that stream tokens, in a process of their own: prints a line with their
// ports, and ends with its standard input. Its arguments: how many, and their shape as JSON.

import { BatchingEngine, type EngineRequest, type EngineShape } from "./batching-engine.ts";
import { RealTime } from "./real-time.ts";

const [count, shape] = process.argv.slice(2);
const time = new RealTime();

const event = (fields: object) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], ...fields })}\n\n`;
const TOKEN = event({ choices: [{ index: 0, delta: { role: "assistant", content: "word " }, finish_reason: null }] });
const FINISH = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });

/** Clients say what a request is made of: tokens of its input, cached ones, tokens of its output. */
function usageEnd([input = 0, cached = 0, output = 0]: readonly number[]): string {
  const usage = {
    ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    prompt_tokens_details: { cached_tokens: cached },
  };
  return `${FINISH}${event({ usage })}data: [DONE]\n\n`;
}

function answer(engine: BatchingEngine, sizes: readonly number[]): Response {
  const [input = 0, cached = 0, output = 0] = sizes;
  const encoder = new TextEncoder();
  let asked: EngineRequest;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      asked = {
        ...{ inputTokens: input - cached, outputTokens: output, tokens: 0 },
        token: () => controller.enqueue(encoder.encode(TOKEN)),
        done() {
          controller.enqueue(encoder.encode(usageEnd(sizes)));
          controller.close();
        },
      };
      engine.submit(asked);
    },
    cancel: () => engine.cancel(asked),
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

const servers = Array.from({ length: Number(count) }, () => {
  const engine = new BatchingEngine(time, JSON.parse(shape ?? "") as EngineShape);
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      if (request.method !== "POST") return Response.json({ object: "list", data: [{ id: "m", object: "model" }] });
      const { user } = (await request.json()) as { user: string };
      return answer(engine, user.split(" ").map(Number));
    },
  });
});
process.stdout.write(`${JSON.stringify(servers.map(({ port }) => port))}\n`);
process.stdin.on("close", () => process.exit(0)).resume();
