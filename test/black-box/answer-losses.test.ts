// What of an answer a client's format cannot show is announced: in a header, in the log and in the metrics.

import { expect, test } from "bun:test";
import { chat, eventStream, sseEvent } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const PICTURE = {
  candidates: [
    {
      content: { role: "model", parts: [{ text: "Here." }, { inlineData: { mimeType: "image/png", data: "AA==" } }] },
      finishReason: "STOP",
    },
  ],
};

test("a picture that a Messages client cannot be shown", async () => {
  const backend = bed.backend({ models: ["g"] });
  await using gateway = await startGateway({
    config: {
      logging: { level: "debug" },
      backends: [{ name: "g", type: "gemini", url: backend.url, models: ["g"], api_key: "sekret" }],
    },
  });
  const ask = (more: object = {}) =>
    gateway.post("/v1/messages", { model: "g", max_tokens: 9, messages: [{ role: "user", content: "draw" }], ...more });

  backend.queue({ body: JSON.stringify(PICTURE) }, eventStream([sseEvent(PICTURE)]), { body: JSON.stringify(PICTURE) });
  const plain = await ask();
  expect(plain.headers.get("x-signalbox-dropped")).toBe("answer.images");
  expect(await plain.json()).toMatchObject({ content: [{ type: "text", text: "Here." }] });

  await (await ask({ stream: true })).text();
  const both = await ask({ service_tier: "auto", 'odd",\r\nname: x': 1 });
  const names = both.headers.get("x-signalbox-dropped") ?? "";
  expect(names).toContain("answer.images");
  expect(names).toMatch(/^[\w .,:/()[\]?-]+$/);

  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`unknown_field_${index}`, 1]));
  backend.queue({ body: JSON.stringify(PICTURE) });
  const bounded = (await ask(many)).headers.get("x-signalbox-dropped") ?? "";
  expect(bounded.length).toBeLessThanOrEqual(520);
  expect(bounded).toEndWith(", ...");

  const metrics = await (await gateway.fetch("/metrics")).text();
  expect(metrics).toContain('signalbox_translation_drops_total{feature="answer.images"} 4');
  await gateway.stop();
  const told = gateway.printed.logEntries.filter(({ msg }) => msg === "a translation could not carry all");
  expect(told.filter(({ dropped }) => JSON.stringify(dropped).includes("answer.images"))).toHaveLength(4);
});

test("an answer that lost nothing has no such header", async () => {
  const backend = bed.backend({ answer: chat("hello") });
  await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
  for (const path of ["/v1/messages", "/v1/chat/completions"]) {
    const body = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] };
    expect((await gateway.post(path, body)).headers.has("x-signalbox-dropped")).toBe(false);
  }
});

test("what only chat clients are shown, and a search whose call is in the answer before", async () => {
  const engine = bed.backend({ models: ["engine"] });
  const vendor = bed.backend({ models: ["claude"] });
  await using gateway = await startGateway({
    config: {
      health_checks: { enabled: false },
      backends: [
        { name: "engine", type: "generic", url: engine.url, models: ["engine"] },
        { name: "claude", type: "anthropic", url: vendor.url, models: ["claude"], api_key: "sekret" },
      ],
    },
  });
  const own = {
    annotations: [{ type: "file", file: { hash: "h", name: "a.pdf" } }],
    executed_tools: [{ index: 0, type: "search", arguments: "{}" }],
  };
  const message = { role: "assistant", content: "Hello", ...own };
  engine.answer = { body: JSON.stringify({ id: "a", choices: [{ index: 0, message, finish_reason: "stop" }] }) };
  vendor.answer = {
    body: JSON.stringify({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude",
      content: [
        { type: "web_search_tool_result", tool_use_id: "srvtoolu_0", content: [] },
        { type: "server_tool_use", id: "srvtoolu_1", name: "code_execution", input: { code: "1" } },
        { type: "text", text: "Hello" },
      ],
      stop_reason: "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
  };

  const answered = await gateway.post("/v1/responses", { model: "engine", input: "x" });
  expect(answered.headers.get("x-signalbox-dropped")).toBe("answer.items");
  const continued = await gateway.post("/v1/responses", { model: "claude", input: "x" });
  expect(continued.headers.get("x-signalbox-dropped")).toBe("answer.searches, answer.items");
  const { output } = (await continued.json()) as { output: { type: string }[] };
  expect(output.map(({ type }) => type)).toEqual(["message"]);

  const delta = (value: object, finish_reason: string | null = null) =>
    sseEvent({ id: "a", choices: [{ index: 0, delta: value, finish_reason }] });
  engine.answer = eventStream([
    delta({ content: "Hel" }),
    delta(own),
    delta({ content: "lo" }),
    delta({}, "stop"),
    "data: [DONE]\n\n",
  ]);
  for (const path of ["/v1/messages", "/v1/responses"]) {
    const body = {
      model: "engine",
      max_tokens: 9,
      messages: [{ role: "user", content: "x" }],
      input: "x",
      stream: true,
    };
    expect(await (await gateway.post(path, body)).text()).not.toContain("a.pdf");
  }
  const metrics = await (await gateway.fetch("/metrics")).text();
  expect(metrics).toContain('signalbox_translation_drops_total{feature="answer.items"} 4');
});
