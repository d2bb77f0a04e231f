// Pictures and sound for engines that take neither: a mistake of the client, told as such, which nobody else pays for.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer, FakeBackend, RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const HINT = "hint: if this is unexpected, you may need to provide the mmproj";
const NO_IMAGES = `image input is not supported - ${HINT}`;
const PICTURE = "data:image/png;base64,iVBORw0KGgo=";

/** As llama.cpp without a projector. */
function textOnly(request: RecordedRequest): Answer {
  if (request.text.includes('"image_url"')) return failure(500, NO_IMAGES, { type: "server_error", code: 500 });
  return request.json<{ stream?: boolean }>().stream === true ? chatStream(["hello"]) : chat("hello");
}

const engine = bed.backend({ models: ["m"], answer: textOnly });
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      circuit_breaker: { enabled: true, failure_threshold: 2 },
      health_checks: { enabled: false },
      retry: { base_delay: "1ms" },
      backends: [{ name: "engine", type: "llamacpp", url: engine.url }],
    },
  });
});

beforeEach(() => engine.reset());

const CHAT = [
  {
    role: "user",
    content: [
      { type: "text", text: "?" },
      { type: "image_url", image_url: { url: PICTURE } },
    ],
  },
];
const MESSAGES = [
  {
    role: "user",
    content: [
      { type: "text", text: "?" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PICTURE.slice(22) } },
    ],
  },
];
const RESPONSES = [{ role: "user", content: [{ type: "input_image", image_url: PICTURE, detail: "auto" }] }];

const CLIENTS: readonly [path: string, body: Record<string, unknown>][] = [
  ["/v1/chat/completions", { messages: CHAT }],
  ["/v1/messages", { max_tokens: 9, messages: MESSAGES }],
  ["/v1/responses", { input: RESPONSES }],
];

test("an engine that tells nothing is asked once: its words are 400, and remembered", async () => {
  for (const stream of [false, true]) {
    for (const [path, body] of CLIENTS) {
      for (let turn = 0; turn < 3; turn++) {
        const answer = await gateway.post(path, { model: "m", stream, ...body });
        const { error } = (await answer.json()) as { error: { type: string; message: string } };
        expect([answer.status, error.type]).toEqual([400, "invalid_request_error"]);
        expect(error.message).toMatch(/^image input is not supported|^The model 'm' takes no pictures/);
        expect((await gateway.chat({ stream })).status).toBe(200);
      }
    }
  }
  const images = [PICTURE.slice(22)];
  for (const [path, body] of [
    ["/api/chat", { messages: [{ role: "user", content: "?", images }] }],
    ["/api/generate", { prompt: "?", images }],
  ] as const) {
    const answer = await gateway.post(path, { model: "m", ...body });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(/^The model 'm' takes no pictures/) });
  }
  expect(engine.requests.filter(({ text }) => text.includes(PICTURE))).toHaveLength(1);
  expect(await gateway.backend("engine")).toMatchObject({ circuit: "closed", failed_requests: 0 });
});

test("what is too long for the engine is 400, too, with the code that clients know", async () => {
  engine.reset(failure(500, "Context size has been exceeded.", { type: "server_error", code: 500 }));
  for (let turn = 0; turn < 5; turn++) {
    const error = await expectError(await gateway.chat(), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", code: "context_length_exceeded" });
  }
  expect(engine.requests).toHaveLength(5);
  expect(await gateway.backend("engine")).toMatchObject({ circuit: "closed", failed_requests: 0 });
});

describe("engines that tell what they take", () => {
  const listed = (id: string, more: object): Answer => ({
    body: JSON.stringify({ object: "list", data: [{ id, object: "model", owned_by: "somebody", ...more }] }),
  });
  const takes = (...input_modalities: string[]) => ({ architecture: { input_modalities } });
  const json = (value: unknown): Answer => ({ body: JSON.stringify(value) });

  const inList = bed.backend({ models: ["in-list"] });
  inList.probeAnswer = listed("in-list", takes("text"));
  const inProps = bed.backend({ models: ["in-props"] });
  const listsOnly = inProps.probeAnswer as (request: RecordedRequest) => Answer;
  inProps.probeAnswer = (request) =>
    request.path === "/props" ? json({ modalities: { vision: false, audio: true } }) : listsOnly(request);
  const inShow = bed.backend({ models: ["sees", "blind"] });
  const listsBoth = inShow.probeAnswer as (request: RecordedRequest) => Answer;
  inShow.probeAnswer = (request) => {
    if (request.path !== "/api/show") return listsBoth(request);
    const capabilities = request.json<{ model: string }>().model === "sees" ? ["completion", "vision"] : ["completion"];
    return json({ capabilities });
  };
  const configured = bed.backend({ models: ["configured"] });
  const twins = [
    bed.backend({ models: ["twin"] }),
    bed.backend({ models: ["twin"] }),
    bed.backend({ models: ["twin"] }),
  ];
  const [blind, seeing, silent] = twins as [FakeBackend, FakeBackend, FakeBackend];
  blind.probeAnswer = listed("twin", takes("text"));
  seeing.probeAnswer = listed("twin", takes("text", "image"));
  let telling: Gateway;

  beforeAll(async () => {
    telling = await bed.gateway({
      config: {
        retry: { base_delay: "1ms" },
        routing: { selection_strategy: "RoundRobin" },
        backends: [
          { name: "in-list", url: inList.url },
          { name: "in-props", type: "llamacpp", url: inProps.url },
          { name: "in-show", type: "ollama", url: inShow.url },
          {
            name: "configured",
            url: configured.url,
            model_configs: [{ id: "configured", metadata: { capabilities: ["chat"] } }],
          },
          { name: "blind", url: blind.url },
          { name: "seeing", url: seeing.url },
          { name: "silent", url: silent.url },
        ],
      },
    });
  });

  const audio = [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "QUJD", format: "mp3" } }] }];
  const asked = (backend: FakeBackend) => backend.requests.filter(({ path }) => path.includes("/chat/")).length;

  test.each([
    ["in-list", inList],
    ["in-props", inProps],
    ["blind", inShow],
    ["configured", configured],
  ])("%s: a picture is 400 before the engine is asked, and text is answered", async (model, backend) => {
    const error = await expectError(await telling.chat({ model, messages: CHAT }), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", code: "unsupported_content" });
    expect(error.message).toContain(`The model '${model}' takes no pictures`);
    expect(asked(backend)).toBe(0);
    expect((await telling.chat({ model })).status).toBe(200);
  });

  test("what is said to be taken is sent", async () => {
    expect((await telling.chat({ model: "sees", messages: CHAT })).status).toBe(200);
    expect((await telling.chat({ model: "in-props", messages: audio })).status).toBe(200);
  });

  test("of several backends, those that take pictures get them, and text goes to all", async () => {
    for (const twin of twins) twin.reset();
    for (let turn = 0; turn < 6; turn++) {
      expect((await telling.chat({ model: "twin", messages: CHAT })).status).toBe(200);
    }
    expect(twins.map(asked)).toEqual([0, 6, 0]);
    for (let turn = 0; turn < 6; turn++) expect((await telling.chat({ model: "twin" })).status).toBe(200);
    expect(twins.map(asked)).toEqual([2, 8, 2]);
  });
});
