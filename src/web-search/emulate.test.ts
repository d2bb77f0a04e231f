// Answers with searches: what the client sees, what the model sees, and where it ends.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { asEvents } from "../generation/as-events.ts";
import { collect } from "../generation/collect.ts";
import type { ContentPart, Message, SearchHit, TextPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { FinishReason } from "../generation/result.ts";
import type { ToolChoice, WebSearchTool } from "../generation/tools.ts";
import type { Usage } from "../generation/usage.ts";
import { type EmulationParts, emulateSearch } from "./emulate.ts";
import type { SearchOptions, SearchOutcome } from "./provider.ts";

const NONCE = "0123456789abcdef0123456789abcdef";
const ID = `srvtoolu_${NONCE.slice(0, 24)}`;
const HIT: SearchHit = { url: "https://a.test/1", title: "One", snippet: "first text", pageAge: "May 1, 2026" };

const TOOL: WebSearchTool = { kind: "web-search", name: "web_search", origin: { protocol: "messages", value: {} } };
const OWN = { kind: "function", name: "own" } as const;

function request(more: Partial<GenerationRequest> = {}, tool: Partial<WebSearchTool> = {}): GenerationRequest {
  return {
    model: "m",
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text: "hi" }] }],
    tools: [{ ...TOOL, ...tool }, OWN],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "messages", body: {} },
    extensions: {},
    ...more,
  };
}

const text = (value: string): TextPart => ({ type: "text", text: value });
const call = (id: string, name: string, input: unknown): ContentPart => ({
  type: "tool-call",
  id,
  name,
  arguments: typeof input === "string" ? input : JSON.stringify(input),
});
const search = (query: string, id = `call_${query}`): ContentPart => call(id, "web_search", { query });

/** One turn of the scripted model. */
function turn(parts: ContentPart[], reason?: FinishReason, usage?: Usage): GenerationEvent[] {
  const isCall = parts.some(({ type }) => type === "tool-call");
  return asEvents({
    id: "backend",
    model: "m",
    createdAt: 7,
    parts,
    finish: { reason: reason ?? (isCall ? "tool-calls" : "stop") },
    ...(usage !== undefined && { usage }),
  });
}

interface Scripted {
  events: GenerationEvent[];
  asked: GenerationRequest[];
  queries: { query: string; options: SearchOptions }[];
  failures: string[];
}

type Options = Partial<Pick<EmulationParts, "limits" | "cites" | "signal">> & {
  request?: GenerationRequest;
  find?: (query: string) => SearchOutcome;
};

/** The last turn is repeated. */
async function run(turns: GenerationEvent[][], options: Options = {}): Promise<Scripted> {
  const { find = () => ({ ok: true, hits: [HIT] }) } = options;
  const scripted: Scripted = { events: [], asked: [], queries: [], failures: [] };
  const events = emulateSearch({
    request: options.request ?? request(),
    async *callModel(asked) {
      scripted.asked.push(structuredClone(asked));
      yield* turns[Math.min(scripted.asked.length, turns.length) - 1] as GenerationEvent[];
    },
    provider: {
      name: "scripted",
      async search(query, given) {
        scripted.queries.push({ query, options: given });
        return find(query);
      },
    },
    limits: options.limits ?? { maxResults: 3, maxRounds: 4 },
    nonce: NONCE,
    signal: options.signal ?? new AbortController().signal,
    cites: options.cites ?? false,
    searchFailed: (errorCode, reason) => scripted.failures.push(`${errorCode}: ${reason}`),
  });
  for await (const event of events) scripted.events.push(event);
  return scripted;
}

function partsOf({ events }: Scripted): ContentPart[] {
  return collect(events)?.parts ?? [];
}

const serverCall = (number: number, query: string): ContentPart => ({
  type: "tool-call",
  id: `${ID}${number}`,
  name: "web_search",
  serverSide: true,
  arguments: JSON.stringify({ query }),
});
const result = (number: number, results: SearchHit[] = [HIT]): ContentPart => ({
  type: "search-result",
  callId: `${ID}${number}`,
  results,
});
const refused = (number: number, errorCode: string): ContentPart => ({
  type: "search-result",
  callId: `${ID}${number}`,
  results: [],
  errorCode,
});

function lastMessages({ asked }: Scripted): Message[] {
  return (asked.at(-1) as GenerationRequest).messages;
}

describe("an answer with a search", () => {
  test("has call and result between what the model says before and after", async () => {
    const scripted = await run([
      turn([{ type: "reasoning", text: "hm" }, text("I look."), search("cats")]),
      turn([text("Cats purr.")]),
    ]);
    expect(partsOf(scripted)).toEqual([
      { type: "reasoning", text: "hm" },
      text("I look."),
      serverCall(0, "cats"),
      result(0),
      text("Cats purr."),
    ]);
    expect(collect(scripted.events)).toMatchObject({ id: "backend", createdAt: 7, finish: { reason: "stop" } });
    expect(scripted.queries.map(({ query }) => query)).toEqual(["cats"]);
  });

  test("the model sees a function, its call and the results", async () => {
    const scripted = await run([turn([text("I look."), search("cats")]), turn([text("Cats purr.")])]);
    const [first, second] = scripted.asked as [GenerationRequest, GenerationRequest];
    expect(first.tools).toMatchObject([
      { kind: "function", name: "web_search", parameters: { required: ["query"] } },
      { kind: "function", name: "own" },
    ]);
    expect(first.stream).toBe(true);
    expect(second.tools).toEqual(first.tools);
    expect(second.messages.slice(0, -2)).toEqual(first.messages);
    const [said, told] = second.messages.slice(-2) as [Message, Message];
    expect(said).toEqual({ role: "assistant", parts: [text("I look."), search("cats")] });
    expect(told.role).toBe("user");
    expect(told.parts).toMatchObject([{ type: "tool-result", callId: "call_cats" }]);
    const shown = JSON.stringify(told);
    for (const piece of ["One", "https://a.test/1", "first text", "May 1, 2026"]) expect(shown).toContain(piece);
  });

  test("text is handed on while the model still writes", async () => {
    const gate = Promise.withResolvers<void>();
    const events = emulateSearch({
      request: request(),
      async *callModel() {
        yield* turn([text("now")]).slice(0, 3);
        await gate.promise;
      },
      provider: { name: "none", search: () => Promise.reject(new Error("nobody searches")) },
      limits: { maxResults: 1, maxRounds: 1 },
      nonce: NONCE,
      signal: new AbortController().signal,
      cites: false,
    });
    expect((await events.next()).value).toMatchObject({ type: "start" });
    expect((await events.next()).value).toMatchObject({ type: "part-start" });
    expect((await events.next()).value).toEqual({ type: "delta", index: 0, text: "now" });
    gate.resolve();
    await events.return();
  });

  test("the wishes of the tool reach the service", async () => {
    const tool = {
      allowedDomains: ["a.test"],
      blockedDomains: ["b.test"],
      userLocation: { country: "DE", city: 7, timezone: "Europe/Berlin" },
    };
    const scripted = await run([turn([search("cats")]), turn([text("done")])], { request: request({}, tool) });
    expect(scripted.queries[0]?.options).toMatchObject({
      count: 3,
      allowedDomains: ["a.test"],
      blockedDomains: ["b.test"],
      location: { country: "DE", timezone: "Europe/Berlin" },
    });
    expect(scripted.queries[0]?.options.location).not.toHaveProperty("city");
  });

  test("counts are added up, and searches counted", async () => {
    const scripted = await run([
      turn([search("a")], undefined, { input: { total: 10, cacheRead: 4 }, output: { total: 2, reasoning: 1 } }),
      turn([search("b")]),
      turn([text("done")], undefined, { input: { total: 20 }, output: { total: 3 } }),
    ]);
    expect(scripted.events.filter(({ type }) => type === "usage")).toEqual([
      {
        type: "usage",
        usage: { input: { total: 30, cacheRead: 4 }, output: { total: 5, reasoning: 1 }, webSearches: 2 },
      },
    ]);
  });

  test("several searches of one turn are made one after the other", async () => {
    const scripted = await run([turn([search("a"), search("b")]), turn([text("done")])]);
    expect(partsOf(scripted)).toEqual([serverCall(0, "a"), result(0), serverCall(1, "b"), result(1), text("done")]);
    expect(lastMessages(scripted).slice(-1)[0]?.parts).toMatchObject([{ callId: "call_a" }, { callId: "call_b" }]);
  });

  test("two calls with one id keep their own arguments", async () => {
    const scripted = await run([turn([search("a", "same"), search("b", "same")]), turn([text("done")])]);
    expect(lastMessages(scripted).at(-2)?.parts).toEqual([search("a", "same"), search("b", "same")]);
  });

  test("what the model says behind its call comes behind the result", async () => {
    const scripted = await run([turn([search("a"), text("meanwhile")]), turn([text("done")])]);
    expect(partsOf(scripted)).toEqual([serverCall(0, "a"), result(0), text("meanwhile"), text("done")]);
  });

  test("without a search the answer is the model's own", async () => {
    const usage = { input: { total: 1 }, output: { total: 1 } };
    const events = turn([text("hello")], "length", usage);
    expect((await run([events])).events).toEqual(events);
  });
});

describe("the client's own tools", () => {
  test("a turn that calls both ends with the client's calls, behind the results", async () => {
    const scripted = await run([turn([search("a"), call("call_1", "own", { x: 1 })])]);
    expect(partsOf(scripted)).toEqual([serverCall(0, "a"), result(0), call("call_1", "own", { x: 1 })]);
    expect(collect(scripted.events)?.finish).toEqual({ reason: "tool-calls" });
    expect(scripted.asked).toHaveLength(1);
  });

  test("calls before the search are streamed at once", async () => {
    const scripted = await run([turn([call("call_1", "own", { x: 1 }), search("a")])]);
    expect(partsOf(scripted).map(({ type }) => type)).toEqual(["tool-call", "tool-call", "search-result"]);
    expect(collect(scripted.events)?.finish).toEqual({ reason: "tool-calls" });
  });

  test("a function called as the search tool keeps its name", async () => {
    const asked = request({ tools: [TOOL, { kind: "function", name: "web_search" }] });
    const scripted = await run([turn([call("c", "web_search", { q: 1 }), call("s", "web_search_2", { query: "a" })])], {
      request: asked,
    });
    expect(scripted.asked[0]?.tools.map(({ name }) => name)).toEqual(["web_search_2", "web_search"]);
    expect(partsOf(scripted)).toEqual([call("c", "web_search", { q: 1 }), serverCall(0, "a"), result(0)]);
  });

  const choices: [given: ToolChoice, first: ToolChoice | undefined, later: ToolChoice | undefined][] = [
    [{ type: "auto" }, { type: "auto" }, { type: "auto" }],
    [{ type: "required" }, { type: "required" }, { type: "auto" }],
    [{ type: "tool", name: "web_search" }, { type: "tool", name: "web_search" }, { type: "auto" }],
    [
      { type: "tool", name: "own" },
      { type: "tool", name: "own" },
      { type: "tool", name: "own" },
    ],
    [
      { type: "allowed", mode: "required", names: ["web_search"] },
      { type: "allowed", mode: "required", names: ["web_search"] },
      { type: "none" },
    ],
  ];
  test.each(choices)("the choice %j", async (toolChoice, first, later) => {
    const scripted = await run([turn([search("a")]), turn([text("done")])], {
      request: request({ toolChoice, parallelToolCalls: false }),
      limits: { maxResults: 1, maxRounds: 1 },
    });
    expect(scripted.asked.map(({ toolChoice: sent }) => sent)).toEqual([first, later]);
    expect(scripted.asked[1]?.tools).toEqual([OWN]);
    expect(scripted.asked[1]?.parallelToolCalls).toBe(false);
  });

  test("tool choice none means no search", async () => {
    const scripted = await run([turn([search("a"), text("done")])], {
      request: request({ tools: [TOOL], toolChoice: { type: "none" }, parallelToolCalls: true }),
    });
    expect(scripted.asked).toHaveLength(1);
    expect(scripted.asked[0]?.tools).toEqual([]);
    expect(scripted.asked[0]).not.toHaveProperty("toolChoice");
    expect(scripted.asked[0]).not.toHaveProperty("parallelToolCalls");
    expect(scripted.queries).toEqual([]);
  });
});

describe("limits", () => {
  test("after the last round the tool is gone, and the model has to answer", async () => {
    const scripted = await run([turn([search("a")]), turn([search("b")]), turn([text("done")])], {
      limits: { maxResults: 1, maxRounds: 2 },
    });
    expect(scripted.asked.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ["web_search", "own"],
      ["web_search", "own"],
      ["own"],
    ]);
    expect(partsOf(scripted).at(-1)).toEqual(text("done"));
  });

  test("a model that goes on calling is stopped", async () => {
    const scripted = await run([turn([search("again")])], { limits: { maxResults: 1, maxRounds: 2 } });
    expect(scripted.asked).toHaveLength(3);
    expect(scripted.queries).toHaveLength(2);
    expect(partsOf(scripted).at(-1)).toEqual(refused(2, "max_uses_exceeded"));
    expect(collect(scripted.events)?.finish).toEqual({ reason: "stop" });
  });

  test("max_uses", async () => {
    const scripted = await run([turn([search("a")]), turn([search("b"), search("c")]), turn([text("done")])], {
      request: request({}, { maxUses: 2 }),
    });
    expect(partsOf(scripted).filter(({ type }) => type === "search-result")).toEqual([
      result(0),
      result(1),
      refused(2, "max_uses_exceeded"),
    ]);
    expect(collect(scripted.events)?.usage?.webSearches).toBe(2);
    expect(lastMessages(scripted).at(-1)?.parts).toMatchObject([{ callId: "call_b" }, { isError: true }]);
  });

  test("many calls in one turn", async () => {
    const calls = Array.from({ length: 9 }, (_, index) => search(`q${index}`));
    const scripted = await run([turn(calls), turn([text("done")])]);
    expect(scripted.queries).toHaveLength(5);
    expect(partsOf(scripted).filter((part) => part.type === "search-result" && part.errorCode)).toHaveLength(4);
  });

  test("calls of a turn that was cut off are not searched", async () => {
    const scripted = await run([turn([text("I"), call("s", "web_search", '{"que')], "length")]);
    expect(partsOf(scripted)).toEqual([text("I")]);
    expect(collect(scripted.events)?.finish).toEqual({ reason: "length" });
    expect(scripted.queries).toEqual([]);
  });
});

describe("failures", () => {
  test("of the service are told to the model and the client, and the answer goes on", async () => {
    const scripted = await run([turn([search("a")]), turn([text("I could not look.")])], {
      find: () => ({ ok: false, errorCode: "unavailable", reason: "HTTP 500" }),
    });
    expect(partsOf(scripted)).toEqual([serverCall(0, "a"), refused(0, "unavailable"), text("I could not look.")]);
    const [told] = lastMessages(scripted).at(-1)?.parts ?? [];
    expect(told).toMatchObject({ type: "tool-result", callId: "call_a", isError: true });
    expect(JSON.stringify(told)).not.toContain("500");
    expect(scripted.failures).toEqual(["unavailable: HTTP 500"]);
    expect(scripted.events.some(({ type }) => type === "usage")).toBe(false);
  });

  test.each(["", "no json", "[]", "{}", '{"query":7}', '{"query":" "}', '{"q":"x"}'])("arguments %p", async (input) => {
    const scripted = await run([turn([call("s", "web_search", input)]), turn([text("done")])]);
    const [shown, told] = partsOf(scripted);
    expect(told).toEqual(refused(0, "invalid_tool_input"));
    // Clients parse the arguments, and so do templates of models.
    expect(JSON.parse(shown?.type === "tool-call" ? shown.arguments : "")).toBeObject();
    const [replayed] = lastMessages(scripted).at(-2)?.parts ?? [];
    expect(JSON.parse(replayed?.type === "tool-call" ? replayed.arguments : "")).toBeObject();
    expect(scripted.queries).toEqual([]);
  });

  const failure = { message: "gone", status: 502 };

  test.each([
    ["told by the backend", [{ type: "failure", failure } as GenerationEvent]],
    ["a stream without an end", turn([text("half")]).slice(0, 3)],
    ["nothing at all", []],
  ])("%s in a later turn ends the answer", async (_name, events) => {
    const scripted = await run([turn([search("a")]), events]);
    expect(scripted.events.at(-1)).toMatchObject({ type: "failure", failure: { status: 502 } });
    expect(scripted.events.filter(({ type }) => type === "finish" || type === "failure")).toHaveLength(1);
    expect(scripted.events.filter(({ type }) => type === "start")).toHaveLength(1);
  });

  test("a client that leaves ends everything", async () => {
    const client = new AbortController();
    const scripted = await run([turn([search("a")]), turn([text("never")])], {
      signal: client.signal,
      find: () => {
        client.abort();
        return { ok: true, hits: [HIT] };
      },
    });
    expect(scripted.asked).toHaveLength(1);
    expect(scripted.events.some(({ type }) => type === "finish" || type === "failure")).toBe(false);
  });
});

describe("earlier turns", () => {
  test("are calls and results to the model", async () => {
    const history: Message[] = [
      { role: "user", parts: [text("hi")] },
      {
        role: "assistant",
        parts: [
          text("I look."),
          serverCall(0, "cats"),
          result(0),
          text("Purr."),
          serverCall(1, "dogs"),
          refused(1, "unavailable"),
          call("call_1", "own", {}),
          text("Bark."),
        ],
      },
      { role: "user", parts: [{ type: "tool-result", callId: "call_1", parts: [text("ok")] }] },
    ];
    const scripted = await run([turn([text("done")])], { request: request({ messages: history }) });
    const plain = (number: number, query: string) => call(`${ID}${number}`, "web_search", { query });
    expect(scripted.asked[0]?.messages).toMatchObject([
      history[0] as Message,
      { role: "assistant", parts: [text("I look."), plain(0, "cats")] },
      { role: "user", parts: [{ type: "tool-result", callId: `${ID}0` }] },
      { role: "assistant", parts: [text("Purr."), plain(1, "dogs")] },
      { role: "user", parts: [{ type: "tool-result", callId: `${ID}1`, isError: true }] },
      { role: "assistant", parts: [text("Bark."), call("call_1", "own", {})] },
      history[2] as Message,
    ]);
    expect(JSON.stringify(scripted.asked[0]?.messages)).toContain("first text");
    expect(JSON.stringify(scripted.asked[0]?.messages)).not.toContain("serverSide");
  });

  test("a call without its result, and a result without its call, are left out", async () => {
    const messages: Message[] = [{ role: "assistant", parts: [serverCall(0, "x"), result(7), text("Purr.")] }];
    const scripted = await run([turn([text("done")])], { request: request({ messages }) });
    expect(scripted.asked[0]?.messages).toEqual([{ role: "assistant", parts: [text("Purr.")] }]);
  });
});

test("places of the text that name a result get citations where they are wanted", async () => {
  const turns = [turn([text("https://a.test/1"), search("a")]), turn([text("See https://a.test/1.")])];
  const cited = await run(turns, { cites: true });
  // Before the search nothing was found, so nothing was cited.
  expect(partsOf(cited).filter(({ type }) => type === "text")).toEqual([
    text("https://a.test/1"),
    {
      type: "text",
      text: "See https://a.test/1.",
      citations: [{ url: HIT.url, title: HIT.title, startIndex: 4, endIndex: 20 }],
    },
  ]);
  expect(JSON.stringify((await run(turns)).events)).not.toContain("citation");
});

// ---- Whatever a model does, the order of events.ts holds.

const anyPart: fc.Arbitrary<ContentPart> = fc.oneof(
  fc.string({ maxLength: 8 }).map(text),
  fc.record({ type: fc.constant("reasoning" as const), text: fc.string({ maxLength: 8 }) }),
  fc.record({ type: fc.constant("refusal" as const), text: fc.string({ maxLength: 8 }) }),
  fc.nat(9).map((number) => search(`q${number}`)),
  fc.nat(9).map((number) => call(`call_x${number}`, "web_search", "not json")),
  fc.nat(9).map((number) => call(`call_own${number}`, "own", { number })),
);

/** The events of a turn whose neighbouring calls are written all at once, as some backends do. */
function interleaved(events: GenerationEvent[]): GenerationEvent[] {
  const isCall = new Set(
    events.flatMap((event) => (event.type === "part-start" && event.part.type === "tool-call" ? [event.index] : [])),
  );
  const ordered: GenerationEvent[] = [];
  let group: GenerationEvent[] = [];
  const flushGroup = () => {
    for (const type of ["part-start", "delta", "part-end"])
      ordered.push(...group.filter((event) => event.type === type));
    group = [];
  };
  for (const event of events) {
    if ("index" in event && isCall.has(event.index)) group.push(event);
    else {
      flushGroup();
      ordered.push(event);
    }
  }
  flushGroup();
  return ordered;
}

const anyTurn = fc
  .tuple(
    fc.array(anyPart, { maxLength: 6 }),
    fc.boolean(),
    fc.constantFrom<FinishReason | undefined>(undefined, "length"),
  )
  .map(([parts, isInterleaved, reason]) => (isInterleaved ? interleaved(turn(parts, reason)) : turn(parts, reason)));

function expectOrder(events: readonly GenerationEvent[]): void {
  expect(events.filter(({ type }) => type === "start")).toHaveLength(1);
  expect(events[0]?.type).toBe("start");
  expect(events.at(-1)?.type).toBe("finish");
  expect(events.filter(({ type }) => type === "finish")).toHaveLength(1);
  const open = new Map<number, boolean>();
  let next = 0;
  for (const event of events) {
    if (event.type === "part-start") {
      expect(event.index).toBe(next++);
      const isCall = event.part.type === "tool-call";
      for (const isOpenCall of open.values()) expect(isCall && isOpenCall).toBe(true);
      open.set(event.index, isCall);
    } else if (event.type === "part-end") {
      expect(open.delete(event.index)).toBe(true);
    } else if (event.type === "delta") {
      expect(open.has(event.index)).toBe(true);
      expect(event.text).not.toBe("");
    }
  }
  expect(open.size).toBe(0);
}

test("property: events keep their order, every search has its result, and rounds are bounded", async () => {
  const outcomes = fc.constantFrom<SearchOutcome>(
    { ok: true, hits: [HIT] },
    { ok: true, hits: [] },
    { ok: false, errorCode: "too_many_requests", reason: "HTTP 429" },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyTurn, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 3 }),
      outcomes,
      fc.boolean(),
      fc.option(fc.nat(2), { nil: undefined }),
      async (turns, maxRounds, outcome, cites, maxUses) => {
        const scripted = await run(turns, {
          cites,
          find: () => outcome,
          limits: { maxResults: 1, maxRounds },
          request: request({}, maxUses === undefined ? {} : { maxUses }),
        });
        expectOrder(scripted.events);
        expect(scripted.asked.length).toBeLessThanOrEqual(maxRounds + 1);
        expect(scripted.queries.length).toBeLessThanOrEqual(maxUses ?? 5 * maxRounds);
        const parts = partsOf(scripted);
        for (const [index, part] of parts.entries()) {
          if (part.type !== "tool-call" || part.serverSide !== true) continue;
          expect(parts[index + 1]).toMatchObject({ type: "search-result", callId: part.id });
        }
        // Nothing that the model wrote for the client is lost.
        const written = scripted.asked.flatMap((_, index) =>
          (collect(turns[Math.min(index, turns.length - 1)] as GenerationEvent[])?.parts ?? []).filter(
            (part) => part.type !== "tool-call" || part.name === "own",
          ),
        );
        const shown = parts.filter(
          (part) => part.type !== "search-result" && !(part.type === "tool-call" && part.serverSide),
        );
        const key = (part: ContentPart) => JSON.stringify({ ...part, citations: undefined });
        expect(shown.map(key).sort()).toEqual(written.map(key).sort());
      },
    ),
  );
});
