// The official SDKs with files: every call of OpenAI's and Anthropic's Files API, and the ways in which they take a file.

import { beforeAll, describe, expect, test } from "bun:test";
import { createReadStream, writeFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic, { NotFoundError as AnthropicNotFound, toFile as toAnthropicFile } from "@anthropic-ai/sdk";
import OpenAI, { APIError, BadRequestError, NotFoundError, toFile, toStreamingFile } from "openai";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
let openai: OpenAI;
let anthropic: Anthropic;
let folder: string;

beforeAll(async () => {
  const gateway = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      api_keys: { mode: "blocking", keys: [{ key: "sekret-files", scopes: ["files"] }] },
      files: { max_file_size: 100_000 },
    },
  });
  ({ folder } = gateway);
  openai = new OpenAI({ apiKey: "sekret-files", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: "sekret-files", baseURL: `${gateway.url}/anthropic`, maxRetries: 0 });
});

async function refusal(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call was not refused");
}

async function* pieces() {
  for (const text of ["one ", "two ", "three"]) yield new TextEncoder().encode(text);
}

describe("openai", () => {
  test("every call", async () => {
    const file = await openai.files.create({
      file: await toFile(Buffer.from("hello"), "notes.md", { type: "text/markdown" }),
      purpose: "user_data",
      expires_after: { anchor: "created_at", seconds: 3600 },
    });
    expect(file).toMatchObject({ object: "file", bytes: 5, filename: "notes.md", purpose: "user_data" });
    expect(file.expires_at).toBe(file.created_at + 3600);
    expect(await openai.files.retrieve(file.id)).toEqual(file);
    expect(await openai.files.waitForProcessing(file.id)).toEqual(file);
    const content = await openai.files.content(file.id);
    expect([content.headers.get("content-type"), await content.text()]).toEqual(["text/markdown", "hello"]);
    const { id } = file;
    expect(await openai.files.delete(id)).toEqual({ id, object: "file", deleted: true });
    const error = await refusal(openai.files.retrieve(id));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ code: "file_resolution_failed", param: "file_id" });
  });

  test("files from the disk, from pieces, from answers, and streamed", async () => {
    const path = join(folder, "from-disk.txt");
    writeFileSync(path, "from the disk");
    for (const [file, filename, text] of [
      [createReadStream(path), "from-disk.txt", "from the disk"],
      [await toFile(pieces(), "pieces.txt"), "pieces.txt", "one two three"],
      [toStreamingFile(pieces(), "streamed.txt", { type: "text/plain" }), "streamed.txt", "one two three"],
      [new File(["from a File"], 'Ä "1".txt'), 'Ä "1".txt', "from a File"],
      [Bun.file(path), "from-disk.txt", "from the disk"],
      [new Response("from an answer"), "unknown_file", "from an answer"],
    ] as const) {
      const made = await openai.files.create({ file, purpose: "batch" });
      expect(made).toMatchObject({ filename, bytes: text.length, purpose: "batch" });
      expect(await (await openai.files.content(made.id)).text()).toBe(text);
      await openai.files.delete(made.id);
    }
  });

  test("pages, one after the other", async () => {
    const ids: string[] = [];
    for (const text of ["a", "b", "c", "d", "e"]) {
      ids.push((await openai.files.create({ file: await toFile(Buffer.from(text), text), purpose: "evals" })).id);
    }
    const listed: string[] = [];
    for await (const { id } of openai.files.list({ limit: 2, order: "asc", purpose: "evals" })) listed.push(id);
    expect(listed).toEqual(ids);
    for (const id of ids) await openai.files.delete(id);
    expect((await openai.files.list()).data).toEqual([]);
  });

  test("refusals", async () => {
    const file = await toFile(Buffer.from("x"), "x.txt");
    const purpose = "fun" as "batch";
    expect(await refusal(openai.files.create({ file, purpose }))).toMatchObject({ status: 400, param: "purpose" });
    expect(await refusal(openai.files.retrieve("nothing"))).toBeInstanceOf(BadRequestError);
    const large = await refusal(
      openai.files.create({ file: await toFile(Buffer.alloc(100_001), "large.bin"), purpose: "batch" }),
    );
    expect(large).toBeInstanceOf(APIError);
    expect(large).toMatchObject({ status: 413, param: "file" });
  });
});

describe("anthropic", () => {
  test("every call", async () => {
    const file = await anthropic.beta.files.upload({
      file: await toAnthropicFile(Buffer.from("hello"), "notes.md", { type: "text/markdown" }),
      betas: ["files-api-2025-04-14"],
    });
    expect(file).toMatchObject({
      type: "file",
      filename: "notes.md",
      mime_type: "text/markdown",
      size_bytes: 5,
      downloadable: true,
    });
    expect(Math.abs(Date.parse(file.created_at) - Date.now())).toBeLessThan(60_000);
    expect(await anthropic.beta.files.retrieveMetadata(file.id)).toEqual(file);
    expect(await (await anthropic.beta.files.download(file.id)).text()).toBe("hello");
    // One store: what one client uploads, the other sees.
    expect(await openai.files.retrieve(file.id)).toMatchObject({ bytes: 5, purpose: "user_data" });
    expect(await anthropic.beta.files.delete(file.id)).toEqual({ id: file.id, type: "file_deleted" });
    expect(await refusal(anthropic.beta.files.download(file.id))).toBeInstanceOf(AnthropicNotFound);
  });

  test("files from the disk and from pieces", async () => {
    const path = join(folder, "from-disk.txt");
    writeFileSync(path, "from the disk");
    for (const [file, filename, text] of [
      [createReadStream(path), "from-disk.txt", "from the disk"],
      [await toAnthropicFile(pieces(), "pieces.txt"), "pieces.txt", "one two three"],
      [new File(["from a File"], "own name.txt", { type: "text/plain" }), "own name.txt", "from a File"],
    ] as const) {
      const made = await anthropic.beta.files.upload({ file, expires_in_seconds: 3600 });
      expect(made).toMatchObject({ filename, size_bytes: text.length });
      expect(Date.parse(made.expires_at as string) - Date.parse(made.created_at)).toBe(3_600_000);
      expect(await (await anthropic.beta.files.download(made.id)).text()).toBe(text);
      await anthropic.beta.files.delete(made.id);
    }
  });

  test("pages, one after the other, and files by their ids", async () => {
    const ids: string[] = [];
    for (const text of ["a", "b", "c", "d", "e"]) {
      ids.unshift((await anthropic.beta.files.upload({ file: new File([text], text) })).id);
    }
    const listed: string[] = [];
    for await (const { id } of anthropic.beta.files.list({ limit: 2 })) listed.push(id);
    expect(listed).toEqual(ids);
    const named = await anthropic.beta.files.list({ ids: [ids[3] as string, ids[1] as string] });
    expect(named.data.map(({ id }) => id)).toEqual([ids[3] as string, ids[1] as string]);
    for (const id of ids) await anthropic.beta.files.delete(id);
  });
});
