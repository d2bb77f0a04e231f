// A new kind of backend is a name and a row, and a preset one row: a copy of the program that has one more of each serves
// requests by them.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ChangedCopy, changedCopy } from "../support/changed-copy.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { chat, models } from "../support/openai-answers.ts";

setDefaultTimeout(60_000);

const NAME = { file: "src/names.ts", before: "  generic: [],", insert: '  throwaway: ["throw-away"],' };
const ROW = {
  file: "src/backends/kinds.ts",
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
const KEY = "sekret-throwaway";

describe("a name and a row", () => {
  let copy: ChangedCopy;
  let gateway: ProcessGateway;
  const backend = new FakeBackend({ answer: chat("from far away") });
  backend.probeAnswer = ({ path }) => {
    if (path === "/alive") return { body: "yes" };
    if (path === "/talkers?most=9") return { body: JSON.stringify({ data: [{ id: "one" }], more: "b" }) };
    return path === "/talkers?most=9&from=b" ? models(["two"]) : { status: 404 };
  };

  beforeAll(async () => {
    copy = changedCopy([NAME, ROW]);
    gateway = await startGatewayProcess({
      command: [copy.command],
      config: { backends: [{ name: "far", type: "throw-away" as "generic", url: backend.url, api_key: KEY }] },
    });
  });
  afterAll(async () => {
    await gateway?.close();
    backend.stop();
    copy?.remove();
  });

  test("are all that the compiler asks for", async () => {
    expect(await copy.typeErrors()).toEqual([]);
  });

  test("are a type of backend with a health check and a model list", async () => {
    expect(await gateway.backend("far")).toMatchObject({ type: "throwaway", is_healthy: true, models: ["one", "two"] });
    const schema = await (await gateway.fetch("/openapi.json")).text();
    expect(schema).toContain('"throw-away"');
  });

  test("serve a request in the client's own format", async () => {
    const response = await gateway.chat({ model: "two", max_completion_tokens: 7 });
    expect([response.status, await response.text()]).toEqual([200, chat("from far away").body as string]);
    const { path, headers, json } = backend.lastRequest;
    expect([path, headers["x-throwaway-key"]]).toEqual(["/talk", KEY]);
    expect(json()).toMatchObject({ model: "two", max_tokens: 7 });
  });

  test("serve a request of another format", async () => {
    const body = { model: "one", max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
    const response = await gateway.post("/v1/messages", body);
    expect(await response.json()).toMatchObject({ content: [{ type: "text", text: "from far away" }] });
    expect(backend.lastRequest.json()).toMatchObject({ max_tokens: 9, messages: [{ role: "user", content: "hi" }] });
  });
});

test("a name alone is refused by the compiler, which says that the row is missing", async () => {
  const copy = changedCopy([NAME]);
  const errors = await copy.typeErrors();
  copy.remove();
  expect(errors.filter((line) => !line.startsWith(" ")).map((line) => line.replace(/\(.*/, ""))).toEqual([ROW.file]);
  expect(errors.join(" ")).toContain("throwaway");
});

describe("one row of a preset", () => {
  const PRESET = {
    file: "src/presets.ts",
    before: "  sglang: {",
    insert: `  oneliner: { spellings: ["one-liner"], url: "https://one.example/far/v1", key: "ONE_API_KEY", isFound: true, serves: ["chat"] },`,
  };
  let copy: ChangedCopy;
  const vendor = new FakeBackend({ answer: chat("from one row") });
  vendor.probeAnswer = ({ path }) => (path === "/far/v1/models" ? models(["only"]) : { status: 404 });

  beforeAll(() => {
    copy = changedCopy([PRESET]);
  });
  afterAll(() => {
    vendor.stop();
    copy?.remove();
  });

  test("is all that the compiler asks for", async () => {
    expect(await copy.typeErrors()).toEqual([]);
  });

  test("is a type with paths, a key, a health check, a list, a spelling and a place in the schema", async () => {
    await using gateway = await startGatewayProcess({
      command: [copy.command],
      config: {
        backends: [{ name: "one", type: "One-Liner" as "generic", url: `${vendor.url}/far/v1`, api_key: KEY }],
      },
    });
    expect(await gateway.backend("one")).toMatchObject({ type: "oneliner", is_healthy: true, models: ["only"] });
    expect((await gateway.chat({ model: "only" })).status).toBe(200);
    const { path, headers } = vendor.lastRequest;
    expect([path, headers.authorization]).toEqual(["/far/v1/chat/completions", `Bearer ${KEY}`]);
    expect(await (await gateway.fetch("/openapi.json")).text()).toContain('"one-liner"');
  });

  test("is what the zero configuration finds by its variable", async () => {
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
