// POST /v1/images/*: routed, retried, taken over and told like any other request, in front of every kind of backend.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { pngImage } from "../support/png-images.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const openai = bed.backend({ models: ["gpt-image-1", "gpt-image-1-mini", "dall-e-2", "dall-e-3"] });
const spare = bed.backend({ models: ["gpt-image-1"] });
const local = bed.backend({ models: ["flux"] });
const gemini = bed.backend({ models: ["gemini-2.5-flash-image"] });
const slow = bed.backend({ models: ["slow"] });
const ollama = bed.backend({ models: ["llava"] });
const azure = bed.backend();
const everyone = [openai, spare, local, gemini, ollama, azure];
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { base_delay: "1ms", max_delay: "5ms" },
      timeouts: { image_generation: "2s" },
      backends: [
        { name: "openai", type: "openai", url: openai.url, api_key: "sekret-vendor" },
        { name: "spare", type: "vllm", url: spare.url, weight: 0 },
        { name: "local", url: local.url },
        { name: "slow", url: slow.url },
        {
          name: "google",
          type: "kind_d",
          url: gemini.url,
          api_key: "sekret-google",
          models: ["img-alt", "img-alt-pro"],
        },
        { name: "ollama", type: "ollama", url: ollama.url, models: ["llava"] },
        {
          name: "azure",
          type: "azure",
          url: azure.url,
          api_key: "sekret-azure",
          deployments: { "gpt-image-1.5": "pictures" },
        },
        { name: "demo", type: "demo" },
      ],
      fallback: {
        enabled: true,
        fallback_chains: {
          "img-v1-mini": ["dall-e-3", "nano-banana"],
          "dall-e-3": ["img-alt"],
        },
      },
    },
  });
});

beforeEach(() => {
  for (const backend of everyone) backend.reset(drawn("AAAA"));
});

const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});
const USAGE = { total_tokens: 14, input_tokens: 4, output_tokens: 10, input_tokens_details: { text_tokens: 4 } };
const drawn = (...pictures: string[]): Answer =>
  json({ created: 7, data: pictures.map((b64_json) => ({ b64_json })), usage: USAGE });
const unavailable = json({ error: { message: "busy", type: "server_error" } }, 503);
const googlePicture = (text = "a night") =>
  json({
    candidates: [
      {
        content: { parts: [{ text }, { inlineData: { mimeType: "image/png", data: "QUJD" } }], role: "model" },
        finishReason: "STOP",
      },
    ],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 },
  });

const draw = (body: object) => gateway.post("/v1/images/generations", { prompt: "a signal box", ...body });

interface Drawn {
  created: number;
  data: { b64_json?: string; url?: string; revised_prompt?: string }[];
  usage?: object;
}

async function story(response: Response): Promise<string> {
  const id = response.headers.get("x-signalbox-request-id");
  return await waitFor("the story is told", async () => {
    const told = await fetch(`${gateway.url}/admin/requests/${id}`);
    return told.status === 200 && (await told.text());
  });
}

describe("generations that pass", () => {
  test("an answer comes back byte for byte, and what was not to be changed goes on byte for byte", async () => {
    const body = '{ "prompt": "a \\u0062ox", "model":"flux","size":"777x3", "n": 2, "steps": 4.0 }';
    const answer = await fetch(`${gateway.url}/v1/images/generations`, { method: "POST", body });
    expect(await answer.text()).toBe(drawn("AAAA").body as string);
    expect(local.lastRequest.text).toBe(body);
    expect(local.lastRequest.path).toBe("/v1/images/generations");
    expect(answer.headers.get("x-signalbox-backend")).toBe("local");
  });

  test.each([
    ["img-v1", "gpt-image-1"],
    ["img-legacy-2", "dall-e-2"],
    ["img-legacy-3", "dall-e-3"],
    ["gpt-image-1", "gpt-image-1"],
  ])("%s is asked for as %s", async (name, sent) => {
    expect((await draw({ model: name })).status).toBe(200);
    expect(openai.lastRequest.json()).toEqual({ prompt: "a signal box", model: sent });
  });

  test("only what a rule changes is changed", async () => {
    await draw({ model: "img-v1", quality: "hd", response_format: "b64_json", background: "opaque", x: { y: 1.5 } });
    expect(openai.lastRequest.json()).toEqual({
      prompt: "a signal box",
      model: "gpt-image-1",
      quality: "high",
      background: "opaque",
      x: { y: 1.5 },
    });
    await draw({ model: "dall-e-3", quality: "low", style: "natural" });
    expect(openai.lastRequest.json()).toMatchObject({ quality: "standard", style: "natural" });
  });

  test("azure is asked at its deployment", async () => {
    expect((await draw({ model: "img-v1.5" })).status).toBe(200);
    expect(azure.lastRequest.path).toStartWith("/openai/deployments/pictures/images/generations?api-version=");
    expect(azure.lastRequest.headers["api-key"]).toBe("sekret-azure");
  });

  test("tokens are counted, and the request has a story", async () => {
    const answer = await draw({ model: "gpt-image-1" });
    const told = await story(answer);
    expect(told).toContain('"openai"');
    const stats = (await (await fetch(`${gateway.url}/admin/stats/models`)).json()) as {
      models: { model_id: string; total_completion_tokens: number }[];
    };
    const row = stats.models.find(({ model_id }) => model_id === "gpt-image-1");
    expect(row?.total_completion_tokens).toBeGreaterThanOrEqual(10);
  });

  test("a failure is tried elsewhere", async () => {
    openai.answer = unavailable;
    const answer = await draw({ model: "gpt-image-1" });
    expect([answer.status, answer.headers.get("x-signalbox-backend")]).toEqual([200, "spare"]);
  });

  test("a backend's own refusal is forwarded", async () => {
    const error = { message: "blocked", type: "image_generation_user_error", param: null, code: "moderation_blocked" };
    openai.answer = json({ error }, 400);
    expect(await expectError(await draw({ model: "gpt-image-1" }), 400)).toMatchObject({ code: "moderation_blocked" });
  });

  test("a backend that takes too long is told by the setting that holds", async () => {
    slow.answer = { hang: true };
    const { message } = await expectError(await draw({ model: "slow" }), 504);
    expect(message).toContain("timeouts.image_generation");
  });

  test("types of backends that draw nothing are told so", async () => {
    const { param, message } = await expectError(await draw({ model: "llava" }), 400);
    expect([param, message]).toEqual(["model", expect.stringContaining("ollama")]);
  });

  test("the demo draws without a network", async () => {
    const answer = (await (await draw({ model: "demo-image", response_format: "b64_json" })).json()) as Drawn;
    expect(
      Buffer.from(answer.data[0]?.b64_json ?? "", "base64")
        .subarray(1, 4)
        .toString(),
    ).toBe("PNG");
  });
});

describe("Gemini", () => {
  test("is asked in its own words, under the name that it knows", async () => {
    gemini.answer = googlePicture("in fog");
    const answer = await draw({ model: "nano-banana", size: "1536x1024", quality: "hd" });
    const { created, data, usage } = (await answer.json()) as Drawn;
    expect(created).toBeGreaterThan(1_700_000_000);
    expect(data).toEqual([{ url: "data:image/png;base64,QUJD", revised_prompt: "in fog" }]);
    expect(usage).toMatchObject({ input_tokens: 3, output_tokens: 5 });
    expect(gemini.lastRequest.path).toBe("/v1beta/models/gemini-2.5-flash-image:generateContent");
    expect(gemini.lastRequest.json()).toMatchObject({
      contents: [{ parts: [{ text: "a signal box" }] }],
      generationConfig: { imageConfig: { aspectRatio: "3:2" } },
    });
    expect(gemini.lastRequest.headers["x-goog-api-key"]).toBe("sekret-google");
  });

  test("several pictures are several calls side by side, and one answer", async () => {
    const { promise: allHere, resolve } = Promise.withResolvers<void>();
    gemini.answer = async () => {
      if (gemini.requests.length === 3) resolve();
      await allHere;
      return googlePicture();
    };
    const answer = await draw({ model: "img-alt", n: 3, response_format: "b64_json" });
    const { data, usage } = (await answer.json()) as Drawn;
    expect(data.map(({ b64_json }) => b64_json)).toEqual(["QUJD", "QUJD", "QUJD"]);
    expect(usage).toMatchObject({ input_tokens: 9, output_tokens: 15 });
  });

  test("one that fails ends the others", async () => {
    gemini.answer = () =>
      gemini.requests.length === 2 ? json({ error: { code: 400, message: "no" } }, 400) : { hang: true };
    expect((await draw({ model: "nano-banana", n: 2 })).status).toBe(400);
    await Promise.all(gemini.requests.map(({ closed, answerComplete }) => answerComplete || closed));
  });

  test("what it refuses to draw is the client's affair, and says why", async () => {
    gemini.answer = json({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } });
    await expectError(await draw({ model: "nano-banana" }), 400);
    gemini.answer = json({
      candidates: [{ content: { parts: [{ text: "I would rather not" }] }, finishReason: "STOP" }],
    });
    await expectError(await draw({ model: "nano-banana" }), 502);
  });
});

describe("streams", () => {
  const told = (...values: object[]): Answer => ({
    headers: { "Content-Type": "text/event-stream" },
    body: values.map((value) => `event: ${(value as { type: string }).type}\ndata: ${JSON.stringify(value)}\n\n`),
  });
  const partial = { type: "image_generation.partial_image", partial_image_index: 0, b64_json: "UA==", created_at: 5 };
  const completed = { type: "image_generation.completed", b64_json: "QQ==", created_at: 6, usage: USAGE };
  const types = (data: readonly string[]) => data.map((each) => (JSON.parse(each) as { type: string }).type);

  test("both sets of names, the counts and the end", async () => {
    openai.answer = told(partial, completed);
    const answer = await draw({ model: "gpt-image-1", stream: true, partial_images: 1 });
    expect(answer.headers.get("content-type")).toStartWith("text/event-stream");
    const { data, end } = await readSse(answer);
    expect(end).toBe("clean");
    expect(types(data)).toEqual([
      "image_generation.partial_image",
      "image_generation.complete",
      "image_generation.completed",
      "image_generation.usage",
      "done",
    ]);
    expect(JSON.parse(data[0] ?? "")).toEqual({ ...partial, created: 5 });
    expect(JSON.parse(data[1] ?? "")).toEqual({ type: "image_generation.complete", b64_json: "QQ==", created: 6 });
    expect(openai.lastRequest.json()).toMatchObject({ stream: true, partial_images: 1 });
  });

  test("a backend that does not stream is told in one complete event", async () => {
    local.answer = json({ created: 7, data: [{ b64_json: "QQ==" }] });
    const { data } = await readSse(await draw({ model: "flux", stream: true }));
    expect(types(data)).toEqual(["image_generation.complete", "image_generation.completed", "done"]);
    expect(JSON.parse(data[1] ?? "")).toMatchObject({ b64_json: "QQ==", created_at: 7 });
  });

  test("one that breaks off ends with an error event", async () => {
    openai.answer = { ...told(partial, completed), breakAfterBytes: 210, breakWith: "reset" };
    const { data } = await readSse(await draw({ model: "gpt-image-1", stream: true }));
    expect(types(data).at(-1)).toBe("error");
    expect(types(data)).not.toContain("done");
  });

  test("a stream that ends before its first event is tried elsewhere", async () => {
    openai.answer = { ...told(completed), body: [": busy\n\n"] };
    spare.answer = told(completed);
    const answer = await draw({ model: "gpt-image-1", stream: true });
    expect(answer.headers.get("x-signalbox-backend")).toBe("spare");
    expect(types((await readSse(answer)).data)).toContain("image_generation.completed");
  });

  test("a client that leaves frees the backend", async () => {
    openai.answer = {
      ...told(partial, completed),
      beforeChunk: (index) => (index === 1 ? new Promise(() => {}) : undefined),
    };
    const abort = new AbortController();
    const answer = await fetch(`${gateway.url}/v1/images/generations`, {
      method: "POST",
      body: JSON.stringify({ model: "gpt-image-1", prompt: "x", stream: true }),
      signal: abort.signal,
    });
    await answer.body?.getReader().read();
    abort.abort();
    await openai.lastRequest.closed;
  });
});

describe("a stand-in", () => {
  test("is asked in its own words where it can draw what was asked", async () => {
    openai.answer = (request) => (request.text.includes("mini") ? unavailable : drawn("BBBB"));
    const answer = await draw({ model: "img-v1-mini", quality: "high" });
    expect(answer.headers.get("x-fallback-model")).toBe("dall-e-3");
    expect(openai.lastRequest.json()).toEqual({
      prompt: "a signal box",
      model: "dall-e-3",
      quality: "hd",
      response_format: "b64_json",
    });
  });

  test("that cannot is passed over, and the story names why", async () => {
    openai.answer = unavailable;
    gemini.answer = googlePicture();
    const answer = await draw({ model: "gpt-image-1-mini", size: "1536x1024" });
    expect([answer.status, answer.headers.get("x-fallback-model")]).toEqual([200, "nano-banana"]);
    expect(((await answer.json()) as Drawn).data[0]?.b64_json).toBe("QUJD");
    expect(openai.requests.every(({ text }) => !text.includes("dall-e-3"))).toBe(true);
    expect(await story(answer)).toContain("unsupported_size");
  });

  test("that does not stream is told as one complete event", async () => {
    openai.answer = unavailable;
    gemini.answer = googlePicture();
    const { data } = await readSse(await draw({ model: "gpt-image-1-mini", size: "1536x1024", stream: true }));
    expect(data.at(-1)).toBe('{"type":"done"}');
    expect(data.join()).toContain("QUJD");
  });

  test("nobody can: all of them are named", async () => {
    openai.answer = unavailable;
    const answer = await draw({ model: "gpt-image-1-mini", background: "transparent" });
    const { type, details } = await expectError(answer, 503);
    expect(type).toBe("all_fallbacks_exhausted");
    expect(details).toMatchObject({
      failure_reasons: [
        { model: "gpt-image-1-mini", reason: "error_code_503" },
        { model: "dall-e-3", reason: "unsupported_background" },
        { model: "nano-banana", reason: "unsupported_background" },
      ],
    });
  });
});

describe("edits and variations", () => {
  const square = pngImage({ width: 4, height: 4 });

  function form(files: Record<string, Uint8Array>, fields: Record<string, string> = {}): FormData {
    const made = new FormData();
    for (const [name, value] of Object.entries(fields)) made.append(name, value);
    for (const [name, bytes] of Object.entries(files))
      made.append(name, new Blob([bytes as Uint8Array<ArrayBuffer>]), `${name}.png`);
    return made;
  }
  const send = (path: string, body: FormData) => fetch(`${gateway.url}/v1/images/${path}`, { method: "POST", body });

  test("an edit goes on as it came, with the model that it is for", async () => {
    const answer = await send("edits", form({ image: square, mask: square }, { prompt: "at night", n: "1" }));
    expect(await answer.json()).toMatchObject({ data: [{ b64_json: "AAAA" }] });
    const { headers, path, body } = openai.lastRequest;
    expect(path).toBe("/v1/images/edits");
    const got = await new Response(body as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": headers["content-type"] ?? "" },
    }).formData();
    expect([...got.keys()]).toEqual(["prompt", "n", "image", "mask", "model"]);
    expect(got.get("model")).toBe("gpt-image-1");
    expect(new Uint8Array(await (got.get("image") as Blob).arrayBuffer())).toEqual(square);
  });

  test("stand-in names and qualities are written into the form, the rest stays", async () => {
    const asked = form(
      { image: square },
      { model: "img-v1", prompt: "x", quality: "hd", response_format: "b64_json", own: "1" },
    );
    expect((await send("edits", asked)).status).toBe(200);
    const got = await new Response(openai.lastRequest.body as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": openai.lastRequest.headers["content-type"] ?? "" },
    }).formData();
    expect([...got.entries()].filter(([, value]) => typeof value === "string")).toEqual([
      ["model", "gpt-image-1"],
      ["prompt", "x"],
      ["quality", "high"],
      ["own", "1"],
    ]);
  });

  test("variations", async () => {
    const answer = await send("variations", form({ image: square }, { n: "2", size: "256x256" }));
    expect(answer.status).toBe(200);
    expect(openai.lastRequest.path).toBe("/v1/images/variations");
    expect(openai.lastRequest.text).toContain("dall-e-2");
  });

  test("a failed edit is sent again elsewhere, as a whole", async () => {
    openai.answer = unavailable;
    const answer = await send("edits", form({ image: square }, { prompt: "x" }));
    expect(answer.headers.get("x-signalbox-backend")).toBe("spare");
    expect(spare.lastRequest.text).toContain("gpt-image-1");
  });

  const refused: [what: string, path: string, body: () => FormData, param: string, code: string][] = [
    ["no image", "edits", () => form({}, { prompt: "x" }), "image", "missing_required_parameter"],
    ["no prompt", "edits", () => form({ image: square }), "prompt", "missing_required_parameter"],
    ["no PNG", "edits", () => form({ image: Buffer.from("GIF89a") }, { prompt: "x" }), "image", "invalid_image"],
    ["a truncated PNG", "edits", () => form({ image: square.slice(0, -6) }, { prompt: "x" }), "image", "invalid_image"],
    ["not square", "variations", () => form({ image: pngImage({ width: 5, height: 4 }) }), "image", "image_not_square"],
    [
      "a mask of another size",
      "edits",
      () => form({ image: square, mask: pngImage({ width: 5, height: 5 }) }, { prompt: "x" }),
      "mask",
      "dimension_mismatch",
    ],
    [
      "a mask without alpha",
      "edits",
      () => form({ image: square, mask: pngImage({ width: 4, height: 4, colourType: 2 }) }, { prompt: "x" }),
      "mask",
      "mask_without_alpha",
    ],
    [
      "too large",
      "edits",
      () => form({ image: Buffer.concat([square, Buffer.alloc(4 * 1024 * 1024)]) }, { prompt: "x" }),
      "image",
      "image_too_large",
    ],
    [
      "dall-e-3",
      "edits",
      () => form({ image: square }, { prompt: "x", model: "img-legacy-3" }),
      "model",
      "unsupported_model",
    ],
    [
      "nano-banana",
      "edits",
      () => form({ image: square }, { prompt: "x", model: "img-alt" }),
      "model",
      "unsupported_model",
    ],
    ["gpt-image-1", "variations", () => form({ image: square }, { model: "img-v1" }), "model", "unsupported_model"],
  ];
  test.each(refused)("%s (%s)", async (_what, path, body, param, code) => {
    expect(await expectError(await send(path, body()), 400)).toMatchObject({
      param,
      code,
      type: "invalid_request_error",
    });
    expect(openai.requests).toHaveLength(0);
  });
});
