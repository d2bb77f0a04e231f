// The Files API: every route in both shapes, and every refusal, after which nothing is left and the next upload works.

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { BOUNDARY, type FormPart, formOf } from "../support/multipart-forms.ts";
import { RawConnection } from "../support/raw-http.ts";
import {
  type FileObject,
  FORM_TYPE,
  filePart,
  listedIds,
  PURPOSE,
  sendForm,
  uploadFile,
  waitUntilClean,
} from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const MEBIBYTE = 1024 * 1024;
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      files: { max_file_size: MEBIBYTE, max_total_size: 3 * MEBIBYTE },
      timeouts: { request_body: "500ms" },
    },
  });
});

async function clear(): Promise<void> {
  for (const id of await listedIds(gateway)) await gateway.fetch(`/v1/files/${id}`, { method: "DELETE" });
}

describe("OpenAI's shape", () => {
  afterEach(clear);

  test("the life of a file", async () => {
    const before = Math.floor(Date.now() / 1000);
    const file = await uploadFile(gateway, "hello", { filename: "Grüße.txt" });
    expect(file).toEqual({
      id: expect.stringMatching(/^file-[A-Za-z0-9]{24}$/),
      object: "file",
      bytes: 5,
      created_at: expect.any(Number),
      filename: "Grüße.txt",
      purpose: "user_data",
      status: "processed",
    });
    expect(file.created_at).toBeGreaterThanOrEqual(before);
    const path = `/v1/files/${file.id}`;
    expect(await (await gateway.fetch(path)).json()).toEqual(file);
    const content = await gateway.fetch(`${path}/content`);
    expect(await content.text()).toBe("hello");
    const removed = await gateway.fetch(path, { method: "DELETE" });
    expect(await removed.json()).toEqual({ id: file.id, object: "file", deleted: true });
    for (const [method, at] of [
      ["GET", path],
      ["DELETE", path],
      ["GET", `${path}/content`],
    ] as const) {
      const error = await expectError(await gateway.fetch(at, { method }), 404);
      expect(error).toMatchObject({ type: "invalid_request_error", code: "file_resolution_failed", param: "file_id" });
      expect(error.message).toBe("file_id: there is no such file; upload it to /v1/files.");
    }
    await waitUntilClean(gateway);
  });

  test("fields before and behind the file, and those that nobody knows", async () => {
    const unknown = { name: "shade", content: "blue" };
    const expiry: FormPart[] = [
      { name: "expires_after[anchor]", content: "created_at" },
      { name: "expires_after[seconds]", content: "3600" },
    ];
    for (const parts of [
      [PURPOSE, filePart("x"), ...expiry, unknown],
      [...expiry, unknown, filePart("x"), PURPOSE],
    ]) {
      const file = (await (await sendForm(gateway, parts)).json()) as FileObject;
      expect(file.expires_at).toBe(file.created_at + 3600);
      expect(file.purpose).toBe("user_data");
    }
  });

  test("an empty file, and one without a media type or with a strange one", async () => {
    const empty = await uploadFile(gateway, "");
    expect(empty.bytes).toBe(0);
    for (const [headers, status] of [
      [{}, 200],
      [{ Range: "bytes=0-0" }, 416],
      [{ Range: "bytes=-5" }, 416],
    ] as const) {
      const content = await gateway.fetch(`/v1/files/${empty.id}/content`, { headers });
      expect([content.status, content.headers.get("content-range")]).toEqual([
        status,
        status === 200 ? null : "bytes */0",
      ]);
      if (status === 200) expect(await content.text()).toBe("");
    }
    for (const [contentType, kept] of [
      [undefined, "application/octet-stream"],
      ["text/markdown; charset=utf-8", "text/markdown"],
      ["no media type", "application/octet-stream"],
    ] as const) {
      const { id } = await uploadFile(gateway, "x", { contentType });
      const content = await gateway.fetch(`/v1/files/${id}/content`);
      expect(content.headers.get("content-type")).toBe(kept);
    }
  });

  test("pages", async () => {
    const ids: string[] = [];
    for (const name of ["a", "b", "c"]) ids.push((await uploadFile(gateway, name)).id);
    const vision = (await (
      await sendForm(gateway, [{ name: "purpose", content: "vision" }, filePart("d")])
    ).json()) as FileObject;
    ids.push(vision.id);
    const page = async (query: string) => {
      const response = await gateway.fetch(`/v1/files${query}`);
      const body = (await response.json()) as { data: FileObject[]; has_more: boolean; object: string };
      expect(body.object).toBe("list");
      const found = body.data.map(({ id }) => id);
      expect(body).toMatchObject({ first_id: found[0] ?? null, last_id: found.at(-1) ?? null });
      return [found, body.has_more];
    };
    const newest = ids.toReversed();
    expect(await page("")).toEqual([newest, false]);
    expect(await page("?order=asc")).toEqual([ids, false]);
    expect(await page("?limit=3")).toEqual([newest.slice(0, 3), true]);
    expect(await page(`?limit=3&after=${newest[1]}`)).toEqual([newest.slice(2), false]);
    expect(await page(`?order=asc&limit=1&after=${ids[0]}`)).toEqual([ids.slice(1, 2), true]);
    expect(await page("?purpose=vision")).toEqual([[vision.id], false]);
    expect(await page("?purpose=batch")).toEqual([[], false]);
    for (const [query, param] of [
      ["limit=0", "limit"],
      ["limit=10001", "limit"],
      ["limit=1.5", "limit"],
      ["limit=", "limit"],
      ["order=up", "order"],
    ] as const) {
      expect((await expectError(await gateway.fetch(`/v1/files?${query}`), 400)).param).toBe(param);
    }
  });
});

describe("Anthropic's shape", () => {
  const FILES = "/anthropic/v1/files";
  afterEach(clear);

  test("the life of a file, with and without the beta header", async () => {
    const asked: Record<string, string>[] = [{}, { "anthropic-beta": "files-api-2025-04-14" }];
    for (const headers of asked) {
      const response = await sendForm(gateway, [filePart("hello")], { path: FILES, headers });
      const file = (await response.json()) as Record<string, unknown>;
      expect(file).toEqual({
        id: expect.stringMatching(/^file-/),
        type: "file",
        filename: "notes.txt",
        mime_type: "text/plain",
        size_bytes: 5,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        downloadable: true,
        expires_at: null,
      });
      expect(await (await gateway.fetch(`${FILES}/${file.id}`, { headers })).json()).toEqual(file);
      expect(await (await gateway.fetch(`${FILES}/${file.id}/content`, { headers })).text()).toBe("hello");
      expect(await (await gateway.fetch(`/v1/files/${file.id}`)).json()).toMatchObject({ purpose: "user_data" });
      const removed = await gateway.fetch(`${FILES}/${file.id}`, { method: "DELETE", headers });
      expect(await removed.json()).toEqual({ id: file.id, type: "file_deleted" });
    }
  });

  test("an end", async () => {
    const parts = [filePart("x"), { name: "expires_in_seconds", content: "7776000" }];
    const file = (await (await sendForm(gateway, parts, { path: FILES })).json()) as Record<string, string>;
    const lasts = Date.parse(file.expires_at as string) - Date.parse(file.created_at as string);
    expect(lasts).toBe(7_776_000_000);
  });

  test("pages", async () => {
    const ids: string[] = [];
    for (const name of ["a", "b", "c", "d"]) ids.unshift((await uploadFile(gateway, name)).id);
    const page = async (query: string) => {
      const body = (await (await gateway.fetch(FILES + query)).json()) as Record<string, unknown>;
      const found = (body.data as { id: string }[]).map(({ id }) => id);
      expect(body).toMatchObject({ first_id: found[0] ?? null, last_id: found.at(-1) ?? null });
      return [found, body.has_more, body.next_page];
    };
    expect(await page("")).toEqual([ids, false, null]);
    expect(await page("?limit=3")).toEqual([ids.slice(0, 3), true, ids[2]]);
    expect(await page(`?limit=2&after_id=${ids[0]}`)).toEqual([ids.slice(1, 3), true, ids[2]]);
    expect(await page(`?limit=2&page=${ids[1]}`)).toEqual([ids.slice(2), false, null]);
    expect(await page(`?limit=2&before_id=${ids[3]}`)).toEqual([ids.slice(1, 3), true, null]);
    expect(await page(`?ids[]=${ids[3]}&ids[]=${ids[0]}&ids[]=file-none`)).toEqual([[ids[3], ids[0]], false, null]);
    const many = Array.from({ length: 101 }, (_, index) => `ids[]=file-${index}`).join("&");
    for (const query of ["limit=0", "limit=1001", many]) {
      const response = await gateway.fetch(`${FILES}?${query}`);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    }
  });

  test("errors", async () => {
    for (const [status, type, response] of [
      [404, "not_found_error", await gateway.fetch(`${FILES}/file-none`)],
      [400, "invalid_request_error", await gateway.fetch(`${FILES}/nothing`)],
      [400, "invalid_request_error", await sendForm(gateway, [], { path: FILES })],
    ] as const) {
      expect(response.status).toBe(status);
      expect(response.headers.get("request-id")).not.toBeNull();
      expect(await response.json()).toMatchObject({ type: "error", error: { type } });
    }
  });
});

describe("content", () => {
  const TEXT = "0123456789";
  let file: FileObject;
  let path: string;
  let tag: string;

  beforeAll(async () => {
    file = await uploadFile(gateway, TEXT, { filename: "a%22ä.html", contentType: "text/html" });
    path = `/v1/files/${file.id}/content`;
    tag = `"${new Bun.CryptoHasher("sha256").update(TEXT).digest("hex")}"`;
  });

  const ask = (headers: Record<string, string> = {}, method = "GET") => gateway.fetch(path, { method, headers });

  test("all of it, by GET and HEAD", async () => {
    for (const method of ["GET", "HEAD"]) {
      const response = await ask({ "Accept-Encoding": "identity" }, method);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(method === "GET" ? TEXT : "");
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "content-type": "text/html",
        "content-length": "10",
        "content-disposition": `attachment; filename="a__.html"; filename*=UTF-8''a%22%C3%A4.html`,
        "accept-ranges": "bytes",
        "cache-control": "private",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        etag: tag,
      });
    }
  });

  test("a range", async () => {
    for (const [range, text, shown] of [
      ["bytes=0-0", "0", "0-0"],
      ["bytes=2-4", "234", "2-4"],
      ["bytes=7-", "789", "7-9"],
      ["bytes=-2", "89", "8-9"],
      ["bytes=0-99", TEXT, "0-9"],
    ] as const) {
      const response = await ask({ Range: range, "If-Range": tag });
      expect({ status: response.status, text: await response.text() }).toEqual({ status: 206, text });
      expect(response.headers.get("content-range")).toBe(`bytes ${shown}/10`);
      expect(response.headers.get("content-type")).toBe("text/html");
      expect(response.headers.get("etag")).toBe(tag);
    }
    const head = await ask({ Range: "bytes=0-0" }, "HEAD");
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "10"]);
  });

  test("all of it where a range is not to be taken", async () => {
    const asked: Record<string, string>[] = [
      { Range: "bytes=0-1,4-5" },
      { Range: "bytes=5-2" },
      { Range: "bytes" },
      { Range: "lines=1-2" },
      { Range: "bytes=0-1", "If-Range": '"another"' },
      { Range: "bytes=0-1", "If-Range": `W/${tag}` },
      { Range: "bytes=0-1", "If-Range": "Sun, 22 Nov 2026 18:34:00 GMT" },
    ];
    for (const headers of asked) {
      const response = await ask(headers);
      expect({ headers, status: response.status, text: await response.text() }).toEqual({
        headers,
        status: 200,
        text: TEXT,
      });
      expect(response.headers.get("content-range")).toBeNull();
    }
  });

  test("a range behind the end", async () => {
    for (const range of ["bytes=10-", "bytes=-0", "bytes=99-100"]) {
      const response = await ask({ Range: range });
      expect(response.headers.get("content-range")).toBe("bytes */10");
      await expectError(response, 416);
    }
    expect((await gateway.fetch(`/anthropic${path}`, { headers: { Range: "bytes=10-" } })).status).toBe(416);
  });

  test("what the client has already", async () => {
    for (const condition of [tag, `W/${tag}`, "*", `"another", ${tag}`]) {
      const response = await ask({ "If-None-Match": condition, Range: "bytes=0-0" });
      expect([response.status, await response.text(), response.headers.get("etag")]).toEqual([304, "", tag]);
    }
    expect((await ask({ "If-None-Match": '"another"' })).status).toBe(200);
  });
});

test("a content that is asked for while its file is deleted comes whole, or there is none", async () => {
  const text = "0123456789".repeat(2000);
  const seen = new Set<string>();
  for (let round = 0; round < 60; round++) {
    const { id } = await uploadFile(gateway, text);
    const answers = Array.from({ length: 6 }, async () => {
      const response = await gateway.fetch(`/v1/files/${id}/content`);
      const body = await response.text();
      if (response.status === 200) return body === text ? "whole" : `${body.length} bytes`;
      return `${response.status} ${(JSON.parse(body) as { error: { code: string } }).error.code}`;
    });
    const removal = gateway.fetch(`/v1/files/${id}`, { method: "DELETE" });
    for (const answer of await Promise.all(answers)) seen.add(answer);
    expect((await removal).status).toBe(200);
  }
  seen.delete("404 file_resolution_failed"); // whether one comes too late is a matter of luck
  expect([...seen]).toEqual(["whole"]);
});

describe("bad input leaves nothing", () => {
  const form: [name: string, parts: FormPart[], param: string | undefined][] = [
    ["no file", [PURPOSE], "file"],
    ["no part at all", [], undefined],
    ["a file under another name", [PURPOSE, filePart("x", { name: "document" })], "document"],
    ["two files", [PURPOSE, filePart("x"), filePart("y")], "file"],
    ["a file that is a text", [PURPOSE, { name: "file", content: "x" }], "file"],
    ["no purpose", [filePart("x")], "purpose"],
    ["an empty purpose", [filePart("x"), { name: "purpose", content: "" }], "purpose"],
    ["a purpose that is not allowed", [filePart("x"), { name: "purpose", content: "fun" }], "purpose"],
    ["two purposes", [PURPOSE, filePart("x"), PURPOSE], "purpose"],
    ["a part without a name", [PURPOSE, filePart("x"), { name: "", content: "x" }], undefined],
    ["a file name with ../", [PURPOSE, filePart("x", { filename: "../../etc/passwd" })], "file"],
    ["a file name with a backslash", [PURPOSE, filePart("x", { filename: "..\\x" })], "file"],
    ["a file name of dots", [PURPOSE, filePart("x", { filename: ".." })], "file"],
    ["an empty file name", [PURPOSE, filePart("x", { filename: "" })], "file"],
    ["a file name of 256 characters", [PURPOSE, filePart("x", { filename: "n".repeat(256) })], "file"],
    ["a file name of 5,000 characters", [PURPOSE, filePart("x", { filename: "n".repeat(5000) })], "file"],
    ["a file name with C1 controls", [PURPOSE, filePart("x", { filename: "a\u0085b" })], "file"],
    ...(["3599", "2592001", "1.5", "-1", "", "soon"] as const).map((content): (typeof form)[number] => [
      `an end after '${content}'`,
      [
        PURPOSE,
        filePart("x"),
        { name: "expires_after[anchor]", content: "created_at" },
        { name: "expires_after[seconds]", content },
      ],
      "expires_after[seconds]",
    ]),
    [
      "an end without an anchor",
      [PURPOSE, filePart("x"), { name: "expires_after[seconds]", content: "3600" }],
      "expires_after[anchor]",
    ],
    [
      "an anchor without an end",
      [PURPOSE, filePart("x"), { name: "expires_after[anchor]", content: "created_at" }],
      "expires_after[seconds]",
    ],
    [
      "another anchor",
      [PURPOSE, filePart("x"), { name: "expires_after[anchor]", content: "last_active_at" }],
      "expires_after[anchor]",
    ],
    ...(["expires_after", "expires_after[]", "expires_after[after]", "expires_after[seconds][0]"] as const).map(
      (name): (typeof form)[number] => [
        `an end that is told as '${name}'`,
        [PURPOSE, filePart("x"), { name, content: '{"anchor": "created_at", "seconds": 3600}' }],
        name,
      ],
    ),
    ...(
      [
        ["application/pdf", "hello"],
        ["application/pdf", ""],
        ["image/png", "\xff\xd8\xff\xe0\0\x10JFIF"],
        ["audio/wav", "hello"],
        ["text/markdown", "%PDF-1.7"],
      ] as const
    ).map(([contentType, content]): (typeof form)[number] => [
      `${JSON.stringify(content)} as ${contentType}`,
      [PURPOSE, filePart(Buffer.from(content, "latin1"), { contentType })],
      "file",
    ]),
    ["a text without end", [PURPOSE, filePart("x"), { name: "note", content: "n".repeat(300_000) }], "note"],
  ];
  test.each(form)("%s", async (_name, parts, param) => {
    await refused(await sendForm(gateway, parts), 400, param);
  });

  test("a PDF is one also where its first bytes come one by one", async () => {
    const bytes = Buffer.from(formOf([PURPOSE, filePart("%PDF-1.7\n", { contentType: "application/pdf" })]));
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        controller.enqueue(bytes.subarray(sent, ++sent));
        if (sent === bytes.length) controller.close();
      },
    });
    const response = await gateway.fetch("/v1/files", { method: "POST", headers: { "Content-Type": FORM_TYPE }, body });
    expect(response.status).toBe(200);
    const { id } = (await response.json()) as FileObject;
    expect((await gateway.fetch(`/v1/files/${id}`, { method: "DELETE" })).status).toBe(200);
  });

  async function refused(response: Response, status: number, param: string | undefined): Promise<void> {
    const error = await expectError(response, status);
    if (param !== undefined) expect(error).toMatchObject({ type: expect.stringMatching(/./), param });
    await waitUntilClean(gateway);
    const { id } = await uploadFile(gateway, "the next one");
    expect((await gateway.fetch(`/v1/files/${id}`, { method: "DELETE" })).status).toBe(200);
  }

  const whole = Buffer.from(formOf([PURPOSE, filePart("x".repeat(1000))]));
  const bodies: [name: string, type: string | undefined, body: string | Uint8Array<ArrayBuffer>][] = [
    ["JSON", "application/json", '{"purpose": "user_data"}'],
    ["no media type", undefined, whole],
    ["no boundary", "multipart/form-data", whole],
    ["another boundary", "multipart/form-data; boundary=other", whole],
    ["an end in the middle of the file", FORM_TYPE, whole.subarray(0, 700)],
    ["no last boundary", FORM_TYPE, whole.subarray(0, whole.length - 6)],
    ["an empty body", FORM_TYPE, ""],
    ["parts without end", FORM_TYPE, formOf(Array.from({ length: 3000 }, () => ({ name: "n", content: "" })))],
    [
      "NUL in a file name",
      FORM_TYPE,
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a\0b"\r\n\r\nx\r\n--${BOUNDARY}--\r\n`,
    ],
  ];
  test.each(bodies)("%s", async (_name, type, body) => {
    const headers: Record<string, string> = type === undefined ? {} : { "Content-Type": type };
    await refused(await gateway.fetch("/v1/files", { method: "POST", headers, body }), 400, undefined);
  });

  test("a byte too much, announced and in chunks", async () => {
    const content = "x".repeat(MEBIBYTE + 1);
    await refused(await sendForm(gateway, [PURPOSE, filePart(content)]), 413, "file");
    const bytes = formOf([PURPOSE, filePart(content)]);
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 65_536) controller.enqueue(bytes.subarray(at, at + 65_536));
        controller.close();
      },
    });
    const chunked = await gateway.fetch("/v1/files", {
      method: "POST",
      headers: { "Content-Type": FORM_TYPE },
      body: stream,
    });
    await refused(chunked, 413, "file");
    const exact = await uploadFile(gateway, content.slice(1));
    expect(exact.bytes).toBe(MEBIBYTE);
    await gateway.fetch(`/v1/files/${exact.id}`, { method: "DELETE" });
  });

  test("more than all files may have together", async () => {
    await clear();
    const kept: string[] = [];
    for (let round = 0; round < 3; round++) kept.push((await uploadFile(gateway, "x".repeat(MEBIBYTE - 10))).id);
    const error = await expectError(await sendForm(gateway, [PURPOSE, filePart("x".repeat(100))]), 413);
    expect(error.message).toContain("files.max_total_size");
    await clear();
    expect((await uploadFile(gateway, "x".repeat(100))).bytes).toBe(100);
    expect(kept).toHaveLength(3);
    await clear();
  });

  test("a client that leaves, and one that pauses too long", async () => {
    const head = `POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: 5000\r\n\r\n`;
    for (const leave of [
      (connection: RawConnection) => connection.abort(),
      (connection: RawConnection) => connection.close(),
    ]) {
      const connection = await RawConnection.open(gateway.port);
      connection.write(head);
      connection.write(whole.subarray(0, 900));
      await waitFor("it arrives", async () => (await gateway.fetch("/v1/files")).ok && connection.unsentBytes === 0);
      leave(connection);
      await waitUntilClean(gateway);
    }
    const silent = await RawConnection.open(gateway.port);
    silent.write(head);
    silent.write(whole.subarray(0, 900));
    const response = await silent.response();
    expect(response.status).toBe(408);
    expect(response.text).toContain("timeouts.request_body");
    await waitUntilClean(gateway);
  });

  test("ids that are none", async () => {
    for (const path of ["/v1/files", "/anthropic/v1/files"]) {
      for (const id of [
        "x",
        "file",
        "file-",
        "file-a.b",
        `file-${"a".repeat(200)}`,
        "file-%00",
        "..%5cfile-a",
        "a%20b",
      ]) {
        for (const [method, more] of [
          ["GET", ""],
          ["DELETE", ""],
          ["GET", "/content"],
        ] as const) {
          const response = await gateway.fetch(`${path}/${id}${more}`, { method });
          expect({ id, status: response.status }).toEqual({ id, status: 400 });
        }
      }
    }
    expect((await expectError(await gateway.fetch("/v1/files/x"), 400)).param).toBe("file_id");
  });
});

describe("who may", () => {
  test("keys need the scope, and by default have it", async () => {
    const from = await bed.gateway({
      config: {
        backends: [{ name: "demo", type: "demo" }],
        api_keys: {
          keys: [
            { key: "sekret-default" },
            { key: "sekret-files", scopes: ["files"] },
            { key: "sekret-writer", scopes: ["read", "write"] },
          ],
        },
        files: { require_key: true },
      },
    });
    const list = (key?: string) =>
      from.fetch("/v1/files", key === undefined ? {} : { headers: { Authorization: `Bearer ${key}` } });
    expect((await list("sekret-default")).status).toBe(200);
    expect((await list("sekret-files")).status).toBe(200);
    expect((await expectError(await list("sekret-writer"), 403)).code).toBe("insufficient_scope");
    for (const key of [undefined, "sekret-unknown"]) {
      const response = await list(key);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await expectError(response, 401)).toMatchObject({ type: "authentication_error", code: "invalid_api_key" });
    }
    await expectError(await sendForm(from, [PURPOSE, filePart("x")]), 401);
    expect((await from.fetch("/v1/models")).status).toBe(200);
  });

  test("nobody, where files are switched off, and everybody again when they are switched on", async () => {
    const from = await bed.gateway({
      config: { backends: [{ name: "demo", type: "demo" }], files: { enabled: false } },
    });
    for (const path of ["/v1/files", "/v1/files/file-a", "/anthropic/v1/files"]) {
      const response = await from.fetch(path);
      expect(response.status).toBe(404);
      expect(await response.text()).toContain("files.enabled");
    }
    expect(await (await from.fetch("/admin/files")).json()).toEqual({ enabled: false });
    const change = await from.fetch("/admin/config/files", {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: '{"enabled": true, "max_file_size": 10}',
    });
    expect(change.status).toBe(200);
    await expectError(await sendForm(from, [PURPOSE, filePart("12345678901")]), 413);
    expect((await uploadFile(from, "1234567890")).bytes).toBe(10);
  });

  test("no web page of another origin", async () => {
    const headers = { Origin: "https://elsewhere.example", "Sec-Fetch-Site": "cross-site" };
    await expectError(await sendForm(gateway, [PURPOSE, filePart("x")], { headers }), 403);
    await waitUntilClean(gateway);
  });
});

test("what administrators and metrics see", async () => {
  const from = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      api_keys: {
        keys: [
          { key: "sekret-one", organization_id: "acme" },
          { key: "sekret-two", id: "two" },
        ],
      },
    },
  });
  await uploadFile(from, "12345", { headers: { Authorization: "Bearer sekret-one" } });
  await uploadFile(from, "123", { headers: { Authorization: "Bearer sekret-two" } });
  await uploadFile(from, "123456", { headers: { Authorization: "Bearer sekret-two" } });
  await uploadFile(from, "1");
  await expectError(await sendForm(from, [PURPOSE]), 400);
  expect(await (await from.fetch("/admin/files")).json()).toEqual({
    enabled: true,
    storage: "local",
    count: 4,
    bytes: 15,
    max_total_size: 0,
    max_file_size: 512 * MEBIBYTE,
    owners: [
      { owner: "key:two", count: 2, bytes: 9 },
      { owner: "organization:acme", count: 1, bytes: 5 },
      { owner: "anonymous", count: 1, bytes: 1 },
    ],
  });
  const shows = (lines: string[]) =>
    waitFor("the metrics show it", async () => {
      const text = await (await from.fetch("/metrics")).text();
      return lines.every((line) => text.split("\n").includes(line));
    });
  await shows([
    "signalbox_files 4",
    "signalbox_files_bytes 15",
    'signalbox_file_uploads_total{result="stored"} 4',
    'signalbox_file_uploads_total{result="refused"} 1',
    'signalbox_file_uploads_total{result="failed"} 0',
  ]);
  await from.restart();
  await shows(["signalbox_files 4", "signalbox_files_bytes 15"]);
});
