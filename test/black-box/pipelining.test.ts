// What the runtime's HTTP server does with bytes behind a request whose answer is not there yet. This is no wish: Bun 1.4.5
// has one state for the answer of a connection (oven-sh/bun#38128), and takes an empty line for a malformed request (#33634).
// The day these tests fail, turn them round (both requests are answered, in order), and change what docs/api.md says of "one
// request at a time".

import { expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { within } from "../support/wait-for.ts";

const bed = createTestBed();
const BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
const POST =
  "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
  `Content-Length: ${BODY.length}\r\n\r\n${BODY}`;

async function start(): Promise<Gateway> {
  const backend = bed.backend({ answer: { ...chat("hello"), beforeHeadersMs: 20 } });
  return await bed.gateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
}

/** All that comes until the gateway closes the connection. */
async function answersTo(gateway: Gateway, bytes: string): Promise<string> {
  const connection = await RawConnection.open(gateway.port);
  connection.write(bytes);
  await within("the connection is closed", connection.closed);
  return connection.received.toString("latin1");
}

test("bytes behind a request end it without its answer, and harm nobody else", async () => {
  const gateway = await start();
  expect(await answersTo(gateway, POST + POST)).toBe("");
  expect(await answersTo(gateway, `${POST}\r\n`)).toBe("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  await gateway.waitUntilIdle();
  expect(await gateway.backend("a")).toMatchObject({ circuit: "closed", failed_requests: 0 });
  const connection = await RawConnection.open(gateway.port);
  for (let request = 0; request < 2; request++) {
    connection.write(POST);
    expect((await connection.response()).status).toBe(200);
  }
  await gateway.close();
});
