// Bodies of clients over real connections: what is read, and how each kind of trouble is told.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { BOUNDARY, formOf } from "../../test/support/multipart-forms.ts";
import { RawConnection } from "../../test/support/raw-http.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { FormBody } from "../lib/form-body.ts";
import type { RequestBody } from "../lib/request-body.ts";
import { BodyBudget, type BodyHolder } from "./body-budget.ts";
import { createBodyReader } from "./read-body.ts";

const MAX_BYTES = 64 * 1024;
const now = () => performance.now();
const deadlines = createDeadlines(now);
const budget = new BodyBudget();
const bodies = createBodyReader({ deadlines, now, budget });

let server: Bun.Server<undefined>;
let results: (RequestBody | Error)[] = [];
let readBody: typeof bodies.readJson = bodies.readJson;
let timeoutMs = 60_000;
let maxBytes = MAX_BYTES;
let budgetBytes = 64 * MAX_BYTES;
/** What a request holds is asked for while it still does. */
let whileHeld = async (_holder: BodyHolder) => {};

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      const holder: BodyHolder = { heldBytes: 0 };
      try {
        results.push(await readBody(request, holder, { maxBytes, timeoutMs, budgetBytes }));
        await whileHeld(holder);
        return new Response("read");
      } catch (error) {
        results.push(error as Error);
        const { status = 500, headers = {} } = error instanceof GatewayError ? error : {};
        return new Response("refused", { status, headers });
      } finally {
        bodies.release(holder);
      }
    },
  });
});
afterAll(() => server.stop(true));
afterEach(() => {
  results = [];
  readBody = bodies.readJson;
  timeoutMs = 60_000;
  maxBytes = MAX_BYTES;
  budgetBytes = 64 * MAX_BYTES;
  whileHeld = async () => {};
  expect(deadlines.size).toBe(0);
  expect(budget.heldBytes).toBe(0);
});

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream;

async function post(body: Body, headers: Record<string, string> = {}): Promise<RequestBody | Error> {
  await (await fetch(server.url, { method: "POST", body, headers })).text();
  expect(results.length).toBe(1);
  return results[0] as RequestBody | Error;
}

/** The same bytes with and without a length that is known beforehand. */
const framings: [name: string, wrap: (bytes: Uint8Array<ArrayBuffer>) => Body][] = [
  ["with a length", (bytes) => bytes],
  [
    "in chunks",
    (bytes) =>
      new ReadableStream({
        start(controller) {
          const size = Math.max(1_000, Math.ceil(bytes.length / 100));
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      }),
  ],
];

const encode = (text: string) => new TextEncoder().encode(text);

for (const [name, wrap] of framings) {
  describe(name, () => {
    test("an object is read, and its bytes are kept as they came", async () => {
      const bytes = encode(' { "a" : 1.0, "text": "Grüße 🚂" }\n');
      const body = (await post(wrap(bytes))) as RequestBody;
      expect(body.value).toEqual({ a: 1, text: "Grüße 🚂" });
      expect(Buffer.from(body.bytes()).equals(Buffer.from(bytes))).toBe(true);
    });

    test("the limit itself passes, one byte more is refused", async () => {
      const exact = encode(JSON.stringify({ a: "x".repeat(MAX_BYTES - 8) }));
      expect(exact.length).toBe(MAX_BYTES);
      expect(((await post(wrap(exact))) as RequestBody).value).toEqual({ a: expect.any(String) });
      results = [];
      const error = await post(wrap(encode(JSON.stringify({ a: "x".repeat(MAX_BYTES - 7) }))));
      expect(error).toMatchObject({ status: 413, type: "payload_too_large" });
      expect((error as Error).message).toContain("0.0625 MiB");
    });

    const cases: [title: string, text: string, code: string, message: string][] = [
      ["nothing", "", "invalid_json", "empty"],
      ["cut JSON", '{"a":', "invalid_json", "not valid JSON"],
      ["a form", "a=1&b=2", "invalid_json", "not valid JSON"],
      ["two objects", "{}{}", "invalid_json", "not valid JSON"],
      ["an array", "[1]", "invalid_value", "a JSON object, not an array"],
      ["null", "null", "invalid_value", "a JSON object, not null"],
      ["a string", '"x"', "invalid_value", "a JSON object, not a string"],
      ["a number", "5", "invalid_value", "a JSON object, not a number"],
    ];
    test.each(cases)("%s is refused", async (_title, text, code, message) => {
      const error = await post(wrap(encode(text)));
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ status: 400, code });
      expect((error as Error).message).toContain(message);
    });

    test.each([
      ['{"model":"a","stream":true,"model":"b"}', "model"],
      ['{"model":"a","mod\\u0065l":"b"}', "model"],
      ['{"__proto__":1,"a":2,"__proto__":3}', "__proto__"],
      [`{"a":${"[".repeat(100)}${"]".repeat(100)}, "b":"\\"", "a" : 1}`, "a"],
    ])("a member that stands there twice is refused: %s", async (text, name) => {
      const error = await post(wrap(encode(text)));
      expect(error).toMatchObject({ status: 400, code: "invalid_value", param: name });
      expect((error as Error).message).toBe(`${name}: stands more than once in the request body.`);
    });

    test("members of inner objects may stand there twice, and names may be those of objects' own", async () => {
      const text = '{"a":{"b":1,"b":2},"__proto__":{"a":1},"constructor":{"a":2}}';
      expect(((await post(wrap(encode(text)))) as RequestBody).value.a).toEqual({ b: 2 });
    });

    test("what nests too deeply, or has too many parts, is refused", async () => {
      maxBytes = 8 * 1024 * 1024;
      const deep = `{"a":${"[".repeat(256)}${"]".repeat(256)}}`;
      expect(await post(wrap(encode(deep)))).toMatchObject({ status: 400, code: "invalid_value" });
      expect((results[0] as Error).message).toContain("256 levels");
      results = [];
      expect(await post(wrap(encode(deep.replace("[]", ""))))).toHaveProperty("value");
      results = [];
      expect(await post(wrap(encode(`{"a":[${"{},".repeat(500_000)}1]}`)))).toMatchObject({ status: 400 });
      expect((results[0] as Error).message).toContain("500000 objects, lists, names and texts");
    });

    test("large bodies are the same as small ones, and their numbers do not count as parts", async () => {
      maxBytes = 8 * 1024 * 1024;
      budgetBytes = 4 * maxBytes;
      const value = {
        tokens: Array.from({ length: 500_100 }, (_, index) => index % 10),
        messages: [{ role: "user", content: "Grüße \n ".repeat(4_000) }, { role: "assistant" }],
      };
      const text = JSON.stringify(value);
      expect(Bun.deepEquals(((await post(wrap(encode(text)))) as RequestBody).value, value, true)).toBe(true);
      for (const [broken, code] of [
        [text.slice(0, -1), "invalid_json"],
        [text.replace(/}$/, ',"messages":1}'), "invalid_value"],
        [`[${text}]`, "invalid_value"],
      ] as const) {
        results = [];
        expect(await post(wrap(encode(broken)))).toMatchObject({ status: 400, code });
      }
      const bytes = encode(text);
      bytes[bytes.length - 1_000] = 0xff;
      results = [];
      expect(((await post(wrap(bytes))) as Error).message).toContain("not valid UTF-8");
    });

    test("what all bodies may take together is not exceeded", async () => {
      budgetBytes = 10_000;
      const body = () => wrap(encode(JSON.stringify({ a: "x".repeat(6_000) })));
      const first = Promise.withResolvers<void>();
      whileHeld = async ({ heldBytes }) => {
        expect(heldBytes).toBe(6_008 + 3 * 64); // the bytes, and an object, a name and a text
        await first.promise;
      };
      const reading = fetch(server.url, { method: "POST", body: body() });
      await waitFor("the first body is read", () => results.length === 1);
      expect((await fetch(server.url, { method: "POST", body: body() })).status).toBe(503);
      expect(results[1]).toMatchObject({ code: "bodies_exhausted", headers: { "Retry-After": "1" } });
      first.resolve();
      expect((await reading).status).toBe(200);
      expect((await fetch(server.url, { method: "POST", body: body() })).status).toBe(200);
      whileHeld = async () => {};
      const alone = await fetch(server.url, {
        method: "POST",
        body: wrap(encode(JSON.stringify({ a: "x".repeat(11_000) }))),
      });
      expect(alone.status).toBe(413);
      expect((results.at(-1) as Error).message).toContain("server.max_buffered_bodies");
    });

    test("bytes that are no UTF-8 are refused", async () => {
      const error = await post(wrap(Uint8Array.of(123, 255, 125)));
      expect(error).toMatchObject({ status: 400, code: "invalid_json" });
      expect((error as Error).message).toContain("not valid UTF-8");
    });
  });
}

test("a compressed body is told as such", async () => {
  const error = await post(Bun.gzipSync(encode('{"a":1}')), { "content-encoding": "gzip" });
  expect(error).toMatchObject({ status: 400, code: "invalid_json" });
  expect((error as Error).message).toContain("Content-Encoding 'gzip'");
});

describe("clients that do not send it all", () => {
  const heads: [name: string, head: string, part: string][] = [
    ["with a length", "Content-Length: 100", '{"a":'],
    ["in chunks", "Transfer-Encoding: chunked", '5\r\n{"a":\r\n'],
  ];
  for (const [name, head, part] of heads) {
    test(`${name}: slow ones are refused when their time is over`, async () => {
      timeoutMs = 100;
      const connection = await RawConnection.open(server.port as number);
      connection.write(`POST / HTTP/1.1\r\nHost: h\r\n${head}\r\n\r\n${part}`);
      const response = await connection.response();
      expect(response.status).toBe(408);
      expect(response.headers.connection).toBe("close");
      expect(results[0]).toMatchObject({ status: 408, type: "request_timeout" });
      expect((results[0] as Error).message).toContain("100 ms");
    });

    test(`${name}: those that leave are settled at once`, async () => {
      const connection = await RawConnection.open(server.port as number);
      connection.write(`POST / HTTP/1.1\r\nHost: h\r\n${head}\r\n\r\n${part}`);
      await waitFor("the body is awaited", () => deadlines.size === 1);
      connection.abort();
      await waitFor("the read has ended", () => results.length === 1);
      expect(results[0]).toBeInstanceOf(Error);
      await waitFor("the deadline is gone", () => deadlines.size === 0);
    });
  }

  test("a length beyond the limit is refused before anything of the body came", async () => {
    const connection = await RawConnection.open(server.port as number);
    connection.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${MAX_BYTES + 1}\r\n\r\n`);
    expect((await connection.response()).status).toBe(413);
  });

  test("a body that comes byte by byte is put together", async () => {
    const connection = await RawConnection.open(server.port as number);
    const text = JSON.stringify({ a: "0123456789".repeat(300) });
    const chunks = [...text].map((letter) => `1\r\n${letter}\r\n`).join("");
    connection.write(`POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    expect((await connection.response()).status).toBe(200);
    expect(Buffer.from((results[0] as RequestBody).bytes()).toString()).toBe(text);
  });

  test("endless chunks are refused at the limit, not after their end", async () => {
    const connection = await RawConnection.open(server.port as number);
    connection.write("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = "x".repeat(32 * 1024);
    for (let count = 0; count < 3; count++) connection.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    expect((await connection.response()).status).toBe(413);
  });
});

test("what arrives after its request was refused for taking too long takes no memory of the budget", async () => {
  let sender: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      sender = controller;
    },
  });
  const request = new Request("http://gateway/", { method: "POST", body });
  const holder: BodyHolder = { heldBytes: 0 };
  const reading = bodies.readJson(request, holder, { maxBytes, timeoutMs: 1, budgetBytes });
  sender?.enqueue(encode("{"));
  await expect(reading).rejects.toMatchObject({ status: 408 });
  bodies.release(holder);
  sender?.enqueue(encode('"a"'));
  await waitFor("the body is let go", () => !body.locked || budget.heldBytes > 0);
  expect(budget.heldBytes).toBe(0);
});

describe("forms", () => {
  const edit = formOf([
    { name: "model", content: "sample" },
    { name: "image", filename: "a.png", contentType: "image/png", content: Uint8Array.of(137, 80, 0, 255) },
  ]);
  const type = { "content-type": `multipart/form-data; boundary="${BOUNDARY}"` };
  const postForm = (body: Body, headers: Record<string, string> = type) => {
    readBody = bodies.readForm;
    return post(body, headers) as Promise<FormBody | Error>;
  };

  for (const [name, wrap] of framings) {
    test(`${name}: they are read, and counted with their texts`, async () => {
      let held = 0;
      whileHeld = async ({ heldBytes = 0 }) => {
        held = heldBytes;
      };
      const body = (await postForm(wrap(edit))) as FormBody;
      expect(body.value).toEqual({ model: "sample" });
      expect(body.files).toMatchObject([{ name: "image", filename: "a.png", contentType: "image/png" }]);
      expect(Buffer.from(body.bytes()).equals(edit)).toBe(true);
      expect(held).toBe(edit.length + "sample".length);
    });

    test(`${name}: bounded as all bodies are`, async () => {
      maxBytes = edit.length - 1;
      expect(await postForm(wrap(edit))).toMatchObject({ status: 413 });
      maxBytes = edit.length;
      budgetBytes = edit.length;
      results = [];
      expect(await postForm(wrap(formOf([{ name: "a", content: "x".repeat(edit.length - 130) }])))).toMatchObject({
        status: 413,
        message: expect.stringContaining("server.max_buffered_bodies"),
      });
    });

    test.each([
      ["cut off", edit.slice(0, -4), undefined, "final boundary is missing"],
      ["nothing", new Uint8Array(0), undefined, "does not contain the boundary"],
      ["a nameless part", formOf([{ name: "", content: "" }]), undefined, "The form has a part without a name"],
      [
        "a form within",
        formOf([{ name: "a", contentType: "multipart/mixed; boundary=b", content: "" }]),
        "a",
        "a: forms",
      ],
      ["no text", formOf([{ name: "image", content: Uint8Array.of(255) }]), "image", "image: is neither a file"],
    ])(`${name}: %s is refused`, async (_title, bytes, param, message) => {
      const error = await postForm(wrap(bytes));
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ status: 400, type: "invalid_request_error", param });
      expect((error as Error).message).toContain(message);
    });
  }

  test.each([
    ["JSON", { "content-type": "application/json" }, "'multipart/form-data; boundary=...'"],
    ["no type", {} as Record<string, string>, "'multipart/form-data; boundary=...'"],
    ["no boundary", { "content-type": "multipart/form-data" }, "no valid boundary"],
    ["compressed", { ...type, "content-encoding": "gzip" }, "Content-Encoding 'gzip' is not supported"],
  ])("%s is refused", async (_title, headers, message) => {
    const error = await postForm(new Uint8Array(10), headers as Record<string, string>);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect((error as Error).message).toContain(message);
  });

  test("slow ones are refused when their time is over", async () => {
    timeoutMs = 100;
    readBody = bodies.readForm;
    const connection = await RawConnection.open(server.port as number);
    const head = `Content-Type: ${type["content-type"]}\r\nContent-Length: ${edit.length}`;
    connection.write(`POST / HTTP/1.1\r\nHost: h\r\n${head}\r\n\r\n--`);
    expect((await connection.response()).status).toBe(408);
  });
});
