// The three services over real sockets: what they are asked, what is read of their answers, and how they may fail.

import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { Settings } from "../config/sections/registry.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { createSearchProvider, type SearchOptions, type SearchOutcome } from "./provider.ts";

interface Asked {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: unknown;
}

type Service = NonNullable<Settings["web_search"]["provider"]>;

const KEY = "sekret-search-key";
let asked: Asked[] = [];
let answer: (request: Request) => Response | Promise<Response> = () => new Response("{}");

const server = Bun.serve({
  port: 0,
  async fetch(request) {
    const url = new URL(request.url);
    const text = await request.text();
    asked.push({
      method: request.method,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers.toJSON() as Record<string, string>,
      body: text === "" ? undefined : JSON.parse(text),
    });
    return answer(request);
  },
});
afterAll(() => server.stop(true));

beforeEach(() => {
  asked = [];
});

function search(provider: Service, query: string, more: Partial<SearchOptions> & { timeoutMs?: number } = {}) {
  const { timeoutMs = 10_000, ...options } = more;
  const settings = {
    provider,
    api_key: KEY,
    base_url: `http://127.0.0.1:${server.port}/`,
    max_results: 5,
    max_rounds: 5,
    timeout: timeoutMs,
  };
  const deadlines = createDeadlines();
  const made = createSearchProvider(settings, { deadlines, now: () => performance.now() });
  if (made === undefined) throw new Error("no provider");
  return made.search(query, { count: 5, signal: new AbortController().signal, ...options });
}

const WISH = {
  count: 3,
  allowedDomains: ["a.test", "b.test"],
  blockedDomains: ["x.a.test"],
  location: { city: "Köln", region: "North Rhine-Westphalia", country: "de", timezone: "Europe/Berlin" },
};

describe("what a service is asked", () => {
  test("serper", async () => {
    answer = () => Response.json({ searchParameters: {}, organic: [] });
    expect(await search("serper", " cats & dogs ", WISH)).toEqual({ ok: true, hits: [] });
    const [request] = asked;
    expect(asked).toHaveLength(1);
    expect(request).toMatchObject({ method: "POST", path: "/search", query: {} });
    expect(request?.headers).toMatchObject({ "x-api-key": KEY, "content-type": "application/json" });
    expect(request?.body).toEqual({
      q: "cats & dogs (site:a.test OR site:b.test) -site:x.a.test",
      num: 3,
      gl: "de",
    });
  });

  test("brave", async () => {
    answer = () => Response.json({ type: "search", web: { type: "search", results: [] } });
    expect(await search("brave", "cats & dogs", WISH)).toEqual({ ok: true, hits: [] });
    const [request] = asked;
    expect(request).toMatchObject({ method: "GET", path: "/res/v1/web/search", body: undefined });
    expect(request?.query).toEqual({
      q: "cats & dogs (site:a.test OR site:b.test) -site:x.a.test",
      count: "3",
      result_filter: "web",
      text_decorations: "false",
    });
    expect(request?.headers).toMatchObject({
      "x-subscription-token": KEY,
      accept: "application/json",
      "x-loc-country": "DE",
      "x-loc-state-name": "North Rhine-Westphalia",
      "x-loc-timezone": "Europe/Berlin",
    });
    // A header cannot hold it.
    expect(request?.headers["x-loc-city"]).toBeUndefined();
  });

  test("exa", async () => {
    answer = () => Response.json({ requestId: "r", results: [] });
    expect(await search("exa", "cats & dogs", WISH)).toEqual({ ok: true, hits: [] });
    const [request] = asked;
    expect(request).toMatchObject({ method: "POST", path: "/search", query: {} });
    expect(request?.headers).toMatchObject({ "x-api-key": KEY, "content-type": "application/json" });
    expect(request?.body).toEqual({
      query: "cats & dogs",
      type: "auto",
      numResults: 3,
      includeDomains: ["a.test", "b.test"],
      excludeDomains: ["x.a.test"],
      userLocation: "DE",
      contents: { text: { maxCharacters: 1_500 } },
    });
  });

  test("nothing that was not wished", async () => {
    for (const service of ["serper", "exa"] as const) {
      await search(service, "q", { location: { country: "Germany" }, allowedDomains: [], blockedDomains: [] });
    }
    expect(asked.map(({ body }) => body)).toEqual([
      { q: "q", num: 5 },
      { query: "q", type: "auto", numResults: 5, contents: { text: { maxCharacters: 1_500 } } },
    ]);
  });
});

describe("what is read", () => {
  const answers: [Service, object][] = [
    [
      "serper",
      {
        organic: [
          { title: "One &amp; <b>only</b>", link: "https://a.test/1", snippet: "first\n text", date: "Apr 30, 2026" },
          { title: "", link: "https://a.test/2", position: 2 },
        ],
        knowledgeGraph: { title: "not a result" },
      },
    ],
    [
      "brave",
      {
        web: {
          results: [
            {
              title: "One & only",
              url: "https://a.test/1",
              description: "first <strong>text</strong>",
              age: "Apr 30, 2026",
            },
            { title: null, url: "https://a.test/2", description: null },
          ],
        },
      },
    ],
    [
      "exa",
      {
        results: [
          {
            id: "1",
            title: "One & only",
            url: "https://a.test/1",
            text: "first text",
            publishedDate: "2026-04-30T01:00:00Z",
          },
          { id: "2", title: null, url: "https://a.test/2", publishedDate: "some day" },
        ],
      },
    ],
  ];
  test.each(answers)("%s", async (service, body) => {
    answer = () => Response.json(body);
    const outcome = await search(service, "q");
    expect(outcome).toEqual({
      ok: true,
      hits: [
        {
          url: "https://a.test/1",
          title: "One & only",
          snippet: "first text",
          pageAge: service === "exa" ? "April 30, 2026" : "Apr 30, 2026",
        },
        { url: "https://a.test/2", title: "https://a.test/2" },
      ],
    });
  });

  test("what a service should not have answered is left out", async () => {
    const links = [
      "https://a.test/1",
      "javascript:alert(1)",
      "https://c.test/",
      "https://a.test/1",
      "https://x.a.test/",
      7,
    ];
    const more = ["https://b.test/1", "https://b.test/2", "https://b.test/3"];
    answer = () =>
      Response.json({ organic: [...links, ...more].map((link) => ({ link, title: "t" })).concat([null as never]) });
    const outcome = await search("serper", "q", WISH);
    expect(outcome.ok && outcome.hits.map(({ url }) => url)).toEqual([
      "https://a.test/1",
      "https://b.test/1",
      "https://b.test/2",
    ]);
  });

  test("long texts are cut", async () => {
    answer = () =>
      Response.json({ organic: [{ link: "https://a.test", title: "t".repeat(9_999), snippet: "s".repeat(99_999) }] });
    const outcome = await search("serper", "q");
    const [hit] = outcome.ok ? outcome.hits : [];
    expect([hit?.title.length, hit?.snippet?.length]).toEqual([300, 2_000]);
  });

  test("brave leaves web out when nothing was found", async () => {
    answer = () => Response.json({ type: "search", query: { original: "q" } });
    expect(await search("brave", "q")).toEqual({ ok: true, hits: [] });
  });
});

describe("failures", () => {
  function expectFailure(outcome: SearchOutcome, errorCode: string): void {
    expect(outcome).toMatchObject({ ok: false, errorCode });
    const text = JSON.stringify(outcome);
    expect(text).not.toContain(KEY);
    expect(text).not.toContain("find me");
  }

  const statuses: [status: number, errorCode: string][] = [
    [429, "too_many_requests"],
    [400, "unavailable"],
    [401, "unavailable"],
    [402, "unavailable"],
    [403, "unavailable"],
    [413, "query_too_long"],
    [414, "query_too_long"],
    [422, "unavailable"],
    [500, "unavailable"],
    [302, "unavailable"],
    [204, "unavailable"],
  ];
  test.each(statuses)("HTTP %p: %s", async (status, errorCode) => {
    answer = () =>
      new Response(status === 204 ? null : `{"message":"${KEY}"}`, { status, headers: { location: "/elsewhere" } });
    expectFailure(await search("serper", "find me"), errorCode);
    expect(asked).toHaveLength(1);
  });

  const bodies = [
    "",
    "<html>",
    "[]",
    "null",
    '{"organic":{}}',
    '{"results":7}',
    '{"web":[]}',
    '{"web":{"results":{}}}',
  ];
  test.each(bodies)("the answer %p", async (body) => {
    for (const service of ["serper", "brave", "exa"] as const) {
      answer = () => new Response(body);
      expectFailure(await search(service, "find me"), "unavailable");
    }
  });

  test("an answer without end", async () => {
    let isCancelled = false;
    answer = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(256 * 1024)),
          cancel: () => {
            isCancelled = true;
          },
        }),
      );
    expectFailure(await search("exa", "find me"), "unavailable");
    while (!isCancelled) await new Promise(setImmediate);
  });

  test("no answer in time", async () => {
    const held = Promise.withResolvers<Response>();
    answer = () => held.promise;
    expectFailure(await search("brave", "find me", { timeoutMs: 30 }), "unavailable");
    held.resolve(new Response("{}"));
  });

  test("nobody there", async () => {
    const port = Bun.serve({ port: 0, fetch: () => new Response("") });
    const base_url = `http://127.0.0.1:${port.port}`;
    await port.stop(true);
    const provider = createSearchProvider(
      { provider: "exa", api_key: KEY, base_url, max_results: 5, max_rounds: 5, timeout: 5_000 },
      { deadlines: createDeadlines(), now: () => performance.now() },
    );
    const outcome = await provider?.search("find me", { count: 1, signal: new AbortController().signal });
    expectFailure(outcome as SearchOutcome, "unavailable");
  });

  test("a client that leaves ends the search", async () => {
    const arrived = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    answer = (request) => {
      request.signal.addEventListener("abort", () => left.resolve());
      arrived.resolve();
      return new Promise(() => {});
    };
    const client = new AbortController();
    const outcome = search("serper", "find me", { signal: client.signal });
    await arrived.promise;
    client.abort();
    expectFailure(await outcome, "unavailable");
    await left.promise;
  });

  test("a client that has left is not searched for", async () => {
    expectFailure(await search("serper", "find me", { signal: AbortSignal.abort() }), "unavailable");
    expect(asked).toEqual([]);
  });

  const queries: [query: string, service: Service, errorCode: string][] = [
    ["  ", "serper", "invalid_tool_input"],
    ["find me ".repeat(60), "brave", "query_too_long"],
    ["find_me".repeat(60), "brave", "query_too_long"],
    ["find_me".repeat(300), "exa", "query_too_long"],
    ["find_me".repeat(300), "serper", "query_too_long"],
  ];
  test.each(queries)("the query %p at %s: %s", async (query, service, errorCode) => {
    expectFailure(await search(service, query), errorCode);
    expect(asked).toEqual([]);
  });
});

test("without a provider there is none", () => {
  const settings = { max_results: 5, max_rounds: 5, timeout: 1 };
  expect(
    createSearchProvider(settings as Settings["web_search"], { deadlines: createDeadlines(), now: () => 0 }),
  ).toBeUndefined();
});
