// POST /v1/responses: what is special about it beyond its format: earlier answers, references, files by URL.

import { describe, expect, test } from "bun:test";
import { chat, chatStream } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

interface ResponseBody {
  id: string;
  output: { id: string; type: string; content: { text: string }[] }[];
  previous_response_id: string | null;
}

describe("previous_response_id on a backend that keeps nothing", () => {
  test("the conversation so far is sent along, instructions are not inherited, plain and streamed", async () => {
    const backend = bed.backend();
    await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
    backend.queue(chat("first"), chatStream(["sec", "ond"]), chat("third"));
    const first = (await (
      await gateway.post("/v1/responses", { model: "m", input: "one", instructions: "be brief" })
    ).json()) as ResponseBody;
    const streamed = await gateway.post("/v1/responses", {
      model: "m",
      input: "two",
      previous_response_id: first.id,
      stream: true,
    });
    const id = /"id":"(resp_[^"]+)"/.exec(await streamed.text())?.[1];
    const third = (await (
      await gateway.post("/v1/responses", { model: "m", input: "three", previous_response_id: id })
    ).json()) as ResponseBody;
    expect(third.previous_response_id).toBe(id ?? "");
    const { messages } = JSON.parse(backend.lastRequest.text) as { messages: { role: string; content: string }[] };
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", "one"],
      ["assistant", "first"],
      ["user", "two"],
      ["assistant", "second"],
      ["user", "three"],
    ]);
  });

  test("unknown, not stored and somebody else's answers are refused alike", async () => {
    const backend = bed.backend();
    await using gateway = await startGateway({
      config: {
        backends: [{ name: "b", url: backend.url }],
        api_keys: {
          mode: "blocking",
          keys: [
            { key: "key-of-a-sekret", id: "a" },
            { key: "key-of-b-sekret", id: "b" },
          ],
        },
      },
    });
    const ask = async (key: string, more: object) =>
      gateway.post(
        "/v1/responses",
        { model: "m", input: "x", ...more },
        { headers: { authorization: `Bearer ${key}` } },
      );
    const kept = (await (await ask("key-of-a-sekret", {})).json()) as ResponseBody;
    const loose = (await (await ask("key-of-a-sekret", { store: false })).json()) as ResponseBody;
    for (const [key, previous_response_id] of [
      ["key-of-a-sekret", "resp_unknown"],
      ["key-of-a-sekret", loose.id],
      ["key-of-b-sekret", kept.id],
    ] as const) {
      const response = await ask(key, { previous_response_id });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({
        error: { code: "previous_response_not_found", param: "previous_response_id" },
      });
    }
    expect((await ask("key-of-a-sekret", { previous_response_id: kept.id })).status).toBe(200);
  });

  test("an item may be referred to by its id", async () => {
    const backend = bed.backend();
    await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
    backend.queue(chat("remember me"));
    const first = (await (await gateway.post("/v1/responses", { model: "m", input: "x" })).json()) as ResponseBody;
    const input = [
      { type: "item_reference", id: first.output[0]?.id },
      { role: "user", content: "what did you say?" },
    ];
    expect((await gateway.post("/v1/responses", { model: "m", input })).status).toBe(200);
    expect(backend.lastRequest.text).toContain("remember me");
    const unknown = await gateway.post("/v1/responses", {
      model: "m",
      input: [{ type: "item_reference", id: "msg_unknown" }],
    });
    expect(unknown.status).toBe(404);
  });
});

test("a backend that keeps answers itself is asked again, though another would be next", async () => {
  const one = bed.backend();
  const two = bed.backend();
  for (const [index, backend] of [one, two].entries()) {
    backend.answer = {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: `resp_of_${index}`, object: "response", output: [], status: "completed" }),
    };
  }
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "one", type: "openai", url: one.url },
        { name: "two", type: "openai", url: two.url },
      ],
    },
  });
  const first = (await (await gateway.post("/v1/responses", { model: "m", input: "x" })).json()) as ResponseBody;
  for (let turn = 0; turn < 4; turn++) {
    const body = `{"model":"m", "input":"again",  "previous_response_id":"${first.id}"}`;
    const next = (await (await gateway.post("/v1/responses", body)).json()) as ResponseBody;
    expect(next.id).toBe(first.id);
    const holder = first.id === "resp_of_0" ? one : two;
    expect(holder.lastRequest.text).toBe(body);
  }
});

test("what a translation refuses is named as the client calls it", async () => {
  const backend = bed.backend({ models: ["c"] });
  await using gateway = await startGateway({
    config: {
      health_checks: { enabled: false },
      backends: [{ name: "c", type: "anthropic", url: backend.url, models: ["c"], api_key: "sekret" }],
    },
  });
  const bmp = "data:image/bmp;base64,Qk0=";
  const asChat = { type: "image_url", image_url: { url: bmp } };
  const chat = await gateway.post("/v1/chat/completions", {
    model: "c",
    messages: [{ role: "user", content: [asChat] }],
  });
  expect(await chat.json()).toMatchObject({ error: { param: "messages" } });
  const wav = { type: "input_audio", input_audio: { data: "AA==", format: "wav" } };
  const responses = await gateway.post("/v1/responses", { model: "c", input: [{ role: "user", content: [wav] }] });
  expect(responses.status).toBe(400);
  expect(await responses.json()).toMatchObject({
    error: { param: "input", message: expect.stringMatching(/^input: /) as string },
  });
  expect(backend.requests).toHaveLength(0);
});

describe("files by URL", () => {
  test.each([
    "http://127.0.0.1/a.pdf",
    "http://localhost/a.pdf",
    "http://169.254.169.254/latest/meta-data",
    "http://[::ffff:10.0.0.1]/a.pdf",
    "http://0x7f000001/a.pdf",
    "http://2130706433/",
    "ftp://example.com/a.pdf",
    "https://user:pass@example.com/a.pdf",
  ])("%s is refused before any backend is asked", async (file_url) => {
    const backend = bed.backend();
    await using gateway = await startGateway({
      config: { backends: [{ name: "b", type: "openai", url: backend.url }] },
    });
    const response = await gateway.post("/v1/responses", {
      model: "m",
      input: [{ role: "user", content: [{ type: "input_file", file_url }] }],
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "input[0].content[0].file_url" } });
    expect(backend.requests).toHaveLength(0);
  });

  test("the id of a file that the vendor holds passes untouched", async () => {
    const backend = bed.backend();
    await using gateway = await startGateway({
      config: { backends: [{ name: "b", type: "openai", url: backend.url }] },
    });
    const body = `{"model":"m",  "input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`;
    await gateway.post("/v1/responses", body);
    expect(backend.lastRequest.text).toBe(body);
  });

  test("an id that is not known here is a 404 where no backend may hold the file", async () => {
    const backend = bed.backend();
    await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
    const response = await gateway.post("/v1/responses", {
      model: "m",
      input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }],
    });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      error: { code: "file_resolution_failed", param: "input[0].content[0].file_id" },
    });
    expect(backend.requests).toHaveLength(0);
  });
});

test("more than 16 MiB are not passed to a backend's own endpoint, but translated elsewhere", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "own", type: "openai", url: backend.url, models: ["own"] },
        { name: "chat", url: backend.url, models: ["chat"] },
      ],
    },
  });
  const input = "x".repeat(16 * 1024 * 1024);
  const refused = await gateway.post("/v1/responses", { model: "own", input });
  expect(refused.status).toBe(413);
  expect(await refused.json()).toMatchObject({ error: { type: "payload_too_large" } });
  expect((await gateway.post("/v1/responses", { model: "chat", input })).status).toBe(200);
});
