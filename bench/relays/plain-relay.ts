// A server and calls to the upstream, with no duties: whole answers are read whole, streams go on piece by piece.

import { type Calls, isStream, readWhole, streamBody } from "./calls.ts";

export function relayCalls(port: number, calls: Calls): void {
  const headers = { "content-type": "application/json" };
  Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.bytes();
      const call = calls(new URL(request.url).pathname, { method: "POST", headers, body });
      const answer = await call.answer;
      const head = {
        status: answer.status,
        headers: { "content-type": answer.header("content-type") ?? "application/json" },
      };
      return isStream(answer)
        ? new Response(streamBody(call, answer, undefined), head)
        : new Response(await readWhole(answer), head);
    },
  });
}
