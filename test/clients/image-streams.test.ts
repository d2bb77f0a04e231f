// The official OpenAI SDK reads image streams in every style, and throws the errors that they end with.

import { expect, test } from "bun:test";
import OpenAI from "openai";
import { type ImageStreamOptions, imageStreamEdits } from "../../src/protocols/images/stream-edits.ts";
import { clientWords, passThrough } from "../../src/protocols/registry.ts";

const event = (value: { type: string; [key: string]: unknown }) =>
  new TextEncoder().encode(`event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`);

const USAGE = { input_tokens: 1, output_tokens: 2, total_tokens: 3, input_tokens_details: {} };
const STREAM = [
  event({ type: "image_generation.partial_image", b64_json: "AAAA", created_at: 4, partial_image_index: 0 }),
  event({ type: "image_generation.completed", b64_json: "BBBB", created_at: 4, usage: USAGE }),
];

/** A client of a server that sends this. */
async function withClient(send: () => Uint8Array[], use: (client: OpenAI) => Promise<void>): Promise<void> {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(Buffer.concat(send()), { headers: { "Content-Type": "text/event-stream" } }),
  });
  try {
    await use(new OpenAI({ apiKey: "sekret", baseURL: `http://127.0.0.1:${server.port}/v1`, maxRetries: 0 }));
  } finally {
    await server.stop(true);
  }
}

function passed(style: ImageStreamOptions["style"]): Uint8Array[] {
  const edits = imageStreamEdits({ style, prefix: "image_generation", images: 1, createdAt: 4 });
  const watch = passThrough("images").watch({ choices: 1, edits });
  return STREAM.map((events) => watch.push(events) as Uint8Array);
}

const PUBLIC = ["image_generation.partial_image", "image_generation.completed"];

test.each([
  ["openai", PUBLIC],
  ["both", [PUBLIC[0], "image_generation.complete", PUBLIC[1], "image_generation.usage", "done"]],
  ["specification", [PUBLIC[0], "image_generation.complete", "image_generation.usage", "done"]],
] as const)("a stream in the style %s", async (style, expected) => {
  await withClient(
    () => passed(style),
    async (client) => {
      const found: string[] = [];
      let picture: string | undefined;
      for await (const told of await client.images.generate({ model: "gpt-image-1", prompt: "a cat", stream: true })) {
        found.push(told.type);
        if (told.type === "image_generation.completed") picture = told.b64_json;
      }
      expect(found).toEqual([...expected] as string[]);
      expect(picture).toBe(style === "specification" ? undefined : "BBBB");
    },
  );
});

test("an error in the middle is thrown", async () => {
  const words = { status: 502, message: "the backend is gone", type: "backend_error", code: 502, requestId: "r" };
  const error = new TextEncoder().encode(clientWords("images").errorEvent(words));
  await withClient(
    () => [STREAM[0] as Uint8Array, error],
    async (client) => {
      const found: string[] = [];
      const reading = (async () => {
        for await (const told of await client.images.generate({ prompt: "a cat", stream: true })) found.push(told.type);
      })();
      const thrown = await reading.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(thrown).toBeInstanceOf(OpenAI.APIError);
      expect((thrown as InstanceType<typeof OpenAI.APIError>).message).toContain("the backend is gone");
      expect(found).toEqual(["image_generation.partial_image"]);
    },
  );
});
