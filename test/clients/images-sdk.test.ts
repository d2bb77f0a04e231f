// The official SDK draws, edits and varies images through the gateway: whole and in streams, with either set of event names.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI, { APIError, BadRequestError, toFile, toStreamingFile } from "openai";
import type { ImageEditStreamEvent, ImageGenStreamEvent } from "openai/resources/images";
import { readPng } from "../../src/media/png.ts";
import type { Answer, RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { pngImage } from "../support/png-images.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const vendor = bed.backend({ models: ["gpt-image-1", "dall-e-2", "dall-e-3"] });
const styles = ["both", "specification", "openai"] as const;
const clients = new Map<string, OpenAI>();
let client: OpenAI;

const USAGE = {
  ...{ total_tokens: 14, input_tokens: 4, output_tokens: 10 },
  input_tokens_details: { image_tokens: 0, text_tokens: 4 },
};
const square = pngImage({ width: 4, height: 4 });

beforeAll(async () => {
  const started = styles.map(async (image_events): Promise<[string, Gateway]> => {
    const gateway = await bed.gateway({
      config: {
        retry: { max_attempts: 1 },
        // The default is what nobody has to write.
        ...(image_events !== "both" && { streaming: { image_events } }),
        backends: [
          { name: "vendor", type: "openai", url: vendor.url, api_key: "sekret-vendor" },
          { name: "demo", type: "demo" },
        ],
      },
    });
    return [image_events, gateway];
  });
  for (const [style, { url }] of await Promise.all(started)) {
    clients.set(style, new OpenAI({ apiKey: "sk-none", baseURL: `${url}/v1`, maxRetries: 0 }));
  }
  client = clients.get("both") as OpenAI;
});

beforeEach(() => vendor.reset(drawn("QUJD")));
afterEach(() => {
  for (const { headers } of vendor.requests) expect(headers.authorization).toBe("Bearer sekret-vendor");
});

const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});
const drawn = (...pictures: string[]): Answer =>
  json({ created: 7, data: pictures.map((b64_json) => ({ b64_json })), usage: USAGE });

type Prefix = "image_generation" | "image_edit";

/** What every event of the public API says beside its picture. */
const SAID = { background: "opaque", output_format: "png", quality: "low", size: "1024x1024", created_at: 9 } as const;
const told = (prefix: Prefix): Answer => {
  const events = [
    { type: `${prefix}.partial_image`, b64_json: "UDA=", partial_image_index: 0, ...SAID },
    { type: `${prefix}.partial_image`, b64_json: "UDE=", partial_image_index: 1, ...SAID },
    { type: `${prefix}.completed`, b64_json: "UUQ=", usage: USAGE, ...SAID },
  ];
  return {
    headers: { "Content-Type": "text/event-stream" },
    body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
  };
};

function formSent({ body, headers }: RecordedRequest): Promise<FormData> {
  const type = { "content-type": headers["content-type"] ?? "" };
  return new Response(body as Uint8Array<ArrayBuffer>, { headers: type }).formData() as Promise<FormData>;
}

async function filesSent(name: string): Promise<Uint8Array[]> {
  const files = (await formSent(vendor.lastRequest)).getAll(name) as Blob[];
  return Promise.all(files.map(async (file) => new Uint8Array(await file.arrayBuffer())));
}

const picture = (name = "box.png") => toFile(Buffer.from(square), name, { type: "image/png" });

async function refusal(call: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error("the call was not refused");
}

async function eventsOf<Event>(stream: AsyncIterable<Event>): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe("generate", () => {
  test("a whole picture", async () => {
    const answer = await client.images.generate({ model: "gpt-image-1", prompt: "a box", quality: "high" });
    expect(answer).toMatchObject({ created: 7, data: [{ b64_json: "QUJD" }], usage: USAGE });
    expect(vendor.lastRequest.json()).toEqual({ model: "gpt-image-1", prompt: "a box", quality: "high" });
  });

  test("several, and an address", async () => {
    vendor.answer = json({
      created: 7,
      data: [{ url: "https://images.example/1" }, { url: "https://images.example/2" }],
    });
    const { data } = await client.images.generate({ model: "dall-e-2", prompt: "x", n: 2, response_format: "url" });
    expect(data?.map(({ url }) => url)).toEqual(["https://images.example/1", "https://images.example/2"]);
  });

  const NAMES: Record<(typeof styles)[number], string[]> = {
    openai: ["partial_image", "partial_image", "completed"],
    specification: ["partial_image", "partial_image", "complete", "usage", "done"],
    both: ["partial_image", "partial_image", "complete", "completed", "usage", "done"],
  };

  test.each(styles)("a stream, image_events: %s", async (style) => {
    vendor.answer = told("image_generation");
    const stream = await (clients.get(style) as OpenAI).images.generate({
      ...{ model: "gpt-image-1", prompt: "a box", stream: true, partial_images: 2 },
    });
    const events: ImageGenStreamEvent[] = await eventsOf(stream as unknown as AsyncIterable<ImageGenStreamEvent>);
    expect(events.map(({ type }) => type.replace("image_generation.", ""))).toEqual(NAMES[style]);
    const partial = events.filter((event) => event.type === "image_generation.partial_image");
    expect(partial.map(({ b64_json, partial_image_index }) => [b64_json, partial_image_index])).toEqual([
      ["UDA=", 0],
      ["UDE=", 1],
    ]);
    for (const event of partial) expect(event).toMatchObject(SAID);
  });

  test("what a client of the public API waits for comes with the default", async () => {
    vendor.answer = told("image_generation");
    const stream = await client.images.generate({ model: "gpt-image-1", prompt: "x", stream: true });
    const completed: ImageGenStreamEvent[] = [];
    for await (const event of stream) if (event.type === "image_generation.completed") completed.push(event);
    expect(completed).toEqual([
      { type: "image_generation.completed", b64_json: "UUQ=", usage: USAGE, ...SAID },
    ] as ImageGenStreamEvent[]);
  });

  test.each(styles)("a stream that breaks off is thrown, image_events: %s", async (style) => {
    vendor.answer = { ...told("image_generation"), breakAfterBytes: 400, breakWith: "reset" };
    const seen: string[] = [];
    const error = await refusal(async () => {
      const stream = await (clients.get(style) as OpenAI).images.generate({
        ...{ model: "gpt-image-1", prompt: "x", stream: true, partial_images: 2 },
      });
      for await (const { type } of stream as unknown as AsyncIterable<ImageGenStreamEvent>) seen.push(type);
    });
    expect(error).toBeInstanceOf(APIError);
    expect(seen.filter((type) => !type.endsWith("partial_image"))).toEqual([]);
  });

  test("a client that stops reading a stream ends it at the backend", async () => {
    vendor.answer = {
      ...told("image_generation"),
      beforeChunk: (index) => (index === 1 ? new Promise(() => {}) : undefined),
    };
    const stream = await client.images.generate({ model: "gpt-image-1", prompt: "x", stream: true });
    for await (const _event of stream) break;
    await vendor.lastRequest.closed;
  });

  test("a refusal names the field", async () => {
    const error = await refusal(() => client.images.generate({ model: "dall-e-3", prompt: "x", size: "256x256" }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ status: 400, param: "size", code: "invalid_value", type: "invalid_request_error" });
    expect((error as Error).message).toContain("1024x1024, 1792x1024 or 1024x1792");
    expect(vendor.requests).toHaveLength(0);
  });
});

describe("edit", () => {
  test("a picture with a mask", async () => {
    const answer = await client.images.edit({
      ...{ model: "gpt-image-1", prompt: "at night", size: "1024x1024", n: 2 },
      image: await picture(),
      mask: await picture("mask.png"),
    });
    expect(answer.data?.[0]?.b64_json).toBe("QUJD");
    const form = await formSent(vendor.lastRequest);
    expect([form.get("model"), form.get("prompt"), form.get("n")]).toEqual(["gpt-image-1", "at night", "2"]);
    expect(await filesSent("image")).toEqual([square]);
    expect(await filesSent("mask")).toEqual([square]);
    expect((form.get("image") as File).name).toBe("box.png");
  });

  test("several pictures, in their order", async () => {
    const images = [4, 5, 6].map((side) => pngImage({ width: side, height: side }));
    await client.images.edit({
      ...{ model: "gpt-image-1", prompt: "all of them" },
      image: await Promise.all(images.map((bytes, index) => toFile(Buffer.from(bytes), `${index}.png`))),
    });
    expect(await filesSent("image[]")).toEqual(images);
  });

  test("a picture that is streamed to the gateway", async () => {
    const pieces = (async function* () {
      for (let at = 0; at < square.length; at += 16) yield square.subarray(at, at + 16);
    })();
    await client.images.edit({ prompt: "x", image: toStreamingFile(pieces, "s.png", { type: "image/png" }) });
    expect(await filesSent("image")).toEqual([square]);
    expect((await formSent(vendor.lastRequest)).get("model")).toBe("gpt-image-1");
  });

  test("as a stream", async () => {
    vendor.answer = told("image_edit");
    const stream = await client.images.edit({
      ...{ model: "gpt-image-1", prompt: "x", stream: true, partial_images: 2 },
      image: await picture(),
    });
    const events: ImageEditStreamEvent[] = await eventsOf(stream as unknown as AsyncIterable<ImageEditStreamEvent>);
    expect(events.find(({ type }) => type === "image_edit.completed")).toMatchObject({
      b64_json: "UUQ=",
      usage: USAGE,
    });
    expect(events.filter(({ type }) => type === "image_edit.partial_image")).toHaveLength(2);
    expect((await formSent(vendor.lastRequest)).get("stream")).toBe("true");
  });

  test("a refusal names field and code", async () => {
    const wide = await toFile(Buffer.from(pngImage({ width: 8, height: 4 })), "wide.png");
    const error = await refusal(() => client.images.edit({ model: "gpt-image-1", prompt: "x", image: wide }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ param: "image", code: "image_not_square" });
  });
});

describe("createVariation", () => {
  test("of a picture", async () => {
    vendor.answer = drawn("QUE=", "QUI=");
    const answer = await client.images.createVariation({ image: await picture(), n: 2, size: "512x512" });
    expect(answer.data?.map(({ b64_json }) => b64_json)).toEqual(["QUE=", "QUI="]);
    const form = await formSent(vendor.lastRequest);
    expect([form.get("model"), form.get("n"), form.get("size")]).toEqual(["dall-e-2", "2", "512x512"]);
    expect(await filesSent("image")).toEqual([square]);
  });

  test("of a model that makes none", async () => {
    const image = await picture();
    const error = await refusal(() => client.images.createVariation({ model: "dall-e-3" as "dall-e-2", image }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ param: "model", code: "unsupported_model" });
  });
});

describe("the demo backend", () => {
  const facts = (base64: string | undefined) => readPng(Buffer.from(base64 ?? "", "base64"));

  test("draws real pictures", async () => {
    const { data } = await client.images.generate({
      ...{ model: "demo-image", prompt: "Mind the gap", n: 2, response_format: "b64_json" },
    });
    expect(data?.map(({ b64_json }) => facts(b64_json))).toMatchObject([
      { width: 64, height: 64 },
      { width: 64, height: 64 },
    ]);
  });

  test("and streams them", async () => {
    const stream = await client.images.generate({
      ...{ model: "demo-image", prompt: "Mind the gap", stream: true, partial_images: 1 },
    });
    const events: ImageGenStreamEvent[] = await eventsOf(stream as unknown as AsyncIterable<ImageGenStreamEvent>);
    const [first] = events;
    const last = events.find(({ type }) => type === "image_generation.completed");
    expect(first?.type).toBe("image_generation.partial_image");
    expect(facts(last?.b64_json)).toMatchObject({ width: 64, height: 64 });
  });
});
