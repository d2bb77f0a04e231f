// Recording from outside: which requests are kept, what of them, in all client formats, and what is not.

import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import { answerWell } from "../support/all-formats.ts";
import { CLIENT_FORMATS, requestOf } from "../support/format-readings.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, eventStream } from "../support/openai-answers.ts";
import { ask, found, ownIdOf, type Recording, recordingConfig, recordingOf } from "../support/recordings.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: answerWell, models: ["m"] });

describe("recorded requests", () => {
  let gateway: Gateway;
  let admin: AdminClient;

  beforeAll(async () => {
    gateway = await bed.gateway({ config: recordingConfig(backend, { redact: false }) });
    admin = new AdminClient(gateway);
  });

  test.each(CLIENT_FORMATS.flatMap((format) => [[format, false] as const, [format, true] as const]))(
    "are kept as %s clients sent and got them (streamed: %s)",
    async (format, stream) => {
      const [path, body] = requestOf(format, "m", "What is a signal box?", stream);
      const sent = JSON.stringify(body);
      const response = await gateway.fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: sent,
      });
      const got = await response.text();
      expect(response.status).toBe(200);
      const recording = await recordingOf(admin, ownIdOf(response));
      expect(recording.request).toMatchObject({ text: sent, incomplete: null });
      expect(recording.answer).toMatchObject({ text: got, incomplete: null });
      expect(recording).toMatchObject({
        operation: format,
        model: "m",
        status: 200,
        outcome: "succeeded",
        backend: "engine",
      });
      const { messages = [], answer } = recording.conversation ?? {};
      expect(messages.map(({ role }) => role)).toEqual(["user"]);
      expect(messages[0]?.parts.map(({ text }) => text?.trim()).join("")).toBe("What is a signal box?");
      expect(answer?.parts.map(({ type, text }) => [type, text])).toEqual([["text", "hello"]]);
      expect(answer?.finish).toBe("stop");
    },
  );

  test("show tools, thoughts and pictures", async () => {
    const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } };
    backend.queue(
      chat("", {
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "Rainy.", reasoning_content: "I look outside.", tool_calls: [call] },
            finish_reason: "tool_calls",
          },
        ],
      }),
    );
    const picture = "data:image/png;base64,iVBORw0KGgo=";
    const response = await ask(gateway, "", {
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "And?" },
            { type: "image_url", image_url: { url: picture } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "14 degrees" },
      ],
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }],
    });
    await response.text();
    const { conversation } = await recordingOf(admin, ownIdOf(response));
    expect(conversation).toMatchObject({
      tools: ["weather"],
      messages: [
        { role: "system", parts: [{ type: "text", text: "Be brief." }] },
        {
          role: "user",
          parts: [
            { type: "text", text: "And?" },
            { type: "image", media_type: "image/png", url: picture },
          ],
        },
        { role: "assistant", parts: [{ type: "tool-call", name: "weather", text: '{"city":"Paris"}' }] },
        { role: "user", parts: [{ type: "tool-result", call_id: "call_1", text: "14 degrees" }] },
      ],
      answer: { finish: "tool-calls" },
    });
    const types = conversation?.answer?.parts.map(({ type }) => type);
    expect(types).toEqual(["reasoning", "text", "tool-call"]);
  });

  test("that failed have the error that the client got", async () => {
    backend.queue({ status: 500, body: JSON.stringify({ error: { message: "the engine is on fire" } }) });
    const response = await ask(gateway, "Hello!");
    const got = await response.text();
    const recording = await recordingOf(admin, ownIdOf(response));
    expect(recording).toMatchObject({ status: response.status, outcome: "failed" });
    expect(recording.answer.text).toBe(got);
    expect(recording.conversation?.answer?.error).toBeString();
  });

  test("whose stream breaks off have what went out", async () => {
    const half = chatEvents(["half an "], { finishReason: null, done: false });
    backend.queue(eventStream(half, { breakAfterBytes: half.join("").length, breakWith: "fin" }));
    const response = await ask(gateway, "Hello!", { stream: true });
    const got = await response.text();
    const recording = await recordingOf(admin, ownIdOf(response));
    expect(recording.answer.text).toBe(got);
    expect(recording).toMatchObject({ outcome: "stream_broken" });
    expect(recording.conversation?.answer).toMatchObject({ finish: null, parts: [{ text: "half an " }] });
  });

  test("whose client leaves have what went out until then", async () => {
    const never = new Promise<void>(() => {});
    backend.queue(chatStream(["first ", "never "], {}, { beforeChunk: (index) => (index === 2 ? never : undefined) }));
    const leaving = new AbortController();
    const response = await gateway.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hello!" }] }),
      signal: leaving.signal,
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let got = "";
    while (!got.includes("first ")) got += new TextDecoder().decode((await reader.read()).value);
    leaving.abort();
    const recording = await recordingOf(admin, ownIdOf(response));
    expect(recording).toMatchObject({ status: 499, outcome: "client_left" });
    expect(recording.conversation?.answer).toMatchObject({ finish: null, parts: [{ text: "first " }] });
  });

  test("are those that their clients did not except, and no backend hears of it", async () => {
    const kept = await ask(gateway, "Keep this.");
    const excepted = await ask(gateway, "Not this.", {}, undefined, { "X-Signalbox-Record": "no" });
    const last = await ask(gateway, "And this.");
    for (const response of [kept, excepted, last]) await response.text();
    await recordingOf(admin, ownIdOf(kept));
    await recordingOf(admin, ownIdOf(last));
    await admin.refused(404, "GET", `/admin/recordings/${ownIdOf(excepted)}`);
    expect(backend.requests.at(-2)?.headers["x-signalbox-record"]).toBeUndefined();
    expect(backend.requests.at(-2)?.text).toContain("Not this.");
  });

  test("are those of clients: a mirror's copies are none", async () => {
    const copies = bed.backend({ answer: chat("copied"), models: ["copy"] });
    const config = recordingConfig(backend);
    const mirrored = await bed.gateway({
      config: {
        ...config,
        backends: [...(config.backends ?? []), { name: "copies", type: "vllm", url: copies.url, models: ["copy"] }],
        routes: [{ name: "smart", targets: [{ model: "m" }], mirror: { model: "copy", share: 1 } }],
      },
    });
    const client = new AdminClient(mirrored);
    const first = await ask(mirrored, "Twice?", { model: "smart" });
    await first.text();
    await waitFor("the copy is over", async () => {
      const { requests } = await client.get("/admin/requests?model=copy");
      return (requests as { finished: boolean }[])[0]?.finished === true;
    });
    const second = await ask(mirrored, "Once.");
    await second.text();
    for (const response of [first, second]) await recordingOf(client, ownIdOf(response));
    expect((await found(client, "limit=500")).toSorted()).toEqual([first, second].map(ownIdOf).toSorted());
  });

  test("are found by their words, and by what is known of them", async () => {
    backend.queue(chat("The heron waits by the reeds.", { usage: { prompt_tokens: 3, completion_tokens: 9 } }));
    const ofAnn = await ask(gateway, "Tell me of the Grey Heron, please.", {}, "ann-sekret");
    const ofBob = await ask(gateway, "Tell me of the swan.", {}, "bob-sekret");
    await Promise.all([ofAnn.text(), ofBob.text()]);
    const [ann, bob] = [ownIdOf(ofAnn), ownIdOf(ofBob)];
    await recordingOf(admin, ann);
    await recordingOf(admin, bob);
    expect(await found(admin, "text=grey+heron")).toEqual([ann]);
    expect(await found(admin, "text=REEDS")).toEqual([ann]);
    expect(await found(admin, "text=tell+swan")).toEqual([bob]);
    expect(await found(admin, "text=heron+swan")).toEqual([]);
    expect(await found(admin, "key=ann")).toEqual([ann]);
    expect(await found(admin, "user=bob&status=2xx&model=m&outcome=succeeded")).toEqual([bob]);
    expect(await found(admin, "user=bob&min_duration_ms=600000")).toEqual([]);
    expect(await found(admin, "user=bob&status=5xx")).toEqual([]);
    expect(await found(admin, "user=bob&min_cost=0.5")).toEqual([]);
    expect(await found(admin, "user=bob&since=2020-01-01&max_duration_ms=600000&max_cost=0.5")).toEqual([bob]);
    for (const wrong of ["status=6", "min_cost=-1", "outcome=odd", "cursor=x", "txt=heron", "since=soon"]) {
      await admin.refused(400, "GET", `/admin/recordings?${wrong}`);
    }
  });

  test("come page by page, the newest first", async () => {
    const all = await found(admin, "limit=500");
    const pages: string[] = [];
    let cursor: unknown;
    do {
      const query = cursor === undefined ? "limit=3" : `limit=3&cursor=${cursor}`;
      const page = await admin.get(`/admin/recordings?${query}`);
      pages.push(...(page.recordings as Recording[]).map(({ id }) => id));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    expect(pages).toEqual(all);
    expect(new Set(all).size).toBe(all.length);
  });

  test("are deleted by key and by user in one call, which the audit has", async () => {
    expect(await admin.ok("DELETE", "/admin/recordings?key=ann")).toMatchObject({ deleted: 1 });
    expect(await admin.ok("DELETE", "/admin/recordings?user=bob")).toMatchObject({ deleted: 1 });
    expect(await found(admin, "text=heron")).toEqual([]);
    expect(await found(admin, "key=bob")).toEqual([]);
    await admin.refused(400, "DELETE", "/admin/recordings");
    const { entries } = await admin.get("/admin/audit?limit=2");
    expect(JSON.stringify(entries)).toContain("/admin/recordings");
  });

  test("leave nothing of what was said in the log, in the files, or in the metrics", async () => {
    const response = await ask(gateway, "The walrus and the carpenter.", {}, "ann-sekret");
    await response.text();
    await recordingOf(admin, ownIdOf(response));
    const folder = join(gateway.folder, "data", "recordings");
    expect(statSync(join(folder, "recording.key")).mode & 0o777).toBe(0o600);
    for (const name of readdirSync(folder)) {
      const content = readFileSync(join(folder, name)).toString("latin1").toLowerCase();
      expect([name, content.includes("walrus")]).toEqual([name, false]);
    }
    expect(String(gateway.printed).toLowerCase()).not.toContain("walrus");
    const metrics = await (await gateway.fetch("/metrics")).text();
    expect(metrics).not.toContain("walrus");
    expect(metrics).toMatch(/signalbox_recordings_total\{result="kept"\} [1-9]/);
  });
});
