// How many connections are kept, and for how long; and what is told of addresses that cannot be reached.

import { afterAll, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";
import { startSilentHost } from "../support/silent-host.ts";
import { waitFor, within } from "../support/wait-for.ts";
import { answerOf } from "./answers.ts";
import { headOf, outcomeOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { turns } from "./server-connection.ts";
import { ask, backendAt, newClient, type TestClient } from "./subject.ts";

const clients: TestClient[] = [];
afterAll(() => {
  for (const client of clients) client.close();
});

function made(client: TestClient): TestClient {
  clients.push(client);
  return client;
}

describe("connections that nobody uses", () => {
  test("are kept up to a number", async () => {
    const gate = Promise.withResolvers<void>();
    using server = new ScriptedServer(() => [{ run: () => gate.promise }, answerOf("x")]);
    const { transport } = made(newClient({ maxIdle: 8 }));
    const backend = backendAt(server.url);
    const calls = Array.from({ length: 40 }, () => outcomeOf(ask(transport, backend)));
    await waitFor("all requests", () => server.requests.length === 40);
    expect(server.openConnections).toBe(40);
    gate.resolve();
    for (const outcome of await Promise.all(calls)) expect(outcome.end).toBe("complete");
    await waitFor("the others are closed", () => server.openConnections <= 8);
    expect(server.openConnections).toBe(8);
    expect(server.violations).toEqual([]);
  });

  test("are closed after a time", async () => {
    using server = new ScriptedServer(() => [answerOf("x")]);
    const { transport } = made(newClient({ maxIdleMs: 100 }));
    await outcomeOf(ask(transport, backendAt(server.url)));
    expect(server.openConnections).toBe(1);
    await waitFor("the connection is closed", () => server.openConnections === 0);
    await outcomeOf(ask(transport, backendAt(server.url)));
    expect(server.accepted).toBe(2);
    await waitFor("the next connection is closed", () => server.openConnections === 0);
  });

  test("are closed with the client", async () => {
    using server = new ScriptedServer(() => [answerOf("x")]);
    const client = newClient();
    await outcomeOf(ask(client.transport, backendAt(server.url)));
    client.close();
    await waitFor("the connection is closed", () => server.openConnections === 0);
  });
});

describe("an address", () => {
  test("where nobody listens is refused", async () => {
    const { transport } = made(newClient());
    const call = ask(transport, backendAt(`http://127.0.0.1:${await freePort()}`));
    const head = headOf(call);
    expect(await within("the end of a call", head)).toEqual({ code: "ECONNREFUSED" });
  });

  test("of a unix socket that is not there is refused", async () => {
    const { transport } = made(newClient());
    const call = ask(transport, backendAt(`unix:${join(tmpdir(), `signalbox-${crypto.randomUUID()}.sock`)}`));
    expect(await within("the end of a call", headOf(call))).toMatchObject({
      code: expect.stringMatching(/^ENOENT|ECONNREFUSED|FailedToOpenSocket$/),
    });
  });

  test("whose name nobody knows is not found", async () => {
    const { transport } = made(newClient());
    const call = ask(transport, backendAt("http://no-such-host.invalid:80"));
    const head = await within("the end of a call", headOf(call), 20_000);
    expect(head).toMatchObject({ code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN|ConnectionRefused)$/) });
  });

  test("that answers is connected to, and one that is silent is not", async () => {
    const { transport } = made(newClient());
    using server = new ScriptedServer(() => []);
    const call = ask(transport, backendAt(server.url));
    const head = headOf(call);
    await waitFor("the request", () => server.requests.length === 1);
    expect(await call.connects(5_000)).toBe(true);
    call.abort();
    await head;
    const host = await startSilentHost();
    if (host === undefined) return;
    await using _ = host;
    const lost = ask(transport, backendAt(host.url));
    const lostHead = headOf(lost);
    expect(await lost.connects(50)).toBe(false);
    lost.abort();
    await within("the end of a call", lostHead);
  });

  test("that refuses another connection while it works is connected to", async () => {
    const { transport } = made(newClient());
    const server = new ScriptedServer(({ place }) => (place === 0 ? [answerOf("x")] : []));
    const backend = backendAt(server.url);
    await outcomeOf(ask(transport, backend));
    const call = ask(transport, backend);
    const head = headOf(call);
    await waitFor("the request", () => server.requests.length === 2);
    server.stopListening();
    expect(await call.connects(5_000)).toBe(true);
    await turns(5);
    call.abort();
    await head;
    server.stop();
  });
});
