// A reader of the live events can see that its connection is alive, also while nothing happens.

import { expect, test } from "bun:test";
import { systemClock } from "../lib/clock.ts";
import { Happenings } from "../stats/happenings.ts";
import { createEventHub } from "./event-hub.ts";

test("a heartbeat is an event with the time, again and again", async () => {
  const hub = createEventHub({
    happenings: new Happenings(),
    stories: { startedAt: () => 0 },
    store: { subscribe: () => () => {} },
    clock: systemClock,
    log: { warn() {} },
    heartbeatMs: 5,
  });
  const server = Bun.serve({ port: 0, fetch: () => new Response(hub.listen({ isStillIn: () => true })) });
  const response = await fetch(server.url);
  let text = "";
  for await (const bytes of response.body as ReadableStream<Uint8Array>) {
    text += new TextDecoder().decode(bytes);
    if (text.split("event: heartbeat").length > 2) break;
  }
  const [, data = ""] = /event: heartbeat\ndata: (.*)\n\n/.exec(text) ?? [];
  expect(Math.abs(Date.parse(JSON.parse(data).at) - Date.now())).toBeLessThan(60_000);
  await server.stop(true);
});
