// Forms as no client should send them, over sockets: each is refused in words that name what is wrong, the connection goes on
// where HTTP allows it, and what the form took of the memory is free again. And the table of image models, row by row.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError, expectErrorBody } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { BOUNDARY, type FormPart, formOf } from "../support/multipart-forms.ts";
import { chunk, headerChunk, pngFile, pngImage } from "../support/png-images.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const MODELS = ["gpt-image-1", "gpt-image-1.5", "gpt-image-1-mini", "dall-e-2", "dall-e-3", "whisper"];
const backend = bed.backend({ models: MODELS });
const MEBIBYTE = 1024 * 1024;
/** An eighth is kept for small bodies: room for one of the largest forms, and not for two. */
const BUDGET_BYTES = 40 * MEBIBYTE;
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      server: { max_buffered_bodies: BUDGET_BYTES },
      backends: [{ name: "vendor", type: "openai", url: backend.url, api_key: "sekret-vendor" }],
    },
  });
});

const json = (value: unknown): Answer => ({
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});
const ANSWER = { created: 7, data: [{ b64_json: "QUJD" }], text: "Hello" };

beforeEach(() => backend.reset(json(ANSWER)));

const open: RawConnection[] = [];
afterEach(() => {
  for (const connection of open.splice(0)) connection.abort();
});

async function connect(): Promise<RawConnection> {
  const connection = await RawConnection.open(gateway.port);
  open.push(connection);
  return connection;
}

const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

interface Sent {
  type?: string | null;
  declaredBytes?: number;
}

function requestBytes(path: string, body: string | Uint8Array, { type = TYPE, declaredBytes }: Sent = {}): Buffer {
  const length = declaredBytes ?? Buffer.byteLength(body);
  const contentType = type === null ? "" : `Content-Type: ${type}\r\n`;
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${contentType}Content-Length: ${length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body as string)]);
}

const square = pngImage({ width: 4, height: 4 });
const file = (name: string, content: Uint8Array | string): FormPart => ({ name, filename: `${name}.bin`, content });
const field = (name: string, content: string): FormPart => ({ name, content });

/** What makes a good form of each endpoint. */
const FORMS: Record<string, FormPart[]> = {
  "/v1/images/edits": [field("prompt", "at night"), file("image", square)],
  "/v1/images/variations": [file("image", square)],
  "/v1/audio/transcriptions": [field("model", "whisper"), file("file", "RIFF....WAVE")],
};
const PATHS = Object.keys(FORMS);

async function expectGood(connection: RawConnection, path: string): Promise<void> {
  connection.write(requestBytes(path, formOf(FORMS[path] as FormPart[])));
  const { status, text } = await connection.response();
  expect([status, text]).toEqual([200, JSON.stringify(ANSWER)]);
}

const head = (name: string) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"`;
const END = `--${BOUNDARY}--\r\n`;

describe.each(PATHS)("%s", (path) => {
  const parts = FORMS[path] as FormPart[];
  const good = formOf(parts);
  const rest = Buffer.from(good).toString("latin1");
  const withHead = (broken: string) => Buffer.from(`${broken}\r\n\r\nx\r\n${rest}`, "latin1");

  const refused: [what: string, body: string | Uint8Array, sent: Sent, message: string, param?: string][] = [
    ["JSON", `{"model":"whisper","prompt":"x"}`, { type: "application/json" }, "must be a form"],
    ["no Content-Type", good, { type: null }, "must be a form"],
    ["a form of the other kind", "model=whisper&prompt=x", { type: "application/x-www-form-urlencoded" }, "be a form"],
    ["no boundary", good, { type: "multipart/form-data" }, "no valid boundary"],
    ["an empty boundary", good, { type: 'multipart/form-data; boundary=""' }, "no valid boundary"],
    ["a boundary that is too long", good, { type: `multipart/form-data; boundary=${"b".repeat(71)}` }, "1 to 70"],
    ["another boundary", good, { type: "multipart/form-data; boundary=other" }, "does not contain the boundary"],
    ["an empty body", "", {}, "does not contain the boundary"],
    ["no final boundary", good.subarray(0, -END.length), {}, "final boundary is missing"],
    ["a form cut in the middle", good.subarray(0, good.length >> 1), {}, "cut off"],
    ["101 parts", formOf([...parts, ...Array.from({ length: 101 }, () => field("a", "b"))]), {}, "more than 100 parts"],
    ["20,000 parts", formOf(Array.from({ length: 20_000 }, () => field("a", "b"))), {}, "more than 100 parts"],
    ["a head of 17 KB", withHead(`${head("a")}; x="${"y".repeat(17 * 1024)}"`), {}, "larger than 16384 bytes"],
    ["an endless head", `${head("a")}; x="${"y".repeat(2 * MEBIBYTE)}`, {}, "larger than 16384 bytes"],
    ["a part without a name", withHead(`--${BOUNDARY}\r\nContent-Disposition: form-data`), {}, "without a name"],
    ["a part with an empty name", withHead(head("")), {}, "without a name"],
    ["a part without headers", `--${BOUNDARY}\r\n\r\nx\r\n${rest}`, {}, "without a name"],
    ["two names", withHead(`${head("a")}; name="b"`), {}, "Content-Disposition header that cannot be read"],
    ["two dispositions", withHead(`${head("a")}\r\nContent-Disposition: form-data; name="b"`), {}, "cannot be read"],
    ["a NUL in a head", withHead(`${head("a\0b")}`), {}, "a line among its headers that is none"],
    ["a line that is no header", withHead(`${head("a")}\r\nnonsense`), {}, "a line among its headers that is none"],
    ["a form in the form", withHead(`${head("a")}\r\nContent-Type: multipart/mixed; boundary=c`), {}, "within", "a"],
    ["base64", withHead(`${head("a")}\r\nContent-Transfer-Encoding: base64`), {}, "as they are", "a"],
    ["a text in Latin 1", withHead(`${head("a")}\r\n\r\n\xff`), {}, "nor text in UTF-8", "a"],
    ["70 KB before the form", `${"x".repeat(70_000)}\r\n${rest}`, {}, "bytes before its first boundary"],
    ["70 KB behind the form", `${rest}${"x".repeat(70_000)}`, {}, "bytes behind its final boundary"],
  ];
  const cases = refused.map(([what, body, sent, message, param]) => ({ what, body, sent, message, param }));
  test.each(cases)("$what is refused, and the connection goes on", async ({ body, sent, message, param }) => {
    const connection = await connect();
    const bytes = typeof body === "string" ? Buffer.from(body, "latin1") : body;
    connection.write(requestBytes(path, bytes, sent));
    const response = await connection.response();
    const error = expectErrorBody(response, response.text, 400);
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain(message);
    expect(error.param).toBe(param as string);
    expect(backend.requests).toHaveLength(0);
    await expectGood(connection, path);
  });

  test("a body that is compressed is refused in these words", async () => {
    const body = Bun.gzipSync(good);
    const headers = { "Content-Type": TYPE, "Content-Encoding": "gzip" };
    const { message } = await expectError(await gateway.fetch(path, { method: "POST", body, headers }), 400);
    expect(message).toContain("send it uncompressed");
  });

  test("names that mean something to programs are names like others", async () => {
    const odd = ["__proto__", "constructor", "hasOwnProperty", "toString"].map((name) => field(name, "1"));
    const connection = await connect();
    connection.write(requestBytes(path, formOf([...odd, ...parts])));
    expect((await connection.response()).status).toBe(200);
    expect(backend.lastRequest.text).toContain('name="__proto__"');
  });

  test("file names go on and are never looked at", async () => {
    const names = ["../../etc/passwd", "C:\\\\x", "n".repeat(5000)];
    for (const filename of names) {
      const named = parts.map((part) => (part.filename === undefined ? part : { ...part, filename }));
      const connection = await connect();
      connection.write(requestBytes(path, formOf(named)));
      expect([filename.slice(0, 20), (await connection.response()).status]).toEqual([filename.slice(0, 20), 200]);
      expect(backend.lastRequest.text).toContain(`filename="${filename}"`);
    }
  });

  test("clients that stop or leave in the middle of a form take no memory with them", async () => {
    // Five hold what they declared; were it kept, the next form would not find room.
    const large = formOf([...parts, file("more", Buffer.alloc(6 * MEBIBYTE))]);
    for (let round = 0; round < 2; round++) {
      const stopped = await Promise.all(Array.from({ length: 5 }, connect));
      for (const connection of stopped) connection.write(requestBytes(path, large).subarray(0, 200_000));
      for (const [index, connection] of stopped.entries()) index % 2 === 0 ? connection.abort() : connection.close();
      await Promise.all(stopped.map(({ closed }) => closed));
    }
    await expectRoom(path);
    expect(backend.requests).toHaveLength(1);
  });

  test("refused forms give back what they took", async () => {
    const body = Buffer.concat([formOf([...parts, file("more", Buffer.alloc(9 * MEBIBYTE))]), Buffer.alloc(70_000)]);
    const connection = await connect();
    for (let count = 0; count < 6; count++) {
      connection.write(requestBytes(path, body));
      expect((await connection.response()).status).toBe(400);
    }
    await expectRoom(path);
  });
});

/** So much that it finds no room where another body has kept its own; the request behind it may be a while in ending. */
async function expectRoom(path: string): Promise<void> {
  const large = formOf([...(FORMS[path] as FormPart[]), file("other", Buffer.alloc(30 * MEBIBYTE))]);
  const headers = { "Content-Type": TYPE };
  for (let tries = 0; tries < 50; tries++) {
    const response = await gateway.fetch(path, { method: "POST", body: large, headers });
    await response.text();
    if (response.status === 200) return;
    expect(response.status).toBe(503);
    await Bun.sleep(20);
  }
  throw new Error("the memory for bodies stays taken");
}

describe("a body above the limit", () => {
  const limits: [path: string, bytes: number, words: string][] = [
    ["/v1/images/edits", 32 * MEBIBYTE, "32 MiB"],
    ["/v1/images/variations", 32 * MEBIBYTE, "32 MiB"],
  ];
  test.each(limits)("%s: declared", async (path, bytes, words) => {
    const connection = await connect();
    connection.write(requestBytes(path, formOf(FORMS[path] as FormPart[]), { declaredBytes: bytes + 1 }));
    const response = await connection.response();
    const error = expectErrorBody(response, response.text, 413);
    expect(error.message).toContain(words);
  });

  test.each(limits)("%s: found out while it comes", async (path, bytes, words) => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(formOf(FORMS[path] as FormPart[]));
        for (let sent = 0; sent < bytes; sent += MEBIBYTE) controller.enqueue(new Uint8Array(MEBIBYTE));
        controller.close();
      },
    });
    const response = await gateway.fetch(path, { method: "POST", body, headers: { "Content-Type": TYPE } });
    expect((await expectError(response, 413)).message).toContain(words);
    await expectRoom(path);
  });
});

describe("pictures", () => {
  const bomb = pngImage({ width: 16_384, height: 16_384, rows: new Uint8Array(10) });
  const huge = pngFile([headerChunk({ width: 2 ** 31 - 1, height: 2 ** 31 - 1 }), chunk("IDAT"), chunk("IEND")]);
  /** A picture of exactly so many bytes. */
  const ofBytes = (bytes: number) =>
    pngImage({ width: 4, height: 4, before: [chunk("teXt", new Uint8Array(bytes - square.length - 12))] });
  const wide = pngImage({ width: 8, height: 4 });
  const noAlpha = pngImage({ width: 4, height: 4, colourType: 2 });

  const bad: [what: string, image: Uint8Array, code: string, words: string][] = [
    ["a bomb", bomb, "invalid_image", "cannot be those of 16384 x 16384 pixels"],
    ["a header of two thousand million pixels", huge, "invalid_image", "larger than 16384 x 16384"],
    ["cut off", square.subarray(0, -1), "invalid_image", "cut off"],
    ["cut off in its header", square.subarray(0, 20), "invalid_image", "cut off"],
    ["a signature alone", square.subarray(0, 8), "invalid_image", "cut off"],
    ["nothing", new Uint8Array(0), "invalid_image", "is not a PNG image"],
    ["a JPEG that is called PNG", Buffer.from("ffd8ffe000104a464946", "hex"), "invalid_image", "is not a PNG image"],
    ["exactly 4 MiB", ofBytes(4 * MEBIBYTE), "image_too_large", "4194304"],
    ["4 MiB and a byte", ofBytes(4 * MEBIBYTE + 1), "image_too_large", "less than 4194304 (4 MB)"],
    ["not square", wide, "image_not_square", "is 8x4; an image must be square"],
  ];
  const masks: typeof bad = [
    ["of another size", wide, "dimension_mismatch", "is 8x4, but the image is 4x4"],
    ["without alpha", noAlpha, "mask_without_alpha", "no alpha channel"],
    ["that is a bomb", bomb, "invalid_image", "cannot be those of"],
    ["of 4 MiB", ofBytes(4 * MEBIBYTE), "image_too_large", "less than 4194304"],
  ];

  async function refuse(path: string, parts: FormPart[], param: string, code: string, words: string): Promise<void> {
    const connection = await connect();
    connection.write(requestBytes(path, formOf(parts)));
    const response = await connection.response();
    const error = expectErrorBody(response, response.text, 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param, code });
    expect(error.message).toStartWith(`${param}: `);
    expect(error.message).toContain(words);
    expect(backend.requests).toHaveLength(0);
    await expectGood(connection, path);
  }

  test.each(bad)("%s", async (_what, image, code, words) => {
    await refuse("/v1/images/edits", [field("prompt", "x"), file("image", image)], "image", code, words);
    backend.reset(json(ANSWER));
    await refuse("/v1/images/variations", [file("image", image)], "image", code, words);
  });

  test.each(masks)("a mask %s", async (_what, mask, code, words) => {
    const parts = [field("prompt", "x"), file("image", square), file("mask", mask)];
    await refuse("/v1/images/edits", parts, "mask", code, words);
  });

  test("a byte less than 4 MiB is taken", async () => {
    const image = ofBytes(4 * MEBIBYTE - 1);
    expect(image.length).toBe(4 * MEBIBYTE - 1);
    const body = formOf([field("prompt", "x"), file("image", image), file("mask", image)]);
    const headers = { "Content-Type": TYPE };
    expect((await gateway.fetch("/v1/images/edits", { method: "POST", body, headers })).status).toBe(200);
  });

  test("of several, the one at fault is named", async () => {
    const parts = [field("prompt", "x"), file("image[]", square), file("image[]", square.subarray(0, -1))];
    await refuse("/v1/images/edits", parts, "image", "invalid_image", "file 2 is a PNG image that is cut off");
  });
});

describe("recordings", () => {
  const cases: [what: string, parts: FormPart[], param: string, words: string][] = [
    ["no file", [field("model", "whisper")], "file", "file is required"],
    ["a text in place of the file", [field("model", "whisper"), field("file", "RIFF")], "file", "file"],
    ["an empty file", [field("model", "whisper"), file("file", "")], "file", "is empty"],
    ["two files", [field("model", "whisper"), file("file", "a"), file("file", "b")], "file", "one file"],
    ["no model", [file("file", "RIFF")], "model", "model is required"],
    ["two models", [field("model", "a"), field("model", "b"), file("file", "RIFF")], "model", "model"],
    ["a file as the model", [file("model", "whisper"), file("file", "RIFF")], "model", "model"],
    [
      "a file as the language",
      [field("model", "whisper"), file("file", "R"), file("language", "en")],
      "language",
      "text",
    ],
    [
      "a stream that is neither",
      [field("model", "whisper"), file("file", "R"), field("stream", "yes")],
      "stream",
      "true",
    ],
  ];
  test.each(cases)("%s", async (_what, parts, param, words) => {
    const body = formOf(parts);
    const headers = { "Content-Type": TYPE };
    const response = await gateway.fetch("/v1/audio/transcriptions", { method: "POST", body, headers });
    const error = await expectError(response, 400);
    expect([error.param, error.message]).toEqual([param, expect.stringContaining(words)]);
    expect(backend.requests).toHaveLength(0);
  });
});

describe("the table of image models", () => {
  const GPT = ["1024x1024", "1536x1024", "1024x1536", "auto"];
  const SQUARES = ["256x256", "512x512", "1024x1024"];
  const GPT_QUALITIES = { low: "low", medium: "medium", high: "high", auto: "auto", standard: "medium", hd: "high" };
  const ROWS: [model: string, sent: string, sizes: string[], most: number, qualities: Record<string, string>][] = [
    ["img-legacy-2", "dall-e-2", SQUARES, 10, {}],
    [
      "img-legacy-3",
      "dall-e-3",
      ["1024x1024", "1792x1024", "1024x1792"],
      1,
      { standard: "standard", hd: "hd", low: "standard", medium: "standard", auto: "standard", high: "hd" },
    ],
    ["img-v1", "gpt-image-1", GPT, 1, GPT_QUALITIES],
    ["img-v1.5", "gpt-image-1.5", GPT, 1, GPT_QUALITIES],
    ["img-v1-mini", "gpt-image-1-mini", GPT, 1, GPT_QUALITIES],
  ];
  const SIZES = [...new Set([...SQUARES, ...GPT, "1792x1024", "1024x1792", "2048x2048", "4096x4096", "300x300", ""])];

  const draw = (body: object) => gateway.post("/v1/images/generations", { prompt: "x", ...body });

  test.each(ROWS)("%s", async (model, sent, sizes, most, qualities) => {
    for (const name of [model, sent]) {
      for (const size of SIZES) {
        const response = await draw({ model: name, size });
        if (sizes.includes(size)) {
          expect([size, response.status]).toEqual([size, 200]);
          expect(backend.lastRequest.json()).toEqual({ prompt: "x", model: sent, size });
          continue;
        }
        const { param, message } = await expectError(response, 400);
        expect(param).toBe("size");
        for (const allowed of sizes) expect(message).toContain(allowed);
      }
    }
    for (const n of [1, most, most + 1, 0, 11]) {
      const response = await draw({ model, n });
      if (n >= 1 && n <= most) {
        expect(response.status).toBe(200);
        continue;
      }
      const { param, message } = await expectError(response, 400);
      expect([param, message]).toEqual(["n", expect.stringContaining(most === 1 ? "only 1" : `from 1 to ${most}`)]);
    }
    for (const [quality, asked] of Object.entries(qualities)) {
      expect((await draw({ model, quality })).status).toBe(200);
      expect(backend.lastRequest.json()).toEqual({ prompt: "x", model: sent, quality: asked });
    }
    const { param } = await expectError(await draw({ model, quality: 5 }), 400);
    expect(param).toBe("quality");
  });

  const FIELDS: [field: string, good: object, bad: object, words: string][] = [
    ["output_format", { output_format: "webp" }, { output_format: "gif" }, "png, jpeg or webp"],
    [
      "output_compression",
      { output_format: "jpeg", output_compression: 50 },
      { output_format: "jpeg", output_compression: 101 },
      "from 0 to 100",
    ],
    ["background", { background: "transparent" }, { background: "blue" }, "transparent, opaque or auto"],
    ["background", { background: "transparent", output_format: "webp" }, transparentJpeg(), "png or webp"],
    ["partial_images", { stream: false, partial_images: 0 }, { stream: true, partial_images: 4 }, "from 0 to 3"],
    ["response_format", { response_format: "b64_json" }, { response_format: "url" }, "b64_json"],
  ];
  test.each(FIELDS)("%s belongs to the img-v1 family", async (field, good, bad, words) => {
    expect((await draw({ model: "img-v1", ...good })).status).toBe(200);
    const { param, message } = await expectError(await draw({ model: "img-v1", ...bad }), 400);
    expect([param, message]).toEqual([field, expect.stringContaining(words)]);
    if (field === "response_format" || field === "partial_images") return;
    for (const model of ["img-legacy-2", "img-legacy-3"]) {
      const refused = await expectError(await draw({ model, ...good }), 400);
      expect(Object.keys(good)).toContain(refused.param as string);
      expect(refused.message).toContain("ask gpt-image-1");
    }
  });

  test("style belongs to img-legacy-3, streams to the img-v1 family", async () => {
    expect((await draw({ model: "img-legacy-3", style: "natural" })).status).toBe(200);
    const bold = await expectError(await draw({ model: "img-legacy-3", style: "bold" }), 400);
    expect([bold.param, bold.message]).toEqual(["style", expect.stringContaining("vivid or natural")]);
    const other = await expectError(await draw({ model: "img-v1", style: "vivid" }), 400);
    expect([other.param, other.message]).toEqual(["style", expect.stringContaining("dall-e-3")]);
    const streamed = await expectError(await draw({ model: "img-legacy-2", stream: true }), 400);
    expect([streamed.param, streamed.message]).toEqual(["stream", expect.stringContaining("gpt-image-1")]);
  });
});

function transparentJpeg(): object {
  return { background: "transparent", output_format: "jpeg" };
}
