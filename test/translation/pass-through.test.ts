// Same format on both sides: every fixture passes through the running gateway byte for byte, whole and streamed.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/start-gateway.ts";
import { asks } from "./features/words.ts";
import { FIXTURES, type Fixture } from "./fixtures.ts";
import { addressed, CLIENTS } from "./run.ts";

/** No client speaks the others. */
const PASSED = FIXTURES.filter(({ format }) => format !== "converse");

/** Its thoughts stand in `reasoning`: chat clients get them as `reasoning_content`, too. */
const TOLD_TWICE = "by-hand/local-usage-everywhere";

/** The pieces that a stream arrives in; no multiple of anything. */
const PIECE_BYTES = 613;

let server: Server;
let gateway: Gateway;
let served: Fixture | undefined;
let received = "";

beforeAll(async () => {
  server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      received = Buffer.concat(chunks).toString();
      if (served === undefined) return void outgoing.writeHead(500).end();
      if (!received.includes('"stream":true') && !incoming.url?.includes("alt=sse")) {
        return void outgoing.writeHead(200, { "content-type": "application/json" }).end(served.whole);
      }
      outgoing.writeHead(200, { "content-type": "text/event-stream" });
      const { stream } = served;
      for (let start = 0; start < stream.length; start += PIECE_BYTES) {
        outgoing.write(stream.subarray(start, start + PIECE_BYTES));
      }
      outgoing.end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  gateway = await startGateway({
    config: {
      health_checks: { enabled: false },
      retry: { max_attempts: 1 },
      backends: [
        { name: "chat", type: "openai", protocols: ["chat"], url, models: ["chat"] },
        { name: "local", type: "vllm", url, models: ["local"] },
        { name: "responses", type: "openai", protocols: ["responses"], url, models: ["responses"] },
        { name: "messages", type: "anthropic", url, models: ["messages"] },
        { name: "generate-content", type: "gemini", url, models: ["generate-content"] },
      ],
    },
  });
});

afterAll(async () => {
  await gateway.close();
  server.close();
});

describe.each(PASSED.map((fixture) => [fixture.name, fixture] as const))("%s", (_, fixture) => {
  const client = CLIENTS.find(({ name }) => name === (fixture.format === "local" ? "chat" : fixture.format));
  if (client === undefined) throw new Error(`no client of the format ${fixture.format}`);

  test.each([false, true])("streamed: %j", async (streamed) => {
    served = fixture;
    const { path, sent } = addressed(client, client.write(asks(), fixture.format, streamed), streamed);
    const body = JSON.stringify(sent);
    const response = await gateway.post(path, body, { headers: client.headers });
    expect(response.status).toBe(200);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const expected = Buffer.from(streamed ? fixture.stream : fixture.whole).toString();
    const text = Buffer.from(bytes).toString();
    if (fixture.name !== TOLD_TWICE) expect(text).toBe(expected);
    else if (streamed) expect(text.replaceAll(/,"reasoning_content":"[^"]*"/g, "")).toBe(expected);
    else
      expect(JSON.parse(text, (name, value) => (name === "reasoning_content" ? undefined : value))).toEqual(
        JSON.parse(expected),
      );
    expect(received).toBe(body);
  });
});
