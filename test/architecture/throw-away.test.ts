// A type of backend is a name and a row, a preset one row, a format a folder and a line, a part a file and a line: a copy of the
// program that has one more of each passes the compiler and serves requests by them.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { type ChangedCopy, changedCopy } from "../support/changed-copy.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { chat, chatStream, eventStream, failure, models } from "../support/openai-answers.ts";

/** The compiler reads all of the program, beside other tests. */
setDefaultTimeout(300_000);

const KINDS = "src/backends/kinds.ts";
const NAME_OF_KIND = { file: "src/names.ts", before: "  generic: [],", insert: '  throwaway: ["throw-away"],' };
const ROW_OF_KIND = {
  file: KINDS,
  before: '  generic: openAiStyle("generic", {',
  insert: `  throwaway: openAiStyle("throwaway", {
    auth: { header: "x-throwaway-key", scheme: "bare" },
    paths: { chat: "/talk" },
    modelList: { path: "/talkers", pages: { query: "most=9", cursor: "more", parameter: "from" } },
    probe: probe("/alive"),
    ownedBy: "throwaway",
    chat: { ...ENGINE_CHAT, isOldLimit: true },
  }),`,
};

const PRESET = {
  file: "src/presets.ts",
  before: "  sglang: {",
  insert: `  oneliner: { spellings: ["one-liner"], url: "https://one.example/far/v1", key: "ONE_API_KEY", isFound: true, serves: ["chat"] },`,
};

const FORMAT = { file: "test/architecture/throw-away-format/index.ts", as: "src/protocols/throw-away/index.ts" };
const FORMATS = "src/protocols/registry.ts";
const LINE_OF_FORMAT = [
  {
    file: FORMATS,
    before: 'import { messages } from "./messages/index.ts";',
    insert: importOf("throwAway", "./throw-away/index.ts"),
  },
  { file: FORMATS, before: "  messages,", insert: '  "throw-away": throwAway,' },
];
const ROUTES = "src/api/routes.ts";
const ENDPOINT = [
  {
    file: ROUTES,
    before: 'import { readChatRequest } from "../protocols/chat/read-request.ts";',
    insert: importOf("readThrowAwayRequest", "../protocols/throw-away/index.ts"),
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
const NATIVE = { file: KINDS, before: '  "ollama-api": "/api/chat",', insert: '  "throw-away": "/native",' };

const PART = { file: "test/architecture/throw-away-part/part.ts", as: "src/stats/throw-away-part.ts" };
const PARTS = "src/runtime/compose.ts";
const LINE_OF_PART = [
  {
    file: PARTS,
    before: 'import { buildDataPlane } from "./data-plane.ts";',
    insert: importOf("createThrowAwayPart", "../stats/throw-away-part.ts"),
  },
  {
    file: PARTS,
    before: "    { follow: ({ settings }) => applyLogSettings(log, settings.logging) },",
    insert: "    createThrowAwayPart(snapshot, log),",
  },
];

function importOf(name: string, path: string): string {
  return `import { ${name} } from "${path}";`;
}

const OTHERS = [PRESET, ...LINE_OF_FORMAT, ...ENDPOINT, NATIVE, ...LINE_OF_PART];
const FILES = [FORMAT, PART];
const KEY = "sekret-throwaway";

let copy: ChangedCopy;
beforeAll(() => {
  copy = changedCopy([NAME_OF_KIND, ROW_OF_KIND, ...OTHERS], FILES);
});
afterAll(() => copy?.remove());

test("all of them are all that the compiler asks for", async () => {
  expect(await copy.typeErrors()).toEqual([]);
});

test("a name without its row is refused by the compiler, which says that the row is missing", async () => {
  const incomplete = changedCopy([NAME_OF_KIND, ...OTHERS], FILES);
  const errors = await incomplete.typeErrors(KINDS);
  incomplete.remove();
  expect(errors.filter((line) => !line.startsWith(" ")).map((line) => line.replace(/\(.*/, ""))).toEqual([KINDS]);
  expect(errors.join(" ")).toContain("throwaway");
});

describe("requests", () => {
  let gateway: ProcessGateway;
  const far = new FakeBackend({ answer: chat("from far away") });
  far.probeAnswer = ({ path }) => {
    if (path === "/alive") return { body: "yes" };
    if (path === "/talkers?most=9") return { body: JSON.stringify({ data: [{ id: "one" }], more: "b" }) };
    return path === "/talkers?most=9&from=b" ? models(["two"]) : { status: 404 };
  };
  const vendor = new FakeBackend({ answer: chat("from one row") });
  vendor.probeAnswer = ({ path }) => (path === "/far/v1/models" ? models(["only"]) : { status: 404 });
  const other = new FakeBackend();
  const native = new FakeBackend();

  beforeAll(async () => {
    gateway = await startGatewayProcess({
      command: [copy.command],
      config: {
        backends: [
          { name: "far", type: "throw-away" as "generic", url: far.url, api_key: KEY },
          { name: "one-row", type: "One-Liner" as "generic", url: `${vendor.url}/far/v1`, api_key: KEY },
          { name: "other", type: "vllm", url: other.url, models: ["other"] },
          { name: "native", type: "ollama", url: native.url, models: ["near"] },
        ],
        global_prompts: { models: { other: { prompt: "Be brief." }, near: { prompt: "Be brief." } }, separator: " " },
      },
    });
  });
  afterAll(async () => {
    await gateway?.close();
    for (const backend of [far, vendor, other, native]) backend.stop();
  });

  describe("by a type of backend of a name and a row", () => {
    test("have a health check and a model list", async () => {
      expect(await gateway.backend("far")).toMatchObject({
        type: "throwaway",
        is_healthy: true,
        models: ["one", "two"],
      });
      const schema = await (await gateway.fetch("/openapi.json")).text();
      expect(schema).toContain('"throw-away"');
    });

    test("are served in the client's own format", async () => {
      const response = await gateway.chat({ model: "two", max_completion_tokens: 7 });
      expect([response.status, await response.text()]).toEqual([200, chat("from far away").body as string]);
      const { path, headers, json } = far.lastRequest;
      expect([path, headers["x-throwaway-key"]]).toEqual(["/talk", KEY]);
      expect(json()).toMatchObject({ model: "two", max_tokens: 7 });
    });

    test("are served in another format", async () => {
      const body = { model: "one", max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
      const response = await gateway.post("/v1/messages", body);
      expect(await response.json()).toMatchObject({ content: [{ type: "text", text: "from far away" }] });
      expect(far.lastRequest.json()).toMatchObject({ max_tokens: 9, messages: [{ role: "user", content: "hi" }] });
    });
  });

  describe("by a preset of one row", () => {
    test("have paths, a key, a health check, a list, a spelling and a place in the schema", async () => {
      expect(await gateway.backend("one-row")).toMatchObject({ type: "oneliner", is_healthy: true, models: ["only"] });
      expect((await gateway.chat({ model: "only" })).status).toBe(200);
      const { path, headers } = vendor.lastRequest;
      expect([path, headers.authorization]).toEqual(["/far/v1/chat/completions", `Bearer ${KEY}`]);
      expect(await (await gateway.fetch("/openapi.json")).text()).toContain('"one-liner"');
    });

    test("are what the zero configuration finds by its variable", async () => {
      const program = `
        import { discover } from "./src/discovery/discover.ts";
        const { backends } = await discover({ env: { ONE_API_KEY: "sekret" }, ports: [] });
        console.log(JSON.stringify(backends));
      `;
      const run = Bun.spawn([process.execPath, "-e", program], { cwd: copy.folder, stdout: "pipe" });
      const found = JSON.parse(await run.stdout.text());
      expect(found).toEqual([{ name: "oneliner", type: "oneliner", api_key: "${ONE_API_KEY}" }]);
    });
  });

  describe("in a format of a folder and a line", () => {
    const ask = (model: string, stream = false) => gateway.post("/throw/away", { model, say: "hi", stream });

    test("are answered by a backend of another format", async () => {
      other.answer = chat("from afar");
      expect(await (await ask("other")).json()).toEqual({ model: "other", said: "from afar" });
      expect(other.lastRequest.json()).toMatchObject({
        model: "other",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "hi" },
        ],
      });
    });

    test("are streamed from a backend of another format", async () => {
      other.answer = chatStream(["a", "b"]);
      expect(await (await ask("other", true)).text()).toBe(
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
});

test.each([1, 2])(
  "with server.workers: %p a part is made, made again with another slice, and ended",
  async (workers) => {
    const gateway = await startGatewayProcess({
      command: [copy.command],
      config: { server: { workers }, backends: [{ name: "a", type: "demo" }], logging: { format: "json" } },
    });
    const said = () =>
      gateway.printed.logEntries
        .filter(({ msg }) => String(msg).startsWith("throw-away: "))
        .map(({ msg, attempts, before }) => [msg, attempts, before]);
    const admin = new AdminClient(gateway);
    await admin.ok("PATCH", "/admin/config/circuit_breaker", { failure_threshold: 7 });
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 9 });
    gateway.process.kill("SIGTERM");
    await gateway.process.finished();
    await gateway.close();
    const processes = workers === 1 ? 1 : workers + 1;
    const each = [
      ["throw-away: made", 3, undefined],
      ["throw-away: made", 9, 3],
      ["throw-away: ended", 3, undefined],
      ["throw-away: ended", 9, undefined],
    ];
    const expected = each.flatMap((entry) => Array.from({ length: processes }, () => entry));
    expect(said().map(String).sort()).toEqual(expected.map(String).sort());
  },
);
