// What a server gets to see of a request: exactly one request, as it was asked for, and no bytes of anybody's choosing
// outside of the places that they belong to.

import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Backend } from "../../src/backends/backend.ts";
import { within } from "../support/wait-for.ts";
import { answerOf } from "./answers.ts";
import { fetchTransport } from "./fetch-call.ts";
import { headOf, outcomeOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { type ReceivedRequest, turns } from "./server-connection.ts";
import { ask, backendAt, newClient, type Question } from "./subject.ts";

const client = newClient();
afterAll(() => client.close());

/** Headers that fetch adds, and that mean nothing to a backend. */
const OF_FETCH = ["user-agent", "accept", "connection"];

const QUESTIONS: Readonly<Record<string, Question>> = {
  "a body in bytes": { body: new Uint8Array([0, 255, 13, 10, 13, 10, 128]) },
  "a body in words": { body: "Grüße, 世界 \u{1f600}" },
  "an empty body": { body: "" },
  "an empty body in bytes": { body: new Uint8Array(0) },
  "a body of one byte": { body: new Uint8Array([1]) },
  "a body that is part of a larger memory": {
    body: new TextEncoder().encode("before the body behind").subarray(7, 15),
  },
  "a body of a mebibyte": { body: "x".repeat(1024 * 1024) },
  "a body of a mebibyte in several bytes each": { body: "ü".repeat(1024 * 1024) },
  GET: { method: "GET" },
  "a path and a query": { method: "GET", path: "/v1/models?limit=1000&after=a%20b" },
  "a path with a percent sign": { method: "GET", path: "/v1/models/org%2Fname" },
  "a path with colons": { path: "/v1beta/models/gemini:streamGenerateContent?alt=sse" },
  "a header with spaces inside": { headers: { "x-words": "one  two\tthree" } },
  "a header without a value": { headers: { "x-empty": "" } },
  "a header in Latin-1": { headers: { "x-latin": "caf\u00e9" } },
  "many headers": {
    headers: Object.fromEntries(Array.from({ length: 100 }, (_, each) => [`x-${each}`, `value ${each}`])),
  },
  "a header of many bytes": { headers: { "x-long": "a".repeat(12_000) } },
  "a Host of the operator": { headers: { host: "models.internal" } },
};

/** Asks the same through fetch and our client, which must be the same to the server. */
async function expectSame(server: ScriptedServer, backend: Backend, question: Question): Promise<void> {
  for (const transport of [fetchTransport, client.transport]) {
    expect(await within("an answer", outcomeOf(ask(transport, backend, question)))).toMatchObject({ end: "complete" });
  }
  expect(server.violations).toEqual([]);
  const [expected, actual] = server.requests.slice(-2).map(({ method, target, headers, body }) => {
    for (const name of OF_FETCH) delete headers[name];
    return { method, target, headers, body: Bun.hash(body) };
  });
  expect(actual).toEqual(expected);
}

describe("a request with", () => {
  test.each(Object.entries(QUESTIONS))("%s reaches the server as fetch would send it", async (_name, question) => {
    using server = new ScriptedServer(() => [answerOf("ok")]);
    await expectSame(server, backendAt(server.url), question);
  });
});

const PATHS = [
  "/",
  "/v1/a b",
  "/v1/\u00fc\u4e16",
  "/v1/../up",
  "/v1/%2e%2e/up",
  "/v1/./here//twice",
  "/v1?q=a b&r=\u00fc'\"<>",
  "/v1#fragment",
  "/v1/a\\b",
  "/v1/%",
  "/v1/%zz?%",
  "/v1/a|b{c}[d]^`",
];

describe("an address", () => {
  test.each(PATHS)("and the path %s reach the server as fetch would send them", async (path) => {
    using server = new ScriptedServer(() => [answerOf("ok")]);
    await expectSame(server, backendAt(server.url), { path });
  });

  test.each([
    ["user and password", "http://user:p%40ss%3Aword@127.0.0.1:PORT"],
    ["a user alone", "http://user@127.0.0.1:PORT"],
    ["a path of its own", "http://127.0.0.1:PORT/engines/one"],
    ["a name in capitals", "http://LOCALHOST:PORT"],
    ["a number for an address", "http://2130706433:PORT"],
  ])("with %s is asked as fetch would ask it", async (_name, url) => {
    using server = new ScriptedServer(() => [answerOf("ok")]);
    await expectSame(server, backendAt(url.replace("PORT", String(server.port))), { path: "/v1/models?a=b" });
  });

  test("of IPv6 is asked as fetch would ask it", async () => {
    using server = new ScriptedServer({ script: () => [answerOf("ok")], host: "::1" });
    await expectSame(server, backendAt(server.url), {});
  });

  test("is never left by a path that looks like another", async () => {
    using server = new ScriptedServer(() => [answerOf("ok")]);
    using other = new ScriptedServer(() => [answerOf("evil")]);
    const backend = backendAt(server.url);
    const { port } = other;
    for (const path of [
      `//127.0.0.1:${port}/`,
      `@127.0.0.1:${port}/`,
      `/\\127.0.0.1:${port}/`,
      `:${port}/`,
      `.evil:${port}/`,
      `${other.url}/`,
    ]) {
      await within("the end of a call", outcomeOf(ask(client.transport, backend, { path })));
    }
    expect(other.accepted).toBe(0);
    expect(server.violations).toEqual([]);
  });
});

/** Values and names that would become lines of their own, or other requests. */
const BREAKS = ["\r\n", "\n", "\r", "\0", "\r\n\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n"];

describe("bytes that end a line", () => {
  const places: Readonly<Record<string, (bad: string) => Question>> = {
    "in a header's value": (bad) => ({ headers: { "x-a": `a${bad}x-evil: 1` } }),
    "at the end of a header's value": (bad) => ({ headers: { "x-a": `a${bad}` } }),
    "in a header's name": (bad) => ({ headers: { [`x-a${bad}x-evil`]: "1" } }),
    "in a path": (bad) => ({ path: `/v1${bad}/evil` }),
    "in a query": (bad) => ({ path: `/v1?a=${bad}evil` }),
    "in a method": (bad) => ({ method: `GET${bad}`, body: "" }),
  };
  test.each(Object.entries(places))("%s never reach a server", async (_name, toQuestion) => {
    using server = new ScriptedServer(() => [answerOf("ok")]);
    const backend = backendAt(server.url);
    await outcomeOf(ask(client.transport, backend));
    for (const bad of BREAKS) {
      const head = await within("the end of a call", headOf(ask(client.transport, backend, toQuestion(bad))));
      // What is not refused must have been made harmless, as fetch does with paths.
      if (!("code" in head)) expect(server.requests.at(-1)?.target).not.toContain(bad);
      await turns(5);
    }
    expect(await within("an answer", outcomeOf(ask(client.transport, backend)))).toMatchObject({ end: "complete" });
    expect(server.violations).toEqual([]);
    for (const { target, headers } of server.requests) {
      expect(target).not.toBe("/evil");
      expect(Object.keys(headers)).not.toContain("x-evil");
    }
  });
});

test("names and values of any characters make one request with this one header, or none", async () => {
  using server = new ScriptedServer(() => [answerOf("ok")]);
  const backend = backendAt(server.url);
  const text = fc.string({ unit: "binary", maxLength: 8 });
  const property = fc.asyncProperty(text, text, async (name, value) => {
    const before = server.requests.length;
    const call = ask(client.transport, backend, { headers: { [`x-${name}`.toLowerCase()]: value } });
    if ((await within("the end of a call", outcomeOf(call))).end === "no answer") {
      expect(server.requests).toHaveLength(before);
      return;
    }
    expect(server.requests).toHaveLength(before + 1);
    const { headers } = server.requests[before] as ReceivedRequest;
    expect(headers[`x-${name}`.toLowerCase()]).toBe(value.replace(/^[ \t]+|[ \t]+$/g, ""));
    expect(Object.keys(headers).filter((each) => each.startsWith("x-"))).toHaveLength(1);
  });
  await fc.assert(property, { numRuns: 200, seed: 1 });
  expect(server.violations).toEqual([]);
});
