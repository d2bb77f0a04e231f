// Which connection a request goes over, and what becomes of the connection: kept, replaced, never shared with what is left
// of another answer.

import { afterAll, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor, within } from "../support/wait-for.ts";
import { answerOf, chunkedOf } from "./answers.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { type ReceivedRequest, type Step, turns } from "./server-connection.ts";
import { ask, backendAt, newClient, type Question } from "./subject.ts";

const MEBIBYTE = 1024 * 1024;
const NOT_FOUND = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nevil";

const client = newClient();
afterAll(() => client.close());

async function outcomeAt(server: ScriptedServer, question: Question = {}): Promise<Outcome> {
  return await within("the end of a call", outcomeOf(ask(client.transport, backendAt(server.url), question)));
}

async function expectAnswer(server: ScriptedServer, body: string, question: Question = {}): Promise<void> {
  const outcome = await outcomeAt(server, question);
  expect(outcome).toMatchObject({ end: "complete", body: Buffer.from(body) });
}

/** The path of each request that arrived, in order. */
function targets(server: ScriptedServer): string[] {
  return server.requests.map(({ target }) => target);
}

const echo = ({ target }: ReceivedRequest) => answerOf(target);

describe("a kept connection", () => {
  test("serves one request after another", async () => {
    using server = new ScriptedServer((request) => [echo(request)]);
    for (let each = 0; each < 50; each++) await expectAnswer(server, `/${each}`, { path: `/${each}` });
    expect(server.connections).toHaveLength(1);
    expect(server.violations).toEqual([]);
  });

  test("is used at once by who asks in the turn in which the answer ends", async () => {
    using server = new ScriptedServer((request) => [echo(request)]);
    const backend = backendAt(server.url);
    const bodies: string[] = [];
    const done = Promise.withResolvers<void>();
    async function once(left: number): Promise<void> {
      const answer = await ask(client.transport, backend, { path: `/${left}` }).answer;
      answer.read({
        received: (piece) => bodies.push(Buffer.from(piece).toString()),
        ended: () => (left === 0 ? done.resolve() : void once(left - 1)),
        failed: done.reject,
      });
    }
    void once(20);
    await within("all answers", done.promise);
    expect(bodies).toEqual(Array.from({ length: 21 }, (_, each) => `/${20 - each}`));
    expect(server.connections).toHaveLength(1);
    expect(server.violations).toEqual([]);
  });

  test("serves one request at a time", async () => {
    using server = new ScriptedServer((request) => [{ turns: 3 }, echo(request)]);
    const asked = Array.from({ length: 20 }, (_, each) => `/${each}`);
    await Promise.all(asked.map((path) => expectAnswer(server, path, { path })));
    await Promise.all(asked.map((path) => expectAnswer(server, path, { path })));
    expect(server.connections.length).toBeLessThanOrEqual(20);
    expect(server.violations).toEqual([]);
  });

  test("is not shared by backends at different addresses", async () => {
    using one = new ScriptedServer(() => [answerOf("one")]);
    using two = new ScriptedServer(() => [answerOf("two")]);
    for (let each = 0; each < 3; each++) {
      await expectAnswer(one, "one");
      await expectAnswer(two, "two");
    }
    expect([one.connections.length, two.connections.length]).toEqual([1, 1]);
  });

  test("leads over a unix socket as well", async () => {
    using server = new ScriptedServer({
      script: (request) => [echo(request)],
      unix: join(tmpdir(), `signalbox-${crypto.randomUUID()}.sock`),
    });
    for (let each = 0; each < 3; each++) await expectAnswer(server, `/${each}`, { path: `/${each}` });
    expect(server.connections).toHaveLength(1);
    expect(server.violations).toEqual([]);
  });
});

describe("a kept connection that has gone", () => {
  for (const ending of ["fin", "reset"] as const) {
    test(`with a ${ending} while nobody used it, is not asked`, async () => {
      using server = new ScriptedServer((request) => (request.place === 0 ? [echo(request), "idle", ending] : []));
      await expectAnswer(server, "/1", { path: "/1" });
      await waitFor("the connection is closed", () => server.connections[0]?.isClosed);
      await turns(5);
      await expectAnswer(server, "/2", { path: "/2" });
      expect(targets(server)).toEqual(["/1", "/2"]);
    });

    test(`with a ${ending} at the moment of the next request, is replaced`, async () => {
      using server = new ScriptedServer((request) => (request.place === 0 ? [echo(request)] : [ending]));
      await expectAnswer(server, "/1", { path: "/1" });
      await expectAnswer(server, "/2", { path: "/2" });
      expect(targets(server)).toEqual(["/1", "/2", "/2"]);
      expect(server.connections).toHaveLength(2);
    });

    test(`with a ${ending}, leaves its place to the one that replaced it`, async () => {
      using server = new ScriptedServer((request) =>
        request.connection.number > 0 || request.place === 0 ? [echo(request)] : [ending],
      );
      const own = newClient();
      for (const path of ["/1", "/2", "/3", "/4"]) {
        const outcome = await within("an answer", outcomeOf(ask(own.transport, backendAt(server.url), { path })));
        expect(outcome).toMatchObject({ body: Buffer.from(path) });
      }
      expect(targets(server)).toEqual(["/1", "/2", "/2", "/3", "/4"]);
      expect(server.connections).toHaveLength(2);
      own.close();
      await waitFor("the connection is closed with the client", () => server.openConnections === 0);
    });

    test(`with a ${ending} long behind the next request, is not replaced, as it was not gone before`, async () => {
      let nowMs = 0;
      const own = newClient({ now: () => nowMs });
      using server = new ScriptedServer((request) => {
        if (request.place === 0) return [echo(request)];
        nowMs += 30_000;
        return [ending];
      });
      const backend = backendAt(server.url);
      expect(await outcomeOf(ask(own.transport, backend, { path: "/1" }))).toMatchObject({ end: "complete" });
      expect(await outcomeOf(ask(own.transport, backend, { path: "/2" }))).toMatchObject({ end: "no answer" });
      expect(targets(server)).toEqual(["/1", "/2"]);
      own.close();
    });

    test(`with a ${ending} right behind its last answer, is replaced`, async () => {
      using server = new ScriptedServer((request) => (request.place === 0 ? [echo(request), "idle", ending] : []));
      const asked = Array.from({ length: 100 }, (_, each) => `/${each}`);
      for (const path of asked) await expectAnswer(server, path, { path });
      expect(targets(server)).toEqual(asked);
    });

    test(`with a ${ending} behind the first byte of the answer, is not replaced`, async () => {
      using server = new ScriptedServer((request) =>
        request.place === 0 ? [echo(request)] : ["H", { turns: 2 }, ending],
      );
      await expectAnswer(server, "/1", { path: "/1" });
      expect(await outcomeAt(server, { path: "/2" })).toMatchObject({ end: "no answer" });
      expect(targets(server)).toEqual(["/1", "/2"]);
    });

    test(`with a ${ending} behind an interim answer, is not replaced`, async () => {
      using server = new ScriptedServer((request) =>
        request.place === 0 ? [echo(request)] : ["HTTP/1.1 102 Processing\r\n\r\n", { turns: 2 }, ending],
      );
      await expectAnswer(server, "/1", { path: "/1" });
      expect(await outcomeAt(server, { path: "/2" })).toMatchObject({ end: "no answer" });
      expect(targets(server)).toEqual(["/1", "/2"]);
    });

    test(`with a ${ending}, is replaced once`, async () => {
      using server = new ScriptedServer((request) => (request.target === "/1" ? [echo(request)] : [ending]));
      await expectAnswer(server, "/1", { path: "/1" });
      expect(await outcomeAt(server, { path: "/2" })).toMatchObject({ end: "no answer" });
      expect(targets(server)).toEqual(["/1", "/2", "/2"]);
    });

    test(`with a ${ending}, as all others have, is replaced by one that is new`, async () => {
      const all = Promise.withResolvers<void>();
      using server = new ScriptedServer((request) => {
        if (server.requests.length === 3) all.resolve();
        return request.place === 0 ? [{ run: () => all.promise }, echo(request)] : [ending];
      });
      await Promise.all(["/1", "/2", "/3"].map((path) => expectAnswer(server, path, { path })));
      expect(server.connections).toHaveLength(3);
      await expectAnswer(server, "/4", { path: "/4" });
      expect(targets(server).slice(3)).toEqual(["/4", "/4"]);
      expect(server.connections).toHaveLength(4);
    });

    test(`with a ${ending} while a large body is written, is replaced, and the body begins anew`, async () => {
      const body = Buffer.alloc(8 * MEBIBYTE, "all of the body ");
      let heads = 0;
      using server = new ScriptedServer({
        at: "head",
        async script(request) {
          if (++heads === 2) return [ending];
          await waitFor("the body", () => request.body.length === Number(request.headers["content-length"]));
          return [answerOf(Bun.hash(request.body).toString())];
        },
      });
      const backend = backendAt(server.url);
      const ofHash = (outcome: Outcome) => outcome.end === "complete" && outcome.body.toString();
      expect(ofHash(await outcomeOf(ask(client.transport, backend, { body: "small" })))).toBe(
        Bun.hash("small").toString(),
      );
      expect(ofHash(await within("an answer", outcomeOf(ask(client.transport, backend, { body }))))).toBe(
        Bun.hash(body).toString(),
      );
      expect(heads).toBe(3);
    });

    test(`that is new and ends with a ${ending}, is not replaced`, async () => {
      using server = new ScriptedServer(() => [ending]);
      expect(await outcomeAt(server)).toMatchObject({ end: "no answer" });
      expect(server.requests).toHaveLength(1);
      expect(server.accepted).toBe(1);
    });

    test(`that is closed with a ${ending} before the request came, is not replaced`, async () => {
      using server = new ScriptedServer({ script: () => [], onOpen: () => [ending] });
      expect(await outcomeAt(server)).toMatchObject({ end: "no answer" });
      expect(server.accepted).toBe(1);
    });
  }
});

describe("surplus bytes", () => {
  const surplus: readonly [string, Question, (last: ReceivedRequest) => readonly Step[]][] = [
    ["behind a length", {}, (request) => [Buffer.concat([echo(request), Buffer.from(NOT_FOUND)])]],
    ["behind the last chunk", {}, ({ target }) => [Buffer.concat([chunkedOf([target]), Buffer.from(NOT_FOUND)])]],
    ["behind a length, when nobody waits any more", {}, (request) => [echo(request), { turns: 3 }, NOT_FOUND, "idle"]],
    [
      "behind the last chunk, when nobody waits any more",
      {},
      ({ target }) => [chunkedOf([target]), { turns: 3 }, NOT_FOUND, "idle"],
    ],
    ["behind a 204", {}, () => [`HTTP/1.1 204 No Content\r\n\r\n${NOT_FOUND}`]],
    ["behind a 204 with a length", {}, () => ["HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil"]],
    ["behind a 304", {}, () => ["HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil"]],
    ["behind an answer to HEAD", { method: "HEAD" }, () => ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"]],
    ["of one byte", {}, (request) => [Buffer.concat([echo(request), Buffer.from("\n")])]],
  ];
  test.each(surplus)("%s never reach the next request", async (_name, question, steps) => {
    using server = new ScriptedServer((request) => (request.target === "/first" ? steps(request) : [echo(request)]));
    const first = await outcomeAt(server, { ...question, path: "/first" });
    expect(first).toMatchObject({ end: "complete" });
    if (first.end === "no answer") return;
    expect(["/first", ""]).toContain(first.body.toString());
    // What comes behind the next request is an answer to it, as far as anybody can tell.
    await waitFor("all of it is sent", () => server.connections[0]?.isBusy === false);
    await turns(5);
    for (let each = 0; each < 10; each++) {
      await expectAnswer(server, `/next/${each}`, { path: `/next/${each}` });
      await turns(3);
    }
    expect(server.connections.length).toBeLessThanOrEqual(2);
    await waitFor("the first connection is closed", () => server.connections[0]?.isClosed);
  });

  test("before any request are nobody's answer", async () => {
    using server = new ScriptedServer({
      script: (request) => [echo(request)],
      onOpen: ({ number }) => (number === 0 ? [NOT_FOUND] : []),
    });
    const outcome = await outcomeAt(server, { path: "/1" });
    // Nobody can tell such bytes from an answer that came early, but they must not shift the answers by one.
    expect(["complete", "no answer"]).toContain(outcome.end);
    await turns(5);
    for (const path of ["/2", "/3", "/4"]) await expectAnswer(server, path, { path });
  });
});

describe("an answer that comes early", () => {
  const body = Buffer.alloc(32 * MEBIBYTE, "x");
  const REFUSAL = "HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large";

  test("is read while the server takes no more of the body, and its connection is closed", async () => {
    using server = new ScriptedServer({
      at: "head",
      script: ({ connection }) => {
        connection.stopReading();
        return [REFUSAL];
      },
    });
    expect(await outcomeAt(server, { body })).toMatchObject({
      status: 413,
      end: "complete",
      body: Buffer.from("too large"),
    });
    const next = await outcomeAt(server, { body: "small" });
    expect(next).toMatchObject({ status: 413, end: "complete" });
    expect(server.connections).toHaveLength(2);
  });

  test("is read although the server closes its end", async () => {
    using server = new ScriptedServer({ at: "head", script: () => [REFUSAL, { turns: 5 }, "fin"] });
    expect(await outcomeAt(server, { body })).toMatchObject({
      status: 413,
      end: "complete",
      body: Buffer.from("too large"),
    });
  });

  test("leaves its connection to nobody before the body is written", async () => {
    using server = new ScriptedServer({ at: "head", script: (request) => [echo(request)] });
    expect(await outcomeAt(server, { body, path: "/1" })).toMatchObject({ status: 200, body: Buffer.from("/1") });
    for (const path of ["/2", "/3"]) await expectAnswer(server, path, { path, body: "small" });
    expect(server.violations).toEqual([]);
  });
});
