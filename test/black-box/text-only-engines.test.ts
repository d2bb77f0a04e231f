// Pictures and sound for engines that take neither: a mistake of the client, told as such, which nobody else pays for.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer, RecordedRequest } from "../support/fake-backend.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import type { Gateway } from "../support/start-gateway.ts";
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

describe.each([false, true])("stream: %p", (stream) => {
  test.each(CLIENTS)("%s: pictures are 400 in the engine's words, and text is answered", async (path, body) => {
    for (let turn = 0; turn < 5; turn++) {
      const answer = await gateway.post(path, { model: "m", stream, ...body });
      const { error } = (await answer.json()) as { error: { type: string; message: string } };
      expect(answer.status).toBe(400);
      expect(error.type).toBe("invalid_request_error");
      expect(error.message).toContain("image input is not supported");
      expect((await gateway.chat({ stream })).status).toBe(200);
    }
    expect(await gateway.backend("engine")).toMatchObject({ circuit: "closed", failed_requests: 0 });
  });
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
