// Links and files in requests, through every format: what goes on as it came, what the operator opened, and what is refused.
// Every spelling of an address inside is tried in test/attacks/ssrf.test.ts.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

/** No resolver knows it. */
const NOWHERE = "https://pictures.invalid/cat.png";
const PNG = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");

interface Way {
  what: string;
  path: string;
  model: string;
  param: string;
  body(url: string): object;
}

const user = (...content: object[]) => [{ role: "user", content }];

const LINKS: Way[] = [
  {
    what: "chat",
    path: "/v1/chat/completions",
    model: "chat",
    param: "messages[0].content[0].image_url.url",
    body: (url) => ({ model: "chat", messages: user({ type: "image_url", image_url: { url } }) }),
  },
  {
    what: "responses",
    path: "/v1/responses",
    model: "responses",
    param: "input[0].content[0].image_url",
    body: (url) => ({ model: "responses", input: user({ type: "input_image", image_url: url }) }),
  },
  {
    what: "messages",
    path: "/v1/messages",
    model: "messages",
    param: "messages[0].content[0].source.url",
    body: (url) => ({
      model: "messages",
      max_tokens: 9,
      messages: user({ type: "image", source: { type: "url", url } }),
    }),
  },
  {
    what: "count_tokens",
    path: "/v1/messages/count_tokens",
    model: "messages",
    param: "messages[0].content[0].source.url",
    body: (url) => ({ model: "messages", messages: user({ type: "image", source: { type: "url", url } }) }),
  },
  {
    what: "countTokens of a whole request",
    path: "/v1beta/models/gemini:countTokens",
    model: "gemini",
    param: "generateContentRequest.contents[0].parts[0].fileData.fileUri",
    body: (fileUri) => ({
      generateContentRequest: {
        model: "models/gemini",
        contents: [{ parts: [{ fileData: { mimeType: "image/png", fileUri } }] }],
      },
    }),
  },
  ...["generateContent", "countTokens"].map(
    (method): Way => ({
      what: method,
      path: `/v1beta/models/gemini:${method}`,
      model: "gemini",
      param: "contents[0].parts[0].fileData.fileUri",
      body: (fileUri) => ({ contents: [{ parts: [{ fileData: { mimeType: "image/png", fileUri } }] }] }),
    }),
  ),
];

const FILES: Way[] = [
  {
    what: "chat",
    path: "/v1/chat/completions",
    model: "chat",
    param: "messages[0].content[0].file.file_data",
    body: (data) => ({
      model: "chat",
      messages: user({ type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` } }),
    }),
  },
  {
    what: "chat, without a URL around it",
    path: "/v1/chat/completions",
    model: "chat",
    param: "messages[0].content[0].file.file_data",
    body: (file_data) => ({ model: "chat", messages: user({ type: "file", file: { filename: "a.pdf", file_data } }) }),
  },
  {
    what: "responses",
    path: "/v1/responses",
    model: "responses",
    param: "input[0].content[0].file_data",
    body: (data) => ({
      model: "responses",
      input: user({ type: "input_file", filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` }),
    }),
  },
  {
    what: "messages",
    path: "/v1/messages",
    model: "messages",
    param: "messages[0].content[0].source.data",
    body: (data) => ({
      model: "messages",
      max_tokens: 9,
      messages: user({ type: "document", source: { type: "base64", media_type: "application/pdf", data } }),
    }),
  },
];

FILES.push({
  what: "generateContent",
  path: "/v1beta/models/gemini:generateContent",
  model: "gemini",
  param: "contents[0].parts[0].inlineData.data",
  body: (data) => ({ contents: [{ parts: [{ inlineData: { mimeType: "application/pdf", data } }] }] }),
});

const backend = bed.backend();
const pictures = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response(PNG, { headers: { "Content-Type": "image/png" } }),
});
afterAll(() => pictures.stop(true));

const config: ConfigDocument = {
  health_checks: { enabled: false },
  backends: [
    { name: "chat", type: "openai", url: backend.url, models: ["chat"], api_key: "sekret-1" },
    { name: "responses", type: "openai", url: backend.url, models: ["responses"], api_key: "sekret-1" },
    { name: "messages", type: "anthropic", url: backend.url, models: ["messages"], api_key: "sekret-2" },
    { name: "gemini", type: "gemini", url: backend.url, models: ["gemini"], api_key: "sekret-3" },
    { name: "fetched", type: "ollama", url: backend.url, models: ["fetched"] },
  ],
};

/** Written unlike any encoder would, so that what arrives shows whether it is the client's own. */
const written = (body: object) => JSON.stringify(body).replace('{"model":', '{ "model" :  ');

async function expectPassed(gateway: Gateway, { path, body }: Way, url: string): Promise<void> {
  const sent = written(body(url));
  const before = backend.requests.length;
  const response = await gateway.post(path, sent);
  await response.body?.cancel();
  expect(backend.requests).toHaveLength(before + 1);
  expect(backend.lastRequest.text).toBe(sent);
}

async function expectRefused(
  gateway: Gateway,
  { path, body, param }: Way,
  url: string,
  message: string,
): Promise<void> {
  const before = backend.requests.length;
  const response = await gateway.post(path, body(url));
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: Record<"type" | "status" | "message" | "param", string> };
  expect(error.type ?? error.status).toBe(path.startsWith("/v1beta") ? "INVALID_ARGUMENT" : "invalid_request_error");
  expect(error.message).toStartWith(`${param}: `);
  expect(error.message).toContain(message);
  if (!/messages|v1beta/.test(path)) expect(error.param).toBe(param);
  expect(backend.requests).toHaveLength(before);
}

describe("without hosts of the operator's", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await bed.gateway({ config });
  });

  test.each(LINKS.map((way) => [way.what, way] as const))(
    "%s: a link goes on as it came, and its name is not looked up",
    (_what, way) => expectPassed(gateway, way, NOWHERE),
  );

  test.each(LINKS.map((way) => [way.what, way] as const))("%s: a private link is refused", async (_what, way) => {
    for (const url of ["http://10.20.0.7/a.png", "http://0x0a140007/a.png", "http://images/a.png"]) {
      await expectRefused(gateway, way, url, "local, private or reserved");
    }
  });

  test.each(FILES.map((way) => [way.what, way] as const))("%s: a PDF is one by its content", async (_what, way) => {
    await expectPassed(gateway, way, Buffer.from("%PDF-1.7\n").toString("base64"));
    await expectRefused(gateway, way, Buffer.from("<html></html>").toString("base64"), "its content is not");
    await expectRefused(gateway, way, PNG.toString("base64"), "its content is not");
  });

  test.each(LINKS.filter(({ what }) => what === "chat" || what === "responses").map((way) => [way.what, way] as const))(
    "%s: a picture is what it is said to be",
    async (_what, way) => {
      await expectPassed(gateway, way, `data:image/png;base64,${PNG.toString("base64")}`);
      await expectRefused(gateway, way, `data:image/gif;base64,${PNG.toString("base64")}`, "its content is image/png");
    },
  );
});

test("hosts of the operator's are opened for all formats, and for what the gateway fetches, without a restart", async () => {
  await using gateway = await startGateway({ config });
  const [chat] = LINKS as [Way];
  const fetched = { ...chat, body: (url: string) => ({ ...chat.body(url), model: "fetched" }) };
  const picture = `http://127.0.0.1:${pictures.port}/a.png`;
  await expectRefused(gateway, fetched, picture, "local, private or reserved");

  const opened = { allowed_link_hosts: ["images", "10.20.0.0/16", "127.0.0.1"] };
  const changed = await new AdminClient(gateway).send("PATCH", "/admin/config/server", { body: opened });
  expect(changed.status).toBe(200);
  for (const way of LINKS) {
    for (const url of ["http://10.20.0.7/a.png", "http://images:8080/a.png"]) await expectPassed(gateway, way, url);
    await expectRefused(gateway, way, "http://10.21.0.7/a.png", "local, private or reserved");
  }
  const response = await gateway.post(fetched.path, fetched.body(picture));
  expect(response.status).toBe(200);
  expect(backend.lastRequest.text).toContain(PNG.toString("base64"));
});
