// The server half alone: parses the body and answers at once, without an upstream.

import { plainBody } from "../formats.ts";
import { answerFor } from "../wire.ts";

export function answerItself(port: number): void {
  const answers = new Map<number, string>();
  const headers = { "content-type": "application/json" };
  Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 0,
    async fetch(request) {
      const { model } = (await request.json()) as { model: string };
      const plan = answerFor(model);
      if (plan?.kind !== "plain") return new Response("plain answers only", { status: 400 });
      const answer = answers.get(plan.bytes) ?? plainBody("chat", plan.bytes);
      answers.set(plan.bytes, answer);
      return new Response(answer, { headers });
    },
  });
}
