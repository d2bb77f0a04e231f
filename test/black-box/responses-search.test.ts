// Web search tools of Responses clients on models whose engines cannot search, through the official SDK.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";

const FOUND: Answer = {
  body: JSON.stringify({
    organic: [
      { title: "Cats", link: "https://cats.test/purr", snippet: "Cats purr at 25 hertz." },
      { title: "Dogs", link: "https://dogs.test/", snippet: "Dogs do not." },
    ],
  }),
};

const bed = createTestBed();
const engine = bed.backend();
const service = bed.backend({ answer: FOUND });
let gateway: Gateway;
let openai: OpenAI;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1, base_delay: "1ms" },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [{ name: "engine", type: "vllm", url: engine.url, models: ["m"] }],
      web_search: { provider: "serper", api_key: "sekret-search", base_url: service.url, max_rounds: 3 },
    },
  });
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "any", maxRetries: 0 });
});

beforeEach(() => {
  engine.reset(chatStream(["Nothing more."]));
  service.reset(FOUND);
});

/** A turn that says something and calls a tool. */
function calling(text: string, name = "web_search", input: object = { query: "purring" }): Answer {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    sseEvent({ id: "chatcmpl-1", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] });
  const call = { index: 0, id: `call_${name}`, type: "function", function: { name, arguments: JSON.stringify(input) } };
  return eventStream([
    chunk({ role: "assistant", content: "" }),
    ...(text === "" ? [] : [chunk({ content: text })]),
    chunk({ tool_calls: [call] }),
    chunk({}, "tool_calls"),
    "data: [DONE]\n\n",
  ]);
}

const ASKED = { model: "m", input: "Do cats purr?", tools: [{ type: "web_search" as const }] };
const ANSWER = "They do, says https://cats.test/purr.";
const CITED = "https://cats.test/purr";

interface ChatBody {
  messages: { role: string; content: unknown; tool_calls?: unknown[] }[];
  tools?: { type: string; function: { name: string } }[];
}

const turns = (): ChatBody[] => engine.requests.map((request) => request.json<ChatBody>());

function expectAnswer(response: OpenAI.Responses.Response, before = ""): void {
  const [search, message] = before === "" ? response.output : response.output.slice(1);
  expect(search).toMatchObject({
    type: "web_search_call",
    status: "completed",
    action: { type: "search", query: "purring" },
  });
  if (message?.type !== "message") throw new Error(`no message: ${JSON.stringify(response.output)}`);
  const [part] = message.content;
  if (part?.type !== "output_text") throw new Error("no text");
  expect(part.text).toBe(ANSWER);
  expect(part.annotations).toHaveLength(1);
  const [annotation] = part.annotations;
  if (annotation?.type !== "url_citation") throw new Error("no citation");
  expect(annotation).toMatchObject({ url: CITED, title: "Cats" });
  expect(part.text.slice(annotation.start_index, annotation.end_index)).toBe(CITED);
  expect(response).toMatchObject({ status: "completed", output_text: before + ANSWER });
}

describe.each(["web_search", "web_search_preview"] as const)("%s", (type) => {
  test("plain: the search, the answer, and the citation in it", async () => {
    engine.queue(calling(""), chatStream(["They do, says https://cats", ".test/purr."]));
    expectAnswer(await openai.responses.create({ ...ASKED, tools: [{ type }] }));
    expect(service.requests).toHaveLength(1);
    expect(turns().map(({ tools }) => tools?.map((tool) => tool.function.name))).toEqual([
      ["web_search"],
      ["web_search"],
    ]);
    expect(JSON.stringify(turns()[1]?.messages)).toContain("Cats purr at 25 hertz.");
  });

  test("streamed: the events of the search in their order, then those of the message", async () => {
    engine.queue(calling("Let me look."), chatStream(["They do, says https://cats", ".test/purr."]));
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await openai.responses.create({ ...ASKED, tools: [{ type }], stream: true })) {
      events.push(event);
    }
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const types = events.map((event) => event.type);
    const start = types.indexOf("response.web_search_call.in_progress") - 1;
    expect(types.slice(start, start + 5)).toEqual([
      "response.output_item.added",
      "response.web_search_call.in_progress",
      "response.web_search_call.searching",
      "response.web_search_call.completed",
      "response.output_item.done",
    ]);
    const cited = types.indexOf("response.output_text.annotation.added");
    expect(cited).toBeGreaterThan(types.lastIndexOf("response.output_text.delta"));
    expect(types.lastIndexOf("response.output_text.done")).toBeGreaterThan(cited - 2);
    const last = events.at(-1);
    if (last?.type !== "response.completed") throw new Error(`it ended with ${last?.type}`);
    expectAnswer({ ...last.response, output_text: `Let me look.${ANSWER}` }, "Let me look.");
  });
});

test("sources are listed for who asks for them", async () => {
  engine.queue(calling(""), chatStream([ANSWER]));
  const response = await openai.responses.create({ ...ASKED, include: ["web_search_call.action.sources"] });
  expect(response.output[0]).toMatchObject({
    action: {
      sources: [
        { type: "url", url: CITED },
        { type: "url", url: "https://dogs.test/" },
      ],
    },
  });
});

test("an answer is remembered whole, and the next one goes on from it", async () => {
  for (const stream of [false, true]) {
    engine.reset(chatStream(["Nothing more."]));
    engine.queue(calling("Let me look."), chatStream([ANSWER]));
    let id: string | undefined;
    if (stream) {
      for await (const event of await openai.responses.create({ ...ASKED, stream: true })) {
        if (event.type === "response.completed") id = event.response.id;
      }
    } else id = (await openai.responses.create(ASKED)).id;
    engine.reset(chat("Dogs do not."));
    await openai.responses.create({ model: "m", input: "And dogs?", previous_response_id: id as string });
    const texts = turns()[0]
      ?.messages.map(({ content }) => JSON.stringify(content))
      .join();
    for (const said of ["Do cats purr?", "Let me look.", ANSWER, "And dogs?"]) expect(texts).toContain(said);
  }
});

test("a function of the client's is called behind the search, and the client's to run", async () => {
  const tools = [
    { type: "web_search" as const },
    { type: "function" as const, name: "feed", parameters: { type: "object", properties: {} }, strict: false },
  ];
  engine.queue(calling(""), calling("", "feed", {}));
  const response = await openai.responses.create({ ...ASKED, tools, tool_choice: { type: "web_search_preview" } });
  expect(response.output.map(({ type }) => type)).toEqual(["web_search_call", "function_call"]);
  expect(turns()[0]).toMatchObject({ tool_choice: { function: { name: "web_search" } } });
});

test("a search that may not leave the vendor's index is not made", async () => {
  const tool = { type: "web_search", external_web_access: false } as never;
  const feed = { type: "function" as const, name: "feed", parameters: {}, strict: false };
  engine.reset(chat("Nobody knows."));
  await openai.responses.create({ ...ASKED, tools: [tool, feed] });
  expect(turns()[0]?.tools?.map((each) => each.function.name)).toEqual(["feed"]);
  expect(service.requests).toHaveLength(0);
});

test("a search that fails is told as failed, and the model answers all the same", async () => {
  service.reset(failure(500));
  engine.queue(calling(""), chatStream(["I do not know."]));
  const response = await openai.responses.create(ASKED);
  expect(response.output[0]).toMatchObject({ type: "web_search_call", status: "failed" });
  expect(response.output_text).toBe("I do not know.");
});

test("an error in a later turn keeps the numbers rising", async () => {
  engine.queue(calling(""), failure(500));
  const response = await gateway.post("/v1/responses", { ...ASKED, stream: true });
  const numbers = (await readSse(response)).data.map(
    (data) => (JSON.parse(data) as { sequence_number: number }).sequence_number,
  );
  expect(numbers).toEqual(numbers.map((_, index) => index));
});
