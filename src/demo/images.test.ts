// Pictures of the demo backend, over a real socket, in the shapes of the public API.

import { afterAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { readPng } from "../media/png.ts";
import { createDemoBackend } from "./backend.ts";

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: createDemoBackend({ wordDelayMs: 0 }) });
const client = new OpenAI({ apiKey: "none", baseURL: `${server.url.href}v1`, maxRetries: 0 });
afterAll(() => server.stop(true));

const sizeOf = (base64: string | undefined) => readPng(Buffer.from(base64 ?? "", "base64"));

test("several pictures come as addresses unless asked otherwise, with counts", async () => {
  const asked = { model: "demo-image", prompt: "one two three", n: 10 };
  const answer = await client.images.generate(asked);
  expect(answer.data).toHaveLength(10);
  for (const { url, b64_json } of answer.data ?? []) {
    expect(b64_json).toBeUndefined();
    const [head, base64] = (url as string).split(",");
    expect(head).toBe("data:image/png;base64");
    expect(sizeOf(base64)).toMatchObject({ width: 64, height: 64 });
  }
  expect(answer.usage).toEqual({
    ...{ total_tokens: 43, input_tokens: 3, output_tokens: 40 },
    input_tokens_details: { text_tokens: 3, image_tokens: 0 },
    output_tokens_details: { text_tokens: 0, image_tokens: 40 },
  });
  expect(answer.created).toBeGreaterThan(1_700_000_000);
  const inside = await client.images.generate({ ...asked, n: 1, response_format: "b64_json" });
  expect(sizeOf(inside.data?.[0]?.b64_json)).toMatchObject({ width: 64, height: 64 });
});

test.each([0, 2, 3])("a stream with %d partial images", async (partial_images) => {
  const asked = { model: "demo-image", prompt: "one two three four", partial_images, stream: true } as const;
  const types: string[] = [];
  let counted: number | undefined;
  for await (const event of await client.images.generate(asked)) {
    types.push(event.type);
    expect(sizeOf(event.b64_json)).toMatchObject({ width: 64, height: 64 });
    expect(event).toMatchObject({ size: "64x64", output_format: "png" });
    if (event.type === "image_generation.partial_image") expect(event.partial_image_index).toBe(types.length - 1);
    else counted = event.usage.total_tokens;
  }
  const partials = Array<string>(partial_images).fill("image_generation.partial_image");
  expect(types).toEqual([...partials, "image_generation.completed"]);
  expect(counted).toBe(8);
});

test.each([
  [{ prompt: "" }, "prompt", "invalid_value"],
  [{ prompt: undefined }, "prompt", "missing_required_parameter"],
  [{ n: 11 }, "n", "invalid_value"],
  [{ n: 0 }, "n", "invalid_value"],
  [{ response_format: "gif" }, "response_format", "invalid_value"],
  [{ partial_images: 4 }, "partial_images", "invalid_value"],
])("%j is 400", async (more, param, code) => {
  const response = await fetch(new URL("/v1/images/generations", server.url), {
    method: "POST",
    body: JSON.stringify({ model: "demo-image", prompt: "a cat", ...more }),
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error", param, code } });
});
