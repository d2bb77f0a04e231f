// What recording leaves out: by configuration, by size, by age, by redaction; and what crashes and buckets leave.

import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { ask, found, ownIdOf, recordingConfig, recordingOf } from "../support/recordings.ts";
import { startS3Server } from "../support/s3-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("hello") });

async function start(recording: Parameters<typeof recordingConfig>[1]) {
  const config = recordingConfig(backend, recording);
  const gateway = await bed.gateway({ config });
  return { gateway, config, admin: new AdminClient(gateway) };
}

type Started = Awaited<ReturnType<typeof start>>;

async function asked({ gateway }: Pick<Started, "gateway">, content: string, ...more: [object?, string?, object?]) {
  const response = await ask(gateway, content, ...(more as []));
  await response.text();
  return ownIdOf(response);
}

describe("recording", () => {
  test("is off by default, and makes no file", async () => {
    const { recording: _, ...config } = recordingConfig(backend);
    const gateway = await bed.gateway({ config });
    const admin = new AdminClient(gateway);
    await asked({ gateway }, "Hello!");
    expect(await admin.get("/admin/recordings")).toMatchObject({ enabled: false, recordings: [], bytes: 0 });
    expect(existsSync(join(gateway.folder, "data", "recordings"))).toBe(false);
  });

  test("begins and ends with the configuration, and what was kept can be read on", async () => {
    const { gateway, config, admin } = await start({ enabled: false });
    const before = await asked({ gateway }, "before");
    await admin.ok("PATCH", "/admin/config/recording", { enabled: true });
    const during = await asked({ gateway }, "during");
    await recordingOf(admin, during);
    await admin.ok("PATCH", "/admin/config/recording", { enabled: false });
    const after = await asked({ gateway }, "after");
    await admin.ok("PATCH", "/admin/config/recording", { enabled: true });
    await recordingOf(admin, await asked({ gateway }, "at last"));
    for (const id of [before, after]) await admin.refused(404, "GET", `/admin/recordings/${id}`);
    expect(config.recording?.enabled).toBe(false);
    await gateway.restart();
    expect((await recordingOf(admin, during)).request.text).toContain("during");
  });

  test("keeps the share of the requests that match", async () => {
    const { gateway, admin } = await start({
      match: [{ key: ["ann"] }, { model: ["m"], header: { "X-Team": ["red*"] } }],
    });
    const ids = {
      ann: await asked({ gateway }, "one", {}, "ann-sekret"),
      bob: await asked({ gateway }, "two", {}, "bob-sekret"),
      red: await asked({ gateway }, "three", {}, undefined, { "X-Team": "red-1" }),
      last: await asked({ gateway }, "four", {}, "ann-sekret"),
    };
    await recordingOf(admin, ids.last);
    expect((await found(admin, "")).toSorted()).toEqual([ids.ann, ids.red, ids.last].toSorted());
    await admin.ok("PATCH", "/admin/config/recording", { share: 0 });
    const none = await asked({ gateway }, "five", {}, "ann-sekret");
    await admin.ok("PATCH", "/admin/config/recording", { share: 0.5, match: [] });
    const some = await Promise.all(Array.from({ length: 60 }, (_, index) => asked({ gateway }, `some ${index}`)));
    await admin.ok("PATCH", "/admin/config/recording", { share: 1 });
    await recordingOf(admin, await asked({ gateway }, "the end"));
    const kept = new Set(await found(admin, "limit=500"));
    expect(kept.has(none)).toBe(false);
    const count = some.filter((id) => kept.has(id)).length;
    expect(count).toBeGreaterThan(5);
    expect(count).toBeLessThan(55);
  });

  test("keeps only what it is to keep", async () => {
    const { gateway, admin } = await start({ what: ["answer"] });
    const first = await recordingOf(admin, await asked({ gateway }, "What?"));
    expect(first.request).toMatchObject({ text: "", incomplete: "not_recorded" });
    expect(first.answer).toMatchObject({ incomplete: null });
    await admin.ok("PATCH", "/admin/config/recording", { what: ["request"] });
    const second = await recordingOf(admin, await asked({ gateway }, "What?", { stream: true }));
    expect(second.request).toMatchObject({ incomplete: null });
    expect(second.answer).toMatchObject({ text: "", incomplete: "not_recorded" });
  });

  test("cuts bodies that are too long, and says so", async () => {
    const { gateway, admin } = await start({ max_body_bytes: 2000, redact: false });
    const texts = Array.from({ length: 20 }, (_, index) => `piece ${index} `);
    backend.queue(chatStream(texts));
    const response = await ask(gateway, `long ${"x".repeat(3000)}`, { stream: true });
    const got = await response.text();
    const { request, answer, conversation } = await recordingOf(admin, ownIdOf(response));
    expect(request).toMatchObject({ incomplete: "cut" });
    expect(request.bytes).toBeGreaterThan(3000);
    expect(request.text?.length).toBe(2000);
    expect(answer).toMatchObject({ incomplete: "cut", bytes: got.length, text: got.slice(0, 2000) });
    expect(conversation?.answer?.parts[0]?.text).toStartWith("piece 0 piece 1 ");
  });

  test("takes personal and secret texts out before anything is kept, in streams as well", async () => {
    const { gateway, admin } = await start({});
    backend.queue(chatStream(["Write to ali", "ce@exam", "ple.org or sk-sek", "ret0123456789abcdef."]));
    const response = await ask(gateway, "I am bob@example.org, +49 170 1234567, 4111 1111 1111 1111.", {
      stream: true,
    });
    expect(await response.text()).toContain("ce@exam");
    const { conversation, answer } = await recordingOf(admin, ownIdOf(response));
    expect(conversation?.messages[0]?.parts[0]?.text).toBe("I am [redacted email], [redacted phone], [redacted card].");
    expect(conversation?.answer?.parts[0]?.text).toBe("Write to [redacted email] or [redacted key].");
    expect(answer.text).not.toContain("ce@exam");
    expect(await found(admin, "text=bob")).toEqual([]);
    expect(await found(admin, "text=write")).toHaveLength(1);
    await admin.ok("PATCH", "/admin/config/recording", { max_body_bytes: 1024 });
    const long = await recordingOf(admin, await asked({ gateway }, `bob@example.org ${"x".repeat(2000)}`));
    expect(long.request).toMatchObject({ incomplete: "too_long_to_redact", text: "" });
  });

  test("is read and deleted as soon as the answer is over", async () => {
    const { gateway, admin } = await start({});
    for (let round = 0; round < 5; round++) {
      const id = await asked({ gateway }, "Hello!", {}, "ann-sekret");
      expect(await found(admin, "key=ann")).toEqual([id]);
      await asked({ gateway }, "And on.", {}, "ann-sekret");
      expect(await admin.ok("DELETE", "/admin/recordings?key=ann")).toMatchObject({ deleted: 2 });
    }
  });

  test("forgets what is older than its retention", async () => {
    const { gateway, admin } = await start({});
    const id = await asked({ gateway }, "Hello!");
    await recordingOf(admin, id);
    await admin.ok("PATCH", "/admin/config/recording", { retention: "1ms" });
    await admin.refused(404, "GET", `/admin/recordings/${id}`);
    await waitFor("the recording is removed", async () => (await admin.get("/admin/recordings")).bytes === 0);
  });

  test("lets the oldest make room", async () => {
    const { gateway, admin } = await start({ max_bytes: 1024 ** 2, redact: false });
    const noise = () => crypto.getRandomValues(new Uint8Array(60_000)).toBase64();
    const ids: string[] = [];
    for (let count = 0; count < 25; count++) ids.push(await asked({ gateway }, noise()));
    await recordingOf(admin, ids.at(-1) as string);
    const { bytes } = await admin.get("/admin/recordings");
    expect(bytes).toBeLessThanOrEqual(1024 ** 2);
    const kept = await found(admin, "limit=500");
    expect(kept.length).toBeGreaterThan(8);
    expect(kept).toEqual(ids.slice(-kept.length).reverse());
  });

  test("survives a kill", async () => {
    const gateway = await bed.process({ config: recordingConfig(backend, {}) });
    const admin = new AdminClient(gateway);
    const id = await asked({ gateway }, "Remember the ibis.");
    await recordingOf(admin, id);
    for (let count = 0; count < 20; count++) void ask(gateway, `late ${count}`).catch(() => {});
    gateway.process.kill("SIGKILL");
    await gateway.process.finished();
    await gateway.restart();
    expect((await recordingOf(admin, id)).request.text).toContain("ibis");
    for (const each of await found(admin, "text=ibis")) expect(each).toBe(id);
    await recordingOf(admin, await asked({ gateway }, "And on."));
  });

  test.each([1, 2])("loses nothing when a gateway with %i workers is told to stop", async (workers) => {
    const config = recordingConfig(backend, {});
    const gateway = await bed.process({ config: { ...config, server: { bind_address: "127.0.0.1:0", workers } } });
    const ids: string[] = [];
    for (let count = 0; count < 8; count++) {
      ids.push(await asked({ gateway }, `word ${count}`, {}, "ann-sekret", { Connection: "close" }));
    }
    gateway.process.kill("SIGTERM");
    await gateway.process.finished();
    await gateway.restart();
    expect((await found(new AdminClient(gateway), "key=ann")).toSorted()).toEqual(ids.toSorted());
  });

  test("is done by every worker, and kept by their primary", async () => {
    const config = recordingConfig(backend, {});
    const gateway = await bed.process({ config: { ...config, server: { bind_address: "127.0.0.1:0", workers: 2 } } });
    const admin = new AdminClient(gateway);
    const ids: string[] = [];
    for (let count = 0; count < 8; count++) {
      ids.push(await asked({ gateway }, `worker ${count}`, {}, "ann-sekret", { Connection: "close" }));
    }
    for (const id of ids) expect(await recordingOf(admin, id)).toMatchObject({ key_id: "ann", outcome: "succeeded" });
    expect((await found(admin, "key=ann&text=worker")).toSorted()).toEqual(ids.toSorted());
    expect(await admin.ok("DELETE", "/admin/recordings?key=ann")).toMatchObject({ deleted: 8 });
  });

  test("keeps bodies in a bucket, and removes them there", async () => {
    const s3 = await startS3Server();
    const { gateway, admin } = await start({ storage: "s3", s3: { ...s3.settings, key_prefix: "kept/" } });
    const id = await asked({ gateway }, "Hello bucket!", {}, "ann-sekret");
    expect((await recordingOf(admin, id)).request.text).toContain("Hello bucket!");
    expect(s3.objects()).toEqual([id]);
    expect(s3.requests.some((request) => request.includes(`kept/${id}`))).toBe(true);
    await admin.ok("DELETE", "/admin/recordings?key=ann");
    await waitFor("the object is removed", () => s3.objects().length === 0);
    s3.faults.answer = () => new Response("", { status: 500 });
    const lost = await asked({ gateway }, "No bucket!");
    await waitFor("a failure is counted", async () => {
      const metrics = await (await gateway.fetch("/metrics")).text();
      return /signalbox_recordings_total\{result="failed"\} 1/.test(metrics);
    });
    await admin.refused(404, "GET", `/admin/recordings/${lost}`);
    await s3.stop();
  });

  test("needs its key: what was sealed with another one is not opened", async () => {
    const { gateway, admin } = await start({});
    const id = await asked({ gateway }, "Hello!");
    await recordingOf(admin, id);
    writeFileSync(join(gateway.folder, "data", "recordings", "recording.key"), new Uint8Array(32));
    await gateway.restart();
    const error = await admin.refused(503, "GET", `/admin/recordings/${id}`);
    expect(error.message).toContain("cannot be opened");
  });

  test("is not for viewers", async () => {
    const users = [{ username: "eve", password: "eve-sekret", role: "viewer" as const }];
    const auth = { method: "basic" as const, username: "root", password: "root-sekret", users };
    const gateway = await bed.gateway({
      config: { ...recordingConfig(backend, {}), admin: { auth } },
      awaitHealth: false,
    });
    const viewer = new AdminClient(gateway, { Authorization: `Basic ${btoa("eve:eve-sekret")}` });
    await viewer.refused(403, "GET", "/admin/recordings");
    await viewer.refused(403, "GET", "/admin/recordings/x");
    await viewer.refused(403, "DELETE", "/admin/recordings?key=ann");
  });
});
