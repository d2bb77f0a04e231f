// Images of Gemini's models through the gateway, at a backend that refuses what the real one does not know.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import {
  drawn,
  type GeminiImageRequest,
  type GeminiImagesOptions,
  PIXEL,
  startStrictGeminiImages,
} from "../support/strict/gemini-images.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
let answer: GeminiImagesOptions["answer"];
const google = startStrictGeminiImages({
  models: ["gemini-2.5-flash-image", "gemini-3-pro-image", "gemini-9-image"],
  answer: (index, request) => answer?.(index, request) ?? drawn(),
});
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      backends: [{ name: "google", type: "gemini", url: google.url, api_key: "sekret-google" }],
    },
  });
});

afterAll(() => google.stop());

afterEach(() => {
  expect(google.refusals).toEqual([]);
  google.requests.length = 0;
  answer = undefined;
});

interface Drawn {
  created: number;
  data: { url?: string; b64_json?: string; revised_prompt?: string }[];
  usage: Record<string, unknown>;
}

const send = (more: object) => gateway.post("/v1/images/generations", { prompt: "a signal box", ...more });

async function draw(more: object): Promise<Drawn> {
  const response = await send(more);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as Drawn;
}

function onlyRequest(): GeminiImageRequest {
  expect(google.requests).toHaveLength(1);
  return google.requests[0] as GeminiImageRequest;
}

const imageConfig = ({ body }: GeminiImageRequest) =>
  (body.generationConfig as { imageConfig?: Record<string, string> }).imageConfig;

const FLASH = "gemini-2.5-flash-image";
const PRO = "gemini-3-pro-image";
const SPELLINGS: [spelling: string, sent: string][] = [
  ["nano-banana", FLASH],
  ["img-alt", FLASH],
  ["gemini-2.5-flash-image", FLASH],
  ["gemini-2.5-flash-image-preview", FLASH],
  ["nano-banana-pro", PRO],
  ["img-alt-pro", PRO],
  ["gemini-3-pro-image", PRO],
  ["gemini-3-pro-image-preview", PRO],
];

test.each(SPELLINGS)("%s is asked for by the name that the backend lists, %s", async (spelling, sent) => {
  const { data } = await draw({ model: spelling });
  expect(data).toEqual([{ url: `data:image/png;base64,${PIXEL}`, revised_prompt: "Here it is." }]);
  expect(onlyRequest().model).toBe(sent);
});

/** The specification's mapping, row by row. */
const SIZES: [size: string | undefined, aspectRatio: string, imageSize: string][] = [
  [undefined, "1:1", "1K"],
  ["auto", "1:1", "1K"],
  ["256x256", "1:1", "1K"],
  ["512x512", "1:1", "1K"],
  ["1024x1024", "1:1", "1K"],
  ["1536x1024", "3:2", "1K"],
  ["1024x1536", "2:3", "1K"],
  ["1024x1792", "9:16", "1K"],
  ["1792x1024", "16:9", "1K"],
  ["2048x2048", "1:1", "2K"],
  ["4096x4096", "1:1", "4K"],
];

describe("sizes", () => {
  test.each(SIZES)("%s is %s in %s", async (size, aspectRatio, imageSize) => {
    await draw({ model: "nano-banana-pro", size });
    expect(imageConfig(onlyRequest())).toEqual({ aspectRatio, imageSize });
    google.requests.length = 0;
    if (imageSize === "1K") {
      await draw({ model: "nano-banana", size });
      // This generation refuses a resolution; it draws in 1K only.
      expect(imageConfig(onlyRequest())).toEqual({ aspectRatio });
      return;
    }
    const { param, message } = await expectError(await send({ model: "nano-banana", size }), 400);
    expect([param, message]).toEqual(["size", expect.stringContaining("nano-banana takes 256x256")]);
    expect(google.requests).toHaveLength(0);
  });

  test.each(["nano-banana", "nano-banana-pro"])("another one is refused for %s", async (model) => {
    const { param, code } = await expectError(await send({ model, size: "640x480" }), 400);
    expect([param, code]).toEqual(["size", "invalid_value"]);
    expect(google.requests).toHaveLength(0);
  });
});

describe("how many, and in which form", () => {
  test.each([1, 2, 3, 4])("n: %d", async (n) => {
    answer = (index) => drawn(`picture ${index}`, Buffer.from(`picture ${index}`).toString("base64"));
    const { data, usage } = await draw({ model: "img-alt", n, response_format: "b64_json" });
    expect(google.requests).toHaveLength(n);
    const pictures = data.map(({ b64_json }) => Buffer.from(b64_json ?? "", "base64").toString());
    expect(pictures.toSorted()).toEqual(Array.from({ length: n }, (_, index) => `picture ${index}`));
    expect(usage).toMatchObject({ input_tokens: 6 * n, output_tokens: 1295 * n, total_tokens: 1301 * n });
  });

  test.each([0, 5, 1.5, "2", 1_000_000])("n: %p is refused", async (n) => {
    for (const model of ["nano-banana", "img-alt-pro", "gemini-9-image"]) {
      expect(await expectError(await send({ model, n }), 400)).toMatchObject({ param: "n", code: "invalid_value" });
    }
    expect(google.requests).toHaveLength(0);
  });

  test.each(["url", "b64_json", null])("response_format: %p", async (response_format) => {
    const { data } = await draw({ model: "img-alt-pro", response_format });
    const picture = response_format === "b64_json" ? { b64_json: PIXEL } : { url: `data:image/png;base64,${PIXEL}` };
    expect(data).toEqual([{ ...picture, revised_prompt: "Here it is." }]);
  });

  test("an answer tells when, and what was counted", async () => {
    const { created, usage } = await draw({ model: "nano-banana" });
    expect(Math.abs(created - Date.now() / 1000)).toBeLessThan(60);
    expect(usage).toEqual({
      ...{ total_tokens: 1301, input_tokens: 6, output_tokens: 1295 },
      input_tokens_details: { text_tokens: 6, image_tokens: 0 },
      output_tokens_details: { text_tokens: 5, image_tokens: 1290 },
    });
  });
});

test("what has no place there is left out, and told", async () => {
  const response = await send({ model: "nano-banana", quality: "hd", user: "u1", seed: 7 });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-signalbox-dropped")?.split(", ").toSorted()).toEqual(["quality", "seed"]);
});

test.each(["style", "background", "output_format", "output_compression", "stream"])("%s is refused", async (field) => {
  const values = { style: "vivid", background: "opaque", output_format: "png", output_compression: 5, stream: true };
  const body = { model: "nano-banana", [field]: values[field as keyof typeof values] };
  expect(await expectError(await send(body), 400)).toMatchObject({ param: field, type: "invalid_request_error" });
  expect(google.requests).toHaveLength(0);
});

test("edits and variations are refused in words that say who can", async () => {
  for (const [path, who] of [
    ["edits", "gpt-image-1"],
    ["variations", "dall-e-2"],
  ]) {
    const body = new FormData();
    body.append("model", "nano-banana");
    body.append("prompt", "x");
    const refused = await gateway.fetch(`/v1/images/${path}`, { method: "POST", body });
    const { param, code, message } = await expectError(refused, 400);
    expect([param, code, message]).toEqual(["model", "unsupported_model", expect.stringContaining(who as string)]);
  }
});

describe("side by side", () => {
  test("one that is limited is one failure, which says so", async () => {
    answer = (index) =>
      index % 3 === 1
        ? Response.json(
            { error: { code: 429, message: "Resource has been exhausted", status: "RESOURCE_EXHAUSTED" } },
            { status: 429, headers: { "Retry-After": "7" } },
          )
        : drawn();
    const response = await send({ model: "nano-banana", n: 3 });
    expect(response.headers.get("retry-after")).toBe("7");
    expect((await expectError(response, 429)).message).toContain("exhausted");
    await gateway.waitUntilIdle();
  });

  test("one that draws nothing fails them all", async () => {
    answer = (index) =>
      index === 1 ? { candidates: [{ content: { parts: [{ text: "No." }] }, finishReason: "STOP" }] } : drawn();
    const { code } = await expectError(await send({ model: "nano-banana", n: 2 }), [400, 502]);
    expect(code).toBe("no_image");
    await gateway.waitUntilIdle();
  });
});
