// Servers of hooks that misbehave: at most the request that they were asked about notices it.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { type RawServer, type RawServerConnection, startRawServer } from "../support/raw-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const MEBIBYTE = 1024 * 1024;

const bed = createTestBed();
const backend = bed.backend({ answer: () => chat("hello") });

function answerOf(body: string | Uint8Array, head = ""): Uint8Array {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${head}${length}\r\n\r\n`), Buffer.from(body)]);
}

const PASS = answerOf(JSON.stringify({ verdict: "pass" }));
const refusal = (more: object) =>
  JSON.stringify({ verdict: "refuse", status: 451, code: "no", message: "No.", ...more });
const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const changed = (metadata: string) =>
  `{"verdict":"change","body":{"model":"m","messages":[{"role":"user","content":"hi"}],"metadata":{"a":${metadata}}}}`;

type Misbehaviour = (connection: RawServerConnection) => void;
const sends =
  (...parts: (string | Uint8Array)[]): Misbehaviour =>
  ({ send }) => {
    for (const part of parts) send(part);
  };
const thenCloses =
  (text: string): Misbehaviour =>
  ({ send, socket }) => {
    send(text);
    socket.end();
  };

/** Until the client takes no more. */
const flood: Misbehaviour = ({ socket }) => {
  const piece = Buffer.alloc(MEBIBYTE, " ");
  socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n");
  const pump = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", pump);
  pump();
};

/** What the server does with the request, and what the story says of it. */
const MISBEHAVIOURS: Readonly<Record<string, [Misbehaviour, string]>> = {
  "headers without an end": [sends("HTTP/1.1 200 OK\r\n", `X: ${"y".repeat(MEBIBYTE)}\r\n`), "could not be reached"],
  "a body without an end": [sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"), "in time"],
  "2 GB": [flood, "larger than"],
  "a redirect": [sends("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), "HTTP 302"],
  "another protocol": [sends("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), ""],
  "bad chunks": [sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"), "could not be reached"],
  "two lengths": [
    sends("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 0\r\n\r\n{ }"),
    "could not be reached",
  ],
  "half an answer": [
    thenCloses('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"verdict":"pass"}'),
    "could not be reached",
  ],
  "no HTTP": [thenCloses("hello\r\n\r\n"), "could not be reached"],
  HTML: [sends(answerOf("<html>")), "no JSON object"],
  "no UTF-8": [sends(answerOf(new Uint8Array([0xff, 0xfe, 0]))), "no JSON object"],
  "a bomb in gzip": [
    sends(answerOf(gzipSync(Buffer.alloc(64 * MEBIBYTE)), "Content-Encoding: gzip\r\n")),
    "compressed",
  ],
  "a pass as deep as a stack": [sends(answerOf(`{"verdict":"pass","x":${nested(100_000)}}`)), "deeper than 256"],
  "a state as deep as a stack": [sends(answerOf(`{"verdict":"pass","state":${nested(100_000)}}`)), "deeper than 256"],
  "a body as deep as a stack": [sends(answerOf(changed(nested(100_000)))), "deeper than 256"],
  "too many parts": [sends(answerOf(changed(`[${"[],".repeat(600_000)}0]`))), "more than 500000 objects"],
  "status 99": [sends(answerOf(refusal({ status: 99 }))), "status"],
  "status 1000": [sends(answerOf(refusal({ status: 1000 }))), "status"],
  "a status beyond the largest number": [sends(answerOf(refusal({}).replace("451", "1e400"))), "status"],
  "a code with a line break": [sends(answerOf(refusal({ code: "a\r\nX: y" }))), "code"],
  "an answer of nothing": [sends(answerOf('{"verdict":"answer","result":{"parts":[{"type":"image"}]}}')), "source"],
};

const servers: RawServer[] = [];
let gateway: Gateway;
let answers: Misbehaviour = sends(PASS);

beforeAll(async () => {
  const serve = async (onRequest: Misbehaviour) => {
    const server = await startRawServer({ onRequest });
    servers.push(server);
    return server.url;
  };
  const hooks = await Promise.all(
    Object.entries(MISBEHAVIOURS).map(async ([name, [misbehave, expected]], index) => ({
      name: `h${index}`,
      url: await serve(misbehave),
      events: ["request" as const],
      timeout: expected === "in time" ? "200ms" : "20s",
      match: { model: name },
    })),
  );
  const url = await serve((connection) => answers(connection));
  const model = ["one at a time", "byte by byte"];
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "one", url: backend.url, models: ["others", ...model, ...Object.keys(MISBEHAVIOURS)] }],
      health_checks: { enabled: false },
      hooks: [...hooks, { name: "last", url, events: ["request"], timeout: "20s", match: { model } }],
    },
  });
});

afterAll(async () => {
  for (const server of servers) await server[Symbol.asyncDispose]();
});

/** The status, and what the story says of its hook. */
async function told(model: string) {
  const response = await gateway.chat({ model });
  await response.text();
  const id = response.headers.get("x-signalbox-request-id");
  const story = (await (await gateway.fetch(`/admin/requests/${id}`)).json()) as { steps: { detail?: string }[] };
  return { status: response.status, detail: story.steps.map(({ detail = "" }) => detail).join() };
}

test.each(Object.keys(MISBEHAVIOURS))("a server of a hook that sends %s fails one request", async (model) => {
  const [, expected] = MISBEHAVIOURS[model] ?? [];
  const failing = told(model);
  expect((await gateway.chat({ model: "others" })).status).toBe(200);
  const { status, detail } = await failing;
  expect([status, detail]).toEqual([503, expect.stringContaining(expected ?? "")]);
});

test("an answer that comes byte by byte is a verdict", async () => {
  answers = ({ send }) => {
    let at = 0;
    const next = () => {
      send(PASS.subarray(at, ++at));
      if (at < PASS.length) setImmediate(next);
    };
    next();
  };
  expect((await told("byte by byte")).status).toBe(200);
});

test("an answer behind an answer is not taken for that of the next request", async () => {
  answers = sends(PASS, answerOf(refusal({})));
  expect((await told("one at a time")).status).toBe(200);
  answers = sends(PASS);
  expect((await told("one at a time")).status).toBe(200);
});

test("a connection that the server has closed meanwhile fails no request", async () => {
  const server = servers.at(-1) as RawServer;
  answers = ({ send, socket }) => {
    send(PASS);
    setImmediate(() => socket.destroy());
  };
  expect((await told("one at a time")).status).toBe(200);
  answers = sends(PASS);
  await waitFor("the connection is closed", () => server.connections.every(({ socket }) => socket.destroyed));
  expect((await told("one at a time")).status).toBe(200);
  const { length } = server.connections;
  for (let times = 0; times < 3; times++) expect((await told("one at a time")).status).toBe(200);
  expect(server.connections).toHaveLength(length);
});
