// Pictures of the demo backend, over a real socket: real PNG that anybody can show, in the shapes of the public API.

import { afterAll, describe, expect, test } from "bun:test";
import { inflateSync } from "node:zlib";
import OpenAI from "openai";
import { createDemoBackend } from "./backend.ts";

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: createDemoBackend({ wordDelayMs: 0 }) });
const client = new OpenAI({ apiKey: "none", baseURL: `${server.url.href}v1`, maxRetries: 0 });
afterAll(() => server.stop(true));

interface ReadPicture {
  width: number;
  height: number;
  /** The rows, a bit for each dot of ink. */
  dots: (0 | 1)[][];
  palette: number[];
}

/** Checks every chunk on the way. */
function readPng(bytes: Buffer): ReadPicture {
  expect(bytes.subarray(0, 8).toString("hex")).toBe("89504e470d0a1a0a");
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const typed = bytes.subarray(at + 4, at + 8 + length);
    expect(bytes.readUInt32BE(at + 8 + length)).toBe(Bun.hash.crc32(typed));
    chunks.set(typed.subarray(0, 4).toString(), typed.subarray(4));
    at += 12 + length;
  }
  expect([...chunks.keys()]).toEqual(["IHDR", "PLTE", "IDAT", "IEND"]);
  const header = chunks.get("IHDR") as Buffer;
  expect([...header.subarray(8)]).toEqual([1, 3, 0, 0, 0]);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = inflateSync(chunks.get("IDAT") as Buffer);
  const rowBytes = 1 + Math.ceil(width / 8);
  expect(rows.length).toBe(rowBytes * height);
  const dots = Array.from({ length: height }, (_, y) => {
    const row = rows.subarray(y * rowBytes, (y + 1) * rowBytes);
    expect(row[0]).toBe(0);
    return Array.from({ length: width }, (_, x) => (((row[1 + (x >> 3)] as number) >> (7 - (x & 7))) & 1) as 0 | 1);
  });
  return { width, height, dots, palette: [...(chunks.get("PLTE") as Buffer)] };
}

const picture = async (prompt: string, more: object = {}) => {
  const answer = await client.images.generate({ model: "demo-image", prompt, response_format: "b64_json", ...more });
  const bytes = Buffer.from(answer.data?.[0]?.b64_json as string, "base64");
  return { bytes, ...readPng(bytes), answer };
};

const inked = ({ dots }: ReadPicture) => dots.flat().filter((dot) => dot === 1).length;

describe("a picture", () => {
  test.each([
    [undefined, 512, 512],
    ["auto", 512, 512],
    ["256x256", 256, 256],
    ["1024x1024", 1024, 1024],
    ["1792x1024", 1792, 1024],
    ["17x33", 17, 33],
  ])("of the size %p", async (size, width, height) => {
    const read = await picture("a lighthouse at dawn, with gulls", size === undefined ? {} : { size });
    expect([read.width, read.height]).toEqual([width, height]);
    expect(read.bytes.length).toBeLessThan(8_000);
    const ink = inked(read);
    expect(ink).toBeGreaterThan(0);
    expect(ink).toBeLessThan((width * height) / 2);
  });

  test("shows the words of its prompt", async () => {
    const { dots } = await picture("HI", { size: "96x96" });
    const rows = dots.map((row) => row.map((dot) => (dot === 1 ? "#" : " ")).join(""));
    // The letters are as wide as two of their dots.
    const found = rows.filter((row) => row.trim() !== "").map((row) => row.replaceAll(/(.)\1/g, "$1").trimEnd());
    const letters = found.filter((_, index) => index % 2 === 0).map((row) => row.slice(row.length - 11));
    expect(letters.map((row) => row.trim())).toEqual([
      "#   #  ###",
      "#   #   #",
      "#   #   #",
      "#####   #",
      "#   #   #",
      "#   #   #",
      "#   #  ###",
    ]);
  });

  test("is another for another prompt, and the same for the same", async () => {
    const [one, same, other] = [await picture("a cat"), await picture("A Cát"), await picture("a dog")];
    expect(same.dots).toEqual(one.dots);
    expect((await picture("a cat")).bytes.equals(one.bytes)).toBe(true);
    expect(other.dots).not.toEqual(one.dots);
  });

  test.each(["日本語の灯台", "👩‍🚀", " \n ", "w".repeat(30_000), "a b ".repeat(5_000), "<&>\u0000\u0007"])(
    "of odd words: %.20p",
    async (prompt) => {
      const { bytes } = await picture(prompt, { size: "128x64" });
      expect(bytes.length).toBeLessThan(2_000);
    },
  );
});

describe("an answer", () => {
  test("has several pictures in colours of their own, as addresses unless asked otherwise, and counts", async () => {
    const answer = await client.images.generate({ model: "demo-image", prompt: "one two three", n: 10 });
    expect(answer.data).toHaveLength(10);
    expect(new Set(answer.data?.map(({ url }) => url)).size).toBe(5);
    for (const { url, b64_json } of answer.data ?? []) {
      expect(b64_json).toBeUndefined();
      const [head, base64] = (url as string).split(",");
      expect(head).toBe("data:image/png;base64");
      readPng(Buffer.from(base64 as string, "base64"));
    }
    expect(answer.usage).toEqual({
      ...{ total_tokens: 2_563, input_tokens: 3, output_tokens: 2_560 },
      input_tokens_details: { text_tokens: 3, image_tokens: 0 },
      output_tokens_details: { text_tokens: 0, image_tokens: 2_560 },
    });
    expect(answer.created).toBeGreaterThan(1_700_000_000);
  });

  test.each([0, 2, 3])("as a stream with %d partial images", async (partial_images) => {
    const asked = { model: "demo-image", prompt: "one two three four", partial_images, stream: true } as const;
    const types: string[] = [];
    const ink: number[] = [];
    let counted: number | undefined;
    for await (const event of await client.images.generate(asked)) {
      types.push(event.type);
      ink.push(inked(readPng(Buffer.from(event.b64_json, "base64"))));
      expect(event).toMatchObject({ size: "512x512", output_format: "png" });
      if (event.type === "image_generation.partial_image") expect(event.partial_image_index).toBe(types.length - 1);
      else counted = event.usage.total_tokens;
    }
    const partials = Array<string>(partial_images).fill("image_generation.partial_image");
    expect(types).toEqual([...partials, "image_generation.completed"]);
    expect(counted).toBe(260);
    expect(new Set(ink).size).toBe(ink.length);
  });
});

test.each([
  [{ prompt: "" }, "prompt", "invalid_value"],
  [{ prompt: undefined }, "prompt", "missing_required_parameter"],
  [{ n: 11 }, "n", "invalid_value"],
  [{ n: 0 }, "n", "invalid_value"],
  [{ size: "9999x9999" }, "size", "invalid_value"],
  [{ size: "1x1" }, "size", "invalid_value"],
  [{ size: "large" }, "size", "invalid_value"],
  [{ response_format: "gif" }, "response_format", "invalid_value"],
  [{ output_format: "webp" }, "output_format", "invalid_value"],
  [{ partial_images: 4 }, "partial_images", "invalid_value"],
])("%j is 400", async (more, param, code) => {
  const response = await fetch(new URL("/v1/images/generations", server.url), {
    method: "POST",
    body: JSON.stringify({ model: "demo-image", prompt: "a cat", ...more }),
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error", param, code } });
});
