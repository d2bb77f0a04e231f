// A new format is a folder and a line: a copy of the program that has one more of both, and an endpoint for it, serves its
// clients by backends of another format, and passes what a backend of its own says.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ChangedCopy, changedCopy } from "../support/changed-copy.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { chat, chatStream, eventStream, failure } from "../support/openai-answers.ts";

setDefaultTimeout(60_000);

const FOLDER = { file: "test/architecture/throw-away-format/index.ts", as: "src/protocols/throw-away/index.ts" };
const REGISTRY = "src/protocols/registry.ts";
const LINE = [
  {
    file: REGISTRY,
    before: 'import { messages } from "./messages/index.ts";',
    insert: importOf("throwAway", "./throw-away"),
  },
  { file: REGISTRY, before: "  messages,", insert: '  "throw-away": throwAway,' },
];
const ROUTES = "src/api/routes.ts";
const ENDPOINT = [
  {
    file: ROUTES,
    before: 'import { readChatRequest } from "../protocols/chat/read-request.ts";',
    insert: importOf("readThrowAwayRequest", "../protocols/throw-away"),
  },
  {
    file: ROUTES,
    before: '    ...generating(["/v1/embed_sparse", "/embed_sparse"], parts, {',
    insert: `...generating(["/throw/away"], parts, {
      operation: "throw-away", maxBodyBytes: 1000, read: readThrowAwayRequest, id: "throwAway", summary: "Thrown away",
      request: "CompletionRequest", reply: "Completion", example: {} }),`,
  },
];
/** A kind of backend that speaks it. */
const NATIVE = {
  file: "src/backends/kinds.ts",
  before: '  "ollama-api": "/api/chat",',
  insert: '  "throw-away": "/native",',
};

function importOf(name: string, folder: string): string {
  return `import { ${name} } from "${folder}/index.ts";`;
}

describe("a folder and a line", () => {
  let copy: ChangedCopy;
  let gateway: ProcessGateway;
  const other = new FakeBackend();
  const native = new FakeBackend();

  beforeAll(async () => {
    copy = changedCopy([...LINE, ...ENDPOINT, NATIVE], FOLDER);
    gateway = await startGatewayProcess({
      command: [copy.command],
      config: {
        backends: [
          { name: "other", type: "vllm", url: other.url, models: ["far"] },
          { name: "native", type: "ollama", url: native.url, models: ["near"] },
        ],
        global_prompts: { default: "Be brief.", separator: " " },
      },
    });
  });
  afterAll(async () => {
    await gateway?.close();
    other.stop();
    native.stop();
    copy?.remove();
  });

  const ask = (model: string, stream = false) => gateway.post("/throw/away", { model, say: "hi", stream });

  test("are all that the compiler asks for", async () => {
    expect(await copy.typeErrors()).toEqual([]);
  });

  test("are answered by a backend of another format", async () => {
    other.answer = chat("from afar");
    expect(await (await ask("far")).json()).toEqual({ model: "far", said: "from afar" });
    expect(other.lastRequest.json()).toMatchObject({
      model: "far",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hi" },
      ],
    });
  });

  test("are streamed from a backend of another format", async () => {
    other.answer = chatStream(["a", "b"]);
    expect(await (await ask("far", true)).text()).toBe(
      'data: {"word":"a"}\n\ndata: {"word":"b"}\n\ndata: {"over":true}\n\n',
    );
  });

  test("pass as they came to a backend of their own, but for the prompt", async () => {
    const answer = '{ "model": "near",  "said": "as it came", "n": 1.0 }';
    native.answer = { body: answer };
    expect(await (await ask("near")).text()).toBe(answer);
    const { path, text } = native.lastRequest;
    expect([path, text]).toEqual(["/native", '{"model":"near","say":"Be brief. hi","stream":false}']);
  });

  test("stream through as they came, and a break is told", async () => {
    const words = ["event: hush\ndata: 1\n\n", 'data: {"word": "x"}\n\n'];
    const end = 'data: {"over": 1.0}\n\n';
    native.answer = eventStream([...words, end]);
    expect(await (await ask("near", true)).text()).toBe([...words, end].join(""));
    native.answer = eventStream(words);
    const broken = await (await ask("near", true)).text();
    expect(broken).toStartWith(words.join(""));
    expect(broken).toContain('"type":"backend_connection_error"');
  });

  test("have errors", async () => {
    expect((await gateway.post("/throw/away", { model: "near", say: 5 })).status).toBe(400);
    native.answer = failure(418);
    expect((await ask("near")).status).toBe(418);
  });
});
