// The start of a gateway with several workers on a port that its clients know already, and ask all the time.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

/** Each loses a connection in one of two starts where the port has a listener that is closed again. */
const STARTS = 6;
const CALLERS = 24;
const ANSWERED = 500;

/** Asks all the time until it is stopped, each request on a connection of its own. */
function askAllTheTime(ask: () => Promise<Response>) {
  const seen = new Map<string, number>();
  let isOver = false;
  const asking = Array.from({ length: CALLERS }, async () => {
    while (!isOver) {
      const how = await ask()
        .then(async (response) => (await response.text()) && String(response.status))
        .catch((error: { code?: string }) => error.code ?? String(error));
      seen.set(how, (seen.get(how) ?? 0) + 1);
    }
  });
  return {
    seen,
    async stop() {
      isOver = true;
      await Promise.all(asking);
    },
  };
}

test("whoever connects while workers start is refused or answered, never reset", async () => {
  const backend = bed.backend({ answer: chat("hello") });
  for (let round = 0; round < STARTS; round++) {
    const port = await freePort();
    const alone = { keepalive: false, headers: { connection: "close" } };
    const { seen, stop } = askAllTheTime(() => fetch(`http://127.0.0.1:${port}/health`, alone));
    const server = { bind_address: `127.0.0.1:${port}`, workers: 2 };
    const gateway = await bed.process({
      config: { server, backends: [{ name: "a", url: backend.url, models: ["m"] }] },
    });
    await waitFor("requests are answered", () => (seen.get("200") ?? 0) >= ANSWERED);
    await stop();
    expect([...seen.keys()].sort()).toEqual(["200", "ECONNREFUSED"]);
    await gateway.close();
  }
});

test("whoever comes by a unix socket while workers start waits for them", async () => {
  const backend = bed.backend({ answer: chat("hello") });
  const server = { bind_address: ["127.0.0.1:0", "unix:gateway.sock"], workers: 2 };
  const config = { server, backends: [{ name: "a", url: backend.url, models: ["m"] }] };
  const gateway = await bed.process({ config });
  const unix = join(gateway.folder, "gateway.sock");
  await gateway.stop();
  const { seen, stop } = askAllTheTime(() =>
    fetch("http://localhost/health", { unix, keepalive: false } as RequestInit),
  );
  await gateway.restart();
  await waitFor("requests are answered", () => (seen.get("200") ?? 0) >= ANSWERED);
  await stop();
  // Between its name and its listener a socket refuses; it never resets.
  expect([...seen.keys()].filter((key) => key !== "ECONNREFUSED").sort()).toEqual(["200", "ENOENT"]);
  await gateway.close();
});
