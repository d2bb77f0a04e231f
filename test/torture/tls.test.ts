// TLS to backends: who is let in by which certificate, what is told of those who are not, and the same client behind it.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { BackendCall } from "../../src/backends/transport.ts";
import type { BackendTls } from "../../src/upstream/backend-tls.ts";
import { type Authority, createAuthority, type ServerCertificate, selfSigned } from "../support/certificates.ts";
import { waitFor, within } from "../support/wait-for.ts";
import { answerOf, GOOD_ANSWERS } from "./answers.ts";
import { Collector, headOf, type Outcome, outcomeOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { filler, type ScriptedServerOptions, turns } from "./server-connection.ts";
import { ask, backendAt, newClient, type Question, type TestClient } from "./subject.ts";

const MEBIBYTE = 1024 * 1024;

interface Certificates {
  authority: Authority;
  valid: ServerCertificate;
  ofOtherName: ServerCertificate;
  expired: ServerCertificate;
  ownSigned: ServerCertificate;
}

const NAMES = ["engine.test", "127.0.0.1"];

let certificates: Certificates;
const clients: TestClient[] = [];
beforeAll(() => {
  const authority = createAuthority();
  certificates = {
    authority,
    valid: authority.issue(NAMES),
    ofOtherName: authority.issue(["other.test"]),
    expired: authority.issue(NAMES, { isExpired: true }),
    ownSigned: selfSigned(NAMES),
  };
});
afterAll(() => {
  for (const client of clients) client.close();
});

function clientWith(tls?: BackendTls): TestClient {
  const client = newClient(tls === undefined ? {} : { tls });
  clients.push(client);
  return client;
}

function serverWith(tls: { cert: string; key: string }, more: Partial<ScriptedServerOptions> = {}): ScriptedServer {
  return new ScriptedServer({ script: () => [answerOf("hello")], tls, ...more });
}

async function outcomeAt(server: ScriptedServer, client: TestClient, question: Question = {}): Promise<Outcome> {
  return await within("the end of a call", outcomeOf(ask(client.transport, backendAt(server.url), question)), 20_000);
}

/** Hands bytes on to a port and back, until it ends its connections in order, as somebody between two who speak TLS can. */
async function startCutter(port: number): Promise<AsyncDisposable & { port: number; cut(): void }> {
  const clients: Socket[] = [];
  const servers: Socket[] = [];
  const relay = createServer((socket) => {
    const onward = connect(port, "127.0.0.1");
    clients.push(socket);
    servers.push(onward);
    socket.on("error", () => {}).pipe(onward);
    onward.on("error", () => {}).pipe(socket);
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  return {
    port: (relay.address() as AddressInfo).port,
    cut() {
      for (const onward of servers) onward.unpipe();
      for (const socket of clients) socket.end();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of [...clients, ...servers]) socket.destroy();
      await new Promise((resolve) => relay.close(resolve));
    },
  };
}

/** What a server shows, and what a client of these settings makes of it. */
interface Case {
  cert: string;
  key: string;
  tls?: BackendTls;
  /** Of the client's error; undefined: it trusts the server. */
  code?: RegExp;
}

const CASES: readonly [string, (of: Certificates) => Case][] = [
  [
    "a chain to the authority that is trusted",
    ({ valid, authority }) => ({ cert: valid.chain, key: valid.key, tls: { ca: authority.root } }),
  ],
  [
    "a chain to an authority that is not",
    ({ valid }) => ({ cert: valid.chain, key: valid.key, code: /^UNABLE_TO_GET_ISSUER_CERT/ }),
  ],
  [
    "a chain to another authority than the one that is trusted",
    ({ valid, ownSigned }) => ({
      cert: valid.chain,
      key: valid.key,
      tls: { ca: ownSigned.leaf },
      code: /^UNABLE_TO_GET_ISSUER_CERT/,
    }),
  ],
  [
    "another name",
    ({ ofOtherName, authority }) => ({
      cert: ofOtherName.chain,
      key: ofOtherName.key,
      tls: { ca: authority.root },
      code: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    }),
  ],
  [
    "another name, which is the one that is awaited",
    ({ ofOtherName, authority }) => ({
      cert: ofOtherName.chain,
      key: ofOtherName.key,
      tls: { ca: authority.root, serverName: "other.test" },
    }),
  ],
  [
    "the name in the address, where another is awaited",
    ({ valid, authority }) => ({
      cert: valid.chain,
      key: valid.key,
      tls: { ca: authority.root, serverName: "other.test" },
      code: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    }),
  ],
  [
    "the name that is awaited, by an authority that is not trusted",
    ({ ofOtherName }) => ({
      cert: ofOtherName.chain,
      key: ofOtherName.key,
      tls: { serverName: "other.test" },
      code: /^UNABLE_TO_GET_ISSUER_CERT/,
    }),
  ],
  [
    "a certificate that has expired",
    ({ expired, authority }) => ({
      cert: expired.chain,
      key: expired.key,
      tls: { ca: authority.root },
      code: /^CERT_HAS_EXPIRED$/,
    }),
  ],
  [
    "no intermediate",
    ({ valid, authority }) => ({
      cert: valid.leaf,
      key: valid.key,
      tls: { ca: authority.root },
      code: /^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/,
    }),
  ],
  [
    "a certificate of its own",
    ({ ownSigned }) => ({ cert: ownSigned.leaf, key: ownSigned.key, code: /^DEPTH_ZERO_SELF_SIGNED_CERT$/ }),
  ],
  [
    "a certificate of its own that is trusted",
    ({ ownSigned }) => ({ cert: ownSigned.leaf, key: ownSigned.key, tls: { ca: ownSigned.leaf } }),
  ],
];

describe("a server that shows", () => {
  test.each(CASES)("%s", async (_name, toCase) => {
    const { cert, key, tls, code } = toCase(certificates);
    using server = serverWith({ cert, key });
    const client = clientWith(tls);
    const outcome = await outcomeAt(server, client);
    if (code === undefined) {
      expect(outcome).toMatchObject({ end: "complete", status: 200, body: Buffer.from("hello") });
      return;
    }
    expect(outcome).toEqual({ end: "no answer", code: expect.stringMatching(code) });
    await turns(20);
    // Not a byte of the request, which has the credential in it.
    expect(server.requests).toHaveLength(0);
    expect(server.connections.map(({ receivedBytes }) => receivedBytes).filter((bytes) => bytes > 0)).toEqual([]);
    await waitFor("the connection is closed", () => server.openConnections === 0);
  });
});

test("what one backend trusts is not trusted for another at the same address", async () => {
  using server = serverWith({ cert: certificates.valid.chain, key: certificates.valid.key });
  const tls: BackendTls = { ca: certificates.authority.root };
  const trusting = backendAt(server.url);
  const doubting = backendAt(server.url);
  const client = newClient({ tlsOf: (backend) => (backend === trusting ? tls : undefined) });
  clients.push(client);
  for (let each = 0; each < 3; each++) {
    expect(await outcomeOf(ask(client.transport, trusting))).toMatchObject({ end: "complete" });
    expect(await outcomeOf(ask(client.transport, doubting))).toMatchObject({ end: "no answer" });
  }
  expect(server.requests).toHaveLength(3);
});

describe("where nobody speaks TLS", () => {
  test("a server of plain HTTP, which answers with an error, is refused", async () => {
    using plain = new ScriptedServer({
      script: () => [],
      onOpen: () => ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"],
    });
    const call = ask(clientWith().transport, backendAt(plain.url.replace("http:", "https:")));
    expect(await within("the end of a call", headOf(call))).toMatchObject({ code: expect.any(String) });
    await waitFor("the connection is closed", () => plain.openConnections === 0);
  });

  test("a server that closes at once is refused", async () => {
    for (const ending of ["fin", "reset"] as const) {
      using plain = new ScriptedServer({ script: () => [], onOpen: () => [ending] });
      const call = ask(clientWith().transport, backendAt(plain.url.replace("http:", "https:")));
      expect(await within("the end of a call", headOf(call))).toMatchObject({ code: expect.any(String) });
    }
  });

  test("a server that never shakes hands is waited for, found not to connect, and left", async () => {
    using silent = new ScriptedServer(() => []);
    const call: BackendCall = ask(clientWith().transport, backendAt(silent.url.replace("http:", "https:")));
    const head = headOf(call);
    await waitFor("a connection", () => silent.connections.length > 0);
    expect(await within("an answer to the question", call.connects(50))).toBe(false);
    call.abort();
    expect(await within("the end of a call", head)).toMatchObject({ code: expect.any(String) });
    await waitFor("the connection is closed", () => silent.openConnections === 0);
  });

  test("a client without TLS is refused by a server with it", async () => {
    using server = serverWith({ cert: certificates.valid.chain, key: certificates.valid.key });
    const call = ask(clientWith().transport, backendAt(server.url.replace("https:", "http:")));
    expect(await within("the end of a call", headOf(call))).toMatchObject({ code: expect.any(String) });
    expect(server.requests).toHaveLength(0);
  });
});

describe("over TLS", () => {
  let client: TestClient;
  let tls: { cert: string; key: string };
  beforeAll(() => {
    client = clientWith({ ca: certificates.authority.root });
    tls = { cert: certificates.valid.chain, key: certificates.valid.key };
  });

  test("many requests share one connection", async () => {
    using server = serverWith(tls, { script: ({ target, body }) => [answerOf(`${target} ${body}`)] });
    for (let each = 0; each < 50; each++) {
      const outcome = await outcomeAt(server, client, { path: `/${each}`, body: `body ${each}` });
      expect(outcome).toMatchObject({ body: Buffer.from(`/${each} body ${each}`) });
    }
    expect(server.connections).toHaveLength(1);
    expect(server.violations).toEqual([]);
  });

  test("answers are read as they are without it", async () => {
    for (const { bytes, ending, method, outcome, name } of GOOD_ANSWERS) {
      if (outcome === "refused") continue;
      const middle = Math.floor(bytes.length / 2);
      const steps = [bytes.subarray(0, middle), { turns: 2 }, bytes.subarray(middle)];
      using server = serverWith(tls, { script: () => (ending === "keep" ? steps : [...steps, ending]) });
      const seen = await outcomeAt(server, client, method === undefined ? {} : { method });
      expect({ name, ...seen }).toMatchObject({
        name,
        end: "complete",
        status: outcome.status,
        body: Buffer.from(outcome.body),
      });
    }
  });

  test("a large request is written as the server takes it, and arrives whole", async () => {
    const body = filler(16 * MEBIBYTE);
    using server = serverWith(tls, { script: (request) => [answerOf(String(request.body.equals(body)))] });
    expect(await outcomeAt(server, client, { body })).toMatchObject({ end: "complete", body: Buffer.from("true") });
    expect(await outcomeAt(server, client, { body })).toMatchObject({ end: "complete", body: Buffer.from("true") });
    expect(server.connections).toHaveLength(1);
  });

  test("a large answer comes whole, and holds the server back while nobody reads it", async () => {
    const size = 64 * MEBIBYTE;
    using server = serverWith(tls, {
      script: () => [`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`, { fill: size }],
    });
    const answer = await ask(client.transport, backendAt(server.url)).answer;
    await waitFor("the server is held back", async () => {
      const sent = server.connections[0]?.sentBytes;
      await Bun.sleep(20);
      return sent === server.connections[0]?.sentBytes;
    });
    expect(server.connections[0]?.sentBytes).toBeLessThan(size / 2);
    let bytes = 0;
    let isRight = true;
    const over = Promise.withResolvers<void>();
    answer.read({
      received(piece) {
        isRight &&= filler(piece.length, bytes).subarray(0, piece.length).equals(piece);
        bytes += piece.length;
      },
      ended: over.resolve,
      failed: over.reject,
    });
    await within("the end of the body", over.promise);
    expect({ bytes, isRight }).toEqual({ bytes: size, isRight: true });
  });

  test("bytes that come before any request leave nobody waiting, and shift no answers", async () => {
    using server = serverWith(tls, {
      script: ({ target }) => [answerOf(target)],
      onOpen: ({ number }) => (number === 0 ? [answerOf("evil", [], "404 Not Found")] : []),
    });
    await outcomeAt(server, client, { path: "/1" });
    await turns(5);
    for (const path of ["/2", "/3"]) {
      expect(await outcomeAt(server, client, { path })).toMatchObject({ end: "complete", body: Buffer.from(path) });
    }
  });

  test("a body that breaks off is not whole, whichever way it does", async () => {
    for (const ending of ["fin", "reset"] as const) {
      using server = serverWith(tls, {
        script: () => ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", { turns: 2 }, ending],
      });
      expect((await outcomeAt(server, client)).end).toBe("broken");
    }
  });

  test("a body without a length is whole when the server says goodbye, and not when it vanishes", async () => {
    const steps = ["HTTP/1.1 200 OK\r\n\r\nall of it", { turns: 2 }];
    using orderly = serverWith(tls, { script: () => [...steps, "fin"] });
    expect(await outcomeAt(orderly, client)).toMatchObject({ end: "complete", body: Buffer.from("all of it") });
    using gone = serverWith(tls, { script: () => [...steps, "reset"] });
    expect((await outcomeAt(gone, client)).end).toBe("broken");
  });

  // Without a length it is whole: the runtime does not tell whether TLS was ended before the connection.
  test.each([
    ["of known length", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"],
    ["in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
  ])("a body %s is not whole when somebody between ends its connection in order", async (_name, bytes) => {
    using server = serverWith(tls, { script: () => [bytes] });
    await using cutter = await startCutter(server.port);
    const answer = await within(
      "an answer",
      ask(client.transport, backendAt(`https://127.0.0.1:${cutter.port}`)).answer,
    );
    const body = new Collector();
    answer.read(body);
    await waitFor("the body", () => body.bytes > 0);
    cutter.cut();
    await within("the end of the body", body.over);
    expect(body.end).toBe("broken");
  });

  test("a kept connection that ends at the next request is replaced once", async () => {
    for (const ending of ["fin", "reset"] as const) {
      using server = serverWith(tls, { script: ({ place, target }) => (place === 0 ? [answerOf(target)] : [ending]) });
      for (const path of ["/1", "/2"])
        expect(await outcomeAt(server, client, { path })).toMatchObject({ body: Buffer.from(path) });
      expect(server.requests.map(({ target }) => target)).toEqual(["/1", "/2", "/2"]);
    }
  });

  test("a call that is left closes its connection", async () => {
    using server = serverWith(tls, { script: ({ connection }) => (connection.number === 0 ? [] : [answerOf("next")]) });
    const call = ask(client.transport, backendAt(server.url));
    await waitFor("the request", () => server.requests.length === 1);
    call.abort();
    expect(await within("the end of a call", headOf(call))).toMatchObject({ code: expect.any(String) });
    await waitFor("the server sees the end", () => server.connections[0]?.isClosed);
    expect(await outcomeAt(server, client)).toMatchObject({ body: Buffer.from("next") });
  });
});
