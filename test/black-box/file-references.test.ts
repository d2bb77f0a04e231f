// Requests that name uploaded files by their id: in every dialect and in front of every type of backend the owner's file
// goes along, and nobody else's ever does.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileStore } from "../../src/files/store.ts";
import { expectErrorBody } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/start-gateway.ts";
import { uploadFile } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const folder = mkdtempSync(join(tmpdir(), "file-references-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MEBIBYTE = 1024 * 1024;
const ONE = "sekret-of-organisation-one";
const TWO = "sekret-of-organisation-two";
const NO_FILE = "file-000000000000000000000000";

const png = (mark: string) => Buffer.from(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${mark}`, "latin1");
const CONTENTS = {
  picture: png("picture of organisation one"),
  pdf: Buffer.from("%PDF-1.7\nreport of organisation one"),
  text: Buffer.from("Notes of organisation one: grüße.\n"),
  zip: Buffer.from("PK\x03\x04\0\0\0", "latin1"),
  empty: Buffer.alloc(0),
  large: Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(6 * MEBIBYTE)]),
  ofTwo: png("picture of organisation two"),
};
const ids = {} as Record<keyof typeof CONTENTS, string>;

/** What no backend may see of a file in any form; base64 is told apart from its second group on. */
const traces = (content: Buffer) => [content.toString("base64").slice(24), content.toString("utf8").slice(24)];

async function fill(): Promise<void> {
  const log = { info() {}, warn() {} };
  const store = createFileStore({ folder, retentionSeconds: () => undefined, wallTime: Date.now, log });
  for (const [name, content] of Object.entries(CONTENTS) as [keyof typeof CONTENTS, Buffer][]) {
    const incoming = store.receive({ maxFileBytes: 64 * MEBIBYTE, maxTotalBytes: 0 });
    await incoming.write(content);
    const owner = name === "ofTwo" ? "organization:two" : "organization:one";
    // What was said of a file when it was uploaded decides nothing.
    const facts = { owner, filename: `${name}.bin`, mediaType: "application/octet-stream", purpose: "user_data" };
    ids[name] = (await incoming.finish({ ...facts, expiresAfterSeconds: undefined })).id;
  }
  store.close();
}

type Dialect = "chat" | "responses" | "messages" | "count-tokens";

const PATHS: Record<Dialect, string> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  "count-tokens": "/v1/messages/count_tokens",
};
const DIALECTS = Object.keys(PATHS) as Dialect[];

function partOf(dialect: Dialect, id: string, isPicture: boolean): object {
  if (dialect === "chat") return { type: "file", file: { file_id: id } };
  if (dialect === "responses") return { type: isPicture ? "input_image" : "input_file", file_id: id };
  return { type: isPicture ? "image" : "document", source: { type: "file", file_id: id } };
}

const PARAMS: Record<Dialect, (place: number) => string> = {
  chat: (place) => `messages[0].content[${place}].file.file_id`,
  responses: (place) => `input[0].content[${place}].file_id`,
  messages: (place) => `messages[0].content[${place}].source.file_id`,
  "count-tokens": (place) => `messages[0].content[${place}].source.file_id`,
};

/** Written unlike an encoder would: what goes on untouched can be told from what was written anew. */
function bodyOf(dialect: Dialect, model: string, ...parts: object[]): string {
  const turns = [{ role: "user", content: parts }];
  const rest = dialect === "responses" ? { store: false, input: turns } : { max_tokens: 9, messages: turns };
  return JSON.stringify({ model, ...rest }).replace('{"model":', '{ "model" :  ');
}

/** Of each type, which dialects it has itself; an id that is not known here may be one of its own files there. */
const KINDS: Record<string, readonly Dialect[]> = {
  openai: ["chat", "responses"],
  azure: ["chat", "responses"],
  anthropic: ["messages", "count-tokens"],
  federated: DIALECTS,
  gemini: [],
  vllm: [],
  llamacpp: [],
  ollama: [],
  lmstudio: [],
  generic: [],
};

const backends = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, bed.backend()]));
const backendOf = (kind: string) => backends[kind] as ReturnType<typeof bed.backend>;
const mixed = { keeper: bed.backend(), engine: bed.backend() };

const KEYS = {
  mode: "blocking" as const,
  keys: [
    { key: ONE, id: "one", organization_id: "one" },
    { key: TWO, id: "two", organization_id: "two" },
  ],
};

function config(files: object = {}) {
  return {
    api_keys: KEYS,
    health_checks: { enabled: false },
    retry: { max_attempts: 1 },
    admin: { auth: { method: "none" as const } },
    files: { path: folder, ...files },
    fallback: { enabled: true, fallback_chains: { engine: ["kept"] } },
    backends: [
      ...Object.keys(KINDS).map((kind) => ({
        name: kind,
        type: kind as "openai",
        url: backendOf(kind).url,
        models: [kind],
        api_key: "sekret-of-the-operator",
      })),
      {
        name: "keeper",
        type: "openai" as const,
        url: mixed.keeper.url,
        models: ["mixed", "kept"],
        api_key: "sekret-k",
      },
      { name: "engine", type: "vllm" as const, url: mixed.engine.url, models: ["mixed", "engine"] },
    ],
  };
}

let gateway: Gateway;
beforeAll(async () => {
  await fill();
  gateway = await bed.gateway({ config: config() });
});

async function ask(key: string, dialect: Dialect, body: string, at = gateway) {
  const response = await at.post(PATHS[dialect], body, { headers: { authorization: `Bearer ${key}` } });
  const text = await response.text();
  return { response, status: response.status, text };
}

function expectRefused(
  dialect: Dialect,
  { response, text }: Awaited<ReturnType<typeof ask>>,
  status: number,
  place = 0,
) {
  const param = PARAMS[dialect](place);
  if (dialect === "messages" || dialect === "count-tokens") {
    expect(response.status).toBe(status);
    expect(JSON.parse(text).error.message).toStartWith(`${param}: `);
    return undefined;
  }
  const error = expectErrorBody(response, text, status);
  expect(error).toMatchObject({ type: "invalid_request_error", param });
  return error;
}

const sentTo = (kind: string) => backendOf(kind).requests.length;

describe.each(Object.entries(KINDS))("in front of %s", (kind, own) => {
  test.each(DIALECTS)("%s: the owner's file goes along, and nobody else's", async (dialect) => {
    const backend = backendOf(kind);
    // Where nobody counts tokens, the gateway estimates them and asks nobody.
    const isAsked = dialect !== "count-tokens" || own.includes(dialect);
    let before = sentTo(kind);
    const mine = await ask(ONE, dialect, bodyOf(dialect, kind, partOf(dialect, ids.picture, true)));
    expect(mine.text).not.toContain("file_resolution_failed");
    expect(sentTo(kind) - before).toBe(isAsked ? 1 : 0);
    if (isAsked) {
      expect(backend.lastRequest.text).toContain(CONTENTS.picture.toString("base64"));
      expect(backend.lastRequest.text).not.toContain(ids.picture);
    } else expect(mine.status).toBe(200);

    const answers: string[] = [];
    for (const id of [ids.picture, NO_FILE]) {
      before = sentTo(kind);
      const body = bodyOf(dialect, kind, partOf(dialect, id, true));
      const answer = await ask(TWO, dialect, body);
      answers.push(answer.text.replaceAll(/"(request_id|id)":"[^"]*"/g, ""));
      if (own.includes(dialect)) {
        expect(sentTo(kind) - before).toBe(1);
        expect(backend.lastRequest.text).toBe(body);
      } else {
        expect(sentTo(kind) - before).toBe(0);
        expect(expectRefused(dialect, answer, 404)?.code ?? "file_resolution_failed").toBe("file_resolution_failed");
      }
      for (const trace of traces(CONTENTS.picture)) expect(answer.text).not.toContain(trace);
    }
    expect(answers[0]).toBe(answers[1] as string);
  });
});

afterAll(() => {
  for (const backend of [...Object.values(backends), mixed.keeper, mixed.engine]) {
    for (const { text, headers } of backend.requests) {
      expect(JSON.stringify(headers)).not.toContain(ONE);
      for (const trace of traces(CONTENTS.ofTwo)) expect(text).not.toContain(trace);
    }
  }
});

test("bytes that do not belong to the file stay as they were written", async () => {
  const body = `{ "model" : "openai",  "messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"${ids.pdf}"}}]}], "seed": 12345678901234567890 }`;
  await ask(ONE, "chat", body);
  const { text } = backendOf("openai").lastRequest;
  expect(text).toStartWith('{ "model" : "openai",  "messages":[{');
  expect(text).toEndWith('], "seed": 12345678901234567890 }');
});

describe("what takes the place of an id", () => {
  const cache = { cache_control: { type: "ephemeral" } };
  const contentSent = async (kind: string, dialect: Dialect, part: object) => {
    await ask(
      ONE,
      dialect,
      bodyOf(dialect, kind, { type: dialect === "responses" ? "input_text" : "text", text: "x" }, part),
    );
    const { input, messages } = backendOf(kind).lastRequest.json<Record<string, { content: unknown[] }[]>>();
    return (input ?? messages)?.[0]?.content[1];
  };
  const url = (mediaType: string, content: Buffer) => `data:${mediaType};base64,${content.toString("base64")}`;
  const titled = `text.bin:\n\n${CONTENTS.text.toString("utf8")}`;

  test("chat", async () => {
    const sent = (id: string) => contentSent("openai", "chat", partOf("chat", id, false));
    const file_data = url("application/pdf", CONTENTS.pdf);
    expect(await sent(ids.pdf)).toEqual({ type: "file", file: { filename: "pdf.bin", file_data } });
    expect(await sent(ids.picture)).toEqual({
      type: "image_url",
      image_url: { url: url("image/png", CONTENTS.picture) },
    });
    expect(await sent(ids.text)).toEqual({ type: "text", text: titled });
  });

  test("Responses", async () => {
    const sent = (id: string) => contentSent("openai", "responses", partOf("responses", id, false));
    const file_data = url("application/pdf", CONTENTS.pdf);
    const image_url = url("image/png", CONTENTS.picture);
    expect(await sent(ids.pdf)).toEqual({ type: "input_file", filename: "pdf.bin", file_data });
    expect(await sent(ids.picture)).toEqual({ type: "input_image", image_url, detail: "auto" });
    expect(await sent(ids.text)).toEqual({ type: "input_text", text: titled });
    const low = { type: "input_image", file_id: ids.picture, detail: "low" };
    expect(await contentSent("openai", "responses", low)).toEqual({ type: "input_image", image_url, detail: "low" });
  });

  test("Messages, with all that belongs to the block", async () => {
    const sent = (id: string, isPicture = false, more: object = {}) =>
      contentSent("anthropic", "messages", { ...partOf("messages", id, isPicture), ...more });
    const rest = { title: "Report", context: "Of this year", citations: { enabled: true }, ...cache };
    const pdf = { type: "base64", media_type: "application/pdf", data: CONTENTS.pdf.toString("base64") };
    const picture = { type: "base64", media_type: "image/png", data: CONTENTS.picture.toString("base64") };
    const text = { type: "text", media_type: "text/plain", data: CONTENTS.text.toString("utf8") };
    expect(await sent(ids.pdf, false, rest)).toEqual({ type: "document", source: pdf, ...rest });
    expect(await sent(ids.picture, true, cache)).toEqual({ type: "image", source: picture, ...cache });
    expect(await sent(ids.text)).toEqual({ type: "document", source: text });
  });
});

describe("refused with the field, and nobody is asked", () => {
  async function expectNobodyAsked(
    dialect: Dialect,
    parts: object[],
    status: number,
    message: string | RegExp,
    place = 0,
  ) {
    const before = sentTo("federated");
    const answer = await ask(ONE, dialect, bodyOf(dialect, "federated", ...parts));
    expectRefused(dialect, answer, status, place);
    expect(answer.text).toMatch(message);
    expect(sentTo("federated")).toBe(before);
  }

  test.each(DIALECTS)("%s: a malformed id", async (dialect) => {
    for (const id of ["", "x", "../../etc/passwd", "file-", "file-a/b", `file-${"a".repeat(200)}`]) {
      await expectNobodyAsked(dialect, [partOf(dialect, id, true)], 400, "expected the id of a file");
    }
    const [chat] = [await ask(ONE, "chat", bodyOf("chat", "federated", partOf("chat", "x", true)))];
    expect(expectRefused("chat", chat, 400)?.code).toBe("file_resolution_failed");
  });

  test.each(DIALECTS)("%s: more than 20 files", async (dialect) => {
    const part = partOf(dialect, ids.picture, true);
    const parts = (count: number) => Array.from({ length: count }, () => part);
    const fine = await ask(ONE, dialect, bodyOf(dialect, "federated", ...parts(20)));
    expect(fine.text).not.toContain("invalid_request_error");
    const before = sentTo("federated");
    const answer = await ask(ONE, dialect, bodyOf(dialect, "federated", ...parts(21)));
    expect([answer.status, sentTo("federated")]).toEqual([400, before]);
    expect(answer.text).toContain("20 files");
  });

  test.each(DIALECTS)("%s: more than 10 MB together", async (dialect) => {
    const part = partOf(dialect, ids.large, false);
    expect((await ask(ONE, dialect, bodyOf(dialect, "federated", part))).text).not.toContain("invalid_request_error");
    await expectNobodyAsked(dialect, [part, part], 400, "at most 10 MB together", 1);
  });

  test.each(DIALECTS)("%s: a file of another type than the place takes", async (dialect) => {
    await expectNobodyAsked(dialect, [partOf(dialect, ids.zip, false)], 400, "neither a PDF, nor");
    await expectNobodyAsked(dialect, [partOf(dialect, ids.empty, false)], 400, "is empty");
    if (dialect !== "chat")
      await expectNobodyAsked(dialect, [partOf(dialect, ids.pdf, true)], 400, "of type application/pdf");
  });
});

describe("a pool in which only some have files of their own", () => {
  const foreign = bodyOf("chat", "mixed", partOf("chat", "file-of-the-vendor", false));

  test("only those are asked for an id that is not known here, and it is told", async () => {
    for (let turn = 0; turn < 4; turn++) expect((await ask(ONE, "chat", foreign)).status).toBe(200);
    expect(mixed.engine.requests).toHaveLength(0);
    expect(mixed.keeper.requests).toHaveLength(4);
    expect(mixed.keeper.lastRequest.text).toBe(foreign);
    const warnings = gateway.printed.logEntries.filter(({ msg }) => String(msg).includes("left to a backend"));
    expect(warnings.at(-1)).toMatchObject({ model: "mixed", field: "messages[0].content[0].file.file_id" });
    const list = (await (await gateway.fetch("/admin/requests?limit=1")).json()) as { requests: { id: string }[] };
    const answer = await gateway.fetch(`/admin/requests/${list.requests[0]?.id}`);
    const story = (await answer.json()) as { steps: object[] };
    expect(story.steps[0]).toMatchObject({ kind: "file", field: "messages[0].content[0].file.file_id" });
  });

  test("all are asked for a file that is kept here", async () => {
    const before = mixed.engine.requests.length;
    const known = bodyOf("chat", "mixed", partOf("chat", ids.picture, false));
    for (let turn = 0; turn < 4; turn++) expect((await ask(ONE, "chat", known)).status).toBe(200);
    expect(mixed.engine.requests.length - before).toBe(2);
  });

  test("a model of the fallback chain may have it, too", async () => {
    const body = bodyOf("chat", "engine", partOf("chat", "file-of-the-vendor", false));
    const before = mixed.engine.requests.length;
    const { response } = await ask(ONE, "chat", body);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-fallback-model")).toBe("kept");
    expect(mixed.engine.requests.length).toBe(before);
  });
});

test("without files, an id is as unknown as any other", async () => {
  await using other = await startGateway({ config: config({ enabled: false }) });
  const before = sentTo("openai");
  const body = bodyOf("chat", "openai", partOf("chat", ids.picture, true));
  await ask(ONE, "chat", body, other);
  expect(sentTo("openai")).toBe(before + 1);
  expect(backendOf("openai").lastRequest.text).toBe(body);
  const refused = await ask(ONE, "chat", bodyOf("chat", "vllm", partOf("chat", ids.picture, true)), other);
  const { code, message, param } = expectRefused("chat", refused, 404) ?? {};
  expect(code).toBe("file_resolution_failed");
  expect(message).toBe(`${param}: there is no such file; upload it to /v1/files.`);
});

test("what is put into requests takes of the memory for bodies, and gives it back", async () => {
  const server = { max_buffered_bodies: 16 * MEBIBYTE };
  await using other = await startGateway({ config: { ...config(), server } });
  const body = bodyOf("chat", "federated", partOf("chat", ids.large, false));
  const before = sentTo("federated");
  // Six megabytes take sixteen as base64, as a text and as bytes.
  expect((await ask(ONE, "chat", body, other)).status).toBe(413);
  expect(sentTo("federated")).toBe(before);
  const small = bodyOf("chat", "federated", partOf("chat", ids.picture, false));
  for (let turn = 0; turn < 3; turn++) expect((await ask(ONE, "chat", small, other)).status).toBe(200);

  await using roomy = await startGateway({ config: { ...config(), server: { max_buffered_bodies: 20 * MEBIBYTE } } });
  for (let turn = 0; turn < 3; turn++) expect((await ask(ONE, "chat", body, roomy)).status).toBe(200);
});

test("references need no scope but that of the request, and a key where files need one", async () => {
  const keys = [{ key: "sekret-writer", id: "w", organization_id: "one", scopes: ["write" as const] }];
  const settings = { ...config(), api_keys: { mode: "permissive" as const, keys } };
  await using other = await startGateway({ config: { ...settings, files: {} } });
  const headers = { Authorization: "Bearer sekret-writer" };
  const text = "of somebody without a key";
  const { id } = await uploadFile(other, text);
  const asked = async (kind: string, more: Record<string, string> = {}) => {
    const response = await other.post(PATHS.chat, bodyOf("chat", kind, partOf("chat", id, false)), { headers: more });
    return [response.status, (await response.text()).includes("file_resolution_failed")];
  };
  expect(await asked("vllm")).toEqual([200, false]);
  expect(backendOf("vllm").lastRequest.text).toContain(text);
  const before = sentTo("vllm");
  other.writeConfig({ ...settings, files: { require_key: true } });
  await waitFor("callers need a key", async () => (await other.fetch("/v1/files")).status === 401);
  expect(await asked("vllm")).toEqual([404, true]);
  expect(await asked("vllm", headers)).toEqual([404, true]);
  expect(sentTo("vllm")).toBe(before);
  expect(await asked("openai")).toEqual([200, false]);
  expect(backendOf("openai").lastRequest.text).toContain(id);
  expect(backendOf("openai").lastRequest.text).not.toContain(text);

  await using shared = await startGateway({ config: { ...settings, files: { path: folder, require_key: true } } });
  expect((await shared.fetch("/v1/files", { headers })).status).toBe(403);
  const mine = bodyOf("chat", "vllm", partOf("chat", ids.text, false));
  expect((await shared.post(PATHS.chat, mine, { headers })).status).toBe(200);
  expect(backendOf("vllm").lastRequest.text).toContain("Notes of organisation one");
});
