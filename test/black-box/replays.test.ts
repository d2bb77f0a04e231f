// Replays from outside: recorded requests asked again, of another model, a target of a route or with another prompt.

import { beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { answerWell } from "../support/all-formats.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import { CLIENT_FORMATS, requestOf } from "../support/format-readings.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand } from "../support/gateway-process.ts";
import { chat } from "../support/openai-answers.ts";
import { ask, found, ownIdOf, recordingConfig, recordingOf } from "../support/recordings.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: answerWell, models: ["m"] });
const other = bed.backend({ answer: chat("hello"), models: ["other", "judge"] });

interface Answer {
  text: string;
  status: number;
  request_id: string;
  input_tokens: number | null;
  first_byte_ms: number | null;
  tool_calls: { name: string; arguments: string }[];
  error: string | null;
}

interface Replay {
  id: string;
  status: string;
  total: number;
  done: number;
  identical: number;
  different: number;
  better: number;
  worse: number;
  recorded: { cost: number; output_tokens: number; failed: number };
  replayed: { cost: number; output_tokens: number; failed: number };
  next_cursor: string | null;
  items: {
    recording: string;
    asked_again: boolean;
    recorded: Answer;
    replayed: Answer | null;
    reason: string | null;
    identical: boolean | null;
    judged: { better: string | null; reason: string } | null;
  }[];
}

let gateway: Gateway;
let admin: AdminClient;

beforeAll(async () => {
  const config = recordingConfig(backend, { redact: false });
  gateway = await bed.gateway({
    config: {
      ...config,
      backends: [
        ...(config.backends ?? []),
        { name: "second", type: "vllm", url: other.url, models: ["other", "judge"] },
      ],
      routes: [
        {
          name: "smart",
          targets: [
            { model: "m", weight: 9 },
            { model: "other", name: "trial", set: { temperature: 0 } },
          ],
        },
      ],
      api_keys: {
        ...config.api_keys,
        keys: [
          ...(config.api_keys?.keys ?? []),
          { id: "poor", key: "poor-sekret", budget: { requests: 1, window: "day" } },
        ],
      },
    },
    files: { "prompts/terse.md": "Answer in one word." },
  });
  admin = new AdminClient(gateway);
});

async function recorded(content: string, more: Record<string, unknown> = {}): Promise<string> {
  const response = await ask(gateway, content, more, "ann-sekret");
  await response.text();
  const id = ownIdOf(response);
  await recordingOf(admin, id);
  return id;
}

async function replayed(body: Record<string, unknown>): Promise<Replay> {
  const { id } = await admin.ok("POST", "/admin/replays", body);
  return await waitFor("the replay is over", async () => {
    const replay = (await admin.get(`/admin/replays/${id}`)) as unknown as Replay;
    return replay.status !== "running" && replay;
  });
}

describe("a replay", () => {
  test("asks one request of another model, and shows both answers", async () => {
    const id = await recorded("What is a replay?");
    other.queue(chat("Asking again.", { usage: { prompt_tokens: 7, completion_tokens: 4 } }));
    const replay = await replayed({ recordings: id, model: "other", key: "bob" });
    expect(replay).toMatchObject({ status: "completed", total: 1, done: 1, identical: 0, different: 0 });
    const [item] = replay.items;
    expect(item).toMatchObject({ recording: id, identical: null, judged: null, reason: null });
    expect(item?.recorded).toMatchObject({ text: "hello", status: 200, request_id: id });
    expect(item?.replayed).toMatchObject({ text: "Asking again.", status: 200, input_tokens: 7, output_tokens: 4 });
    expect(item?.replayed?.first_byte_ms).toBeGreaterThan(0);
    const sent = other.requests.at(-1) as RecordedRequest;
    expect(sent.json()).toMatchObject({ model: "other", messages: [{ content: "What is a replay?" }] });
    const story = await admin.get(`/admin/requests/${item?.replayed?.request_id}`);
    expect(story).toMatchObject({ key_id: "bob", model: "other" });
    await admin.refused(404, "GET", `/admin/recordings/${item?.replayed?.request_id}`);
  });

  test.each(CLIENT_FORMATS.flatMap((format) => [[format, false] as const, [format, true] as const]))(
    "asks requests of %s clients (streamed: %s)",
    async (format, stream) => {
      const [path, body] = requestOf(format, "m", "Again?", stream);
      const response = await gateway.fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      await response.text();
      const id = ownIdOf(response);
      await recordingOf(admin, id);
      other.answer = answerWell;
      const replay = await replayed({ recordings: id, model: "other" });
      expect(replay.items[0]?.replayed).toMatchObject({ text: "hello", status: 200, error: null, backend: "second" });
      expect(replay.items[0]?.replayed?.first_byte_ms).toBeGreaterThan(0);
      expect(other.requests.at(-1)?.text ?? "").toContain("Again?");
    },
  );

  test("tells whether answers are identical where the temperature is 0", async () => {
    const same = await recorded("exactly", { temperature: 0 });
    const free = await recorded("freely", { temperature: 1 });
    other.answer = chat("hello");
    const equal = await replayed({ recordings: [same, free], model: "other" });
    expect(equal).toMatchObject({ identical: 1, different: 0 });
    expect(equal.items.map(({ identical }) => identical)).toEqual([true, null]);
    other.answer = chat("hello!");
    expect(await replayed({ recordings: [same], model: "other" })).toMatchObject({ identical: 0, different: 1 });
    const call = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
    const message = { role: "assistant", content: "hello", tool_calls: [call] };
    other.answer = chat("", { choices: [{ index: 0, message, finish_reason: "tool_calls" }] });
    const called = await replayed({ recordings: [same], model: "other" });
    expect(called.items[0]).toMatchObject({
      identical: false,
      replayed: { tool_calls: [{ name: "look", arguments: "{}" }] },
    });
  });

  test("asks a target of a route with what it sets, and a route", async () => {
    const id = await recorded("on trial", { temperature: 0.9 });
    other.answer = chat("tried");
    const replay = await replayed({ recordings: id, route: "smart", arm: "trial" });
    expect(replay.items[0]?.replayed).toMatchObject({ text: "tried" });
    expect(other.requests.at(-1)?.json()).toMatchObject({ model: "other", temperature: 0 });
    const routed = await replayed({ recordings: id, route: "smart" });
    const story = await admin.get(`/admin/requests/${routed.items[0]?.replayed?.request_id}`);
    expect(story).toMatchObject({ route: "smart" });
  });

  test("asks with another prompt file", async () => {
    const id = await recorded("short?", {
      messages: [
        { role: "system", content: "Be long." },
        { role: "user", content: "short?" },
      ],
    });
    other.answer = chat("yes");
    await replayed({ recordings: id, model: "other", prompt: "terse.md" });
    expect(other.requests.at(-1)?.json()).toMatchObject({
      messages: [
        { role: "system", content: "Answer in one word." },
        { role: "user", content: "short?" },
      ],
    });
  });

  test("asks with instructions of its own", async () => {
    const id = await recorded("how long?");
    other.answer = chat("long");
    const replay = await replayed({ recordings: id, instructions: "Answer at length." });
    expect(backend.requests.at(-1)?.json()).toMatchObject({
      messages: [
        { role: "system", content: "Answer at length." },
        { role: "user", content: "how long?" },
      ],
    });
    expect(replay).toMatchObject({ prompt: null, instructions: "Answer at length." });
  });

  test("shows its requests page by page", async () => {
    const ids = [await recorded("page one"), await recorded("page two"), await recorded("page three")];
    other.answer = chat("paged");
    const { id } = await replayed({ recordings: ids, model: "other" });
    const read = async (query: string) => (await admin.get(`/admin/replays/${id}?${query}`)) as unknown as Replay;
    const first = await read("limit=2");
    expect(first).toMatchObject({ total: 3, done: 3, next_cursor: "1" });
    const second = await read(`limit=2&cursor=${first.next_cursor}`);
    expect(second).toMatchObject({ total: 3, done: 3, next_cursor: null });
    expect([...first.items, ...second.items].map(({ recording }) => recording)).toEqual(ids);
    await admin.refused(400, "GET", `/admin/replays/${id}?cursor=next`);
  });

  test("counts on what it has asked when a recording is deleted", async () => {
    const ids = [await recorded("counted pelican"), await recorded("counted stork")];
    other.answer = chat("counted");
    const { id } = await replayed({ recordings: ids, model: "other" });
    await admin.ok("DELETE", "/admin/recordings?text=pelican");
    const replay = (await admin.get(`/admin/replays/${id}`)) as unknown as Replay;
    expect(replay).toMatchObject({ total: 2, done: 2, replayed: { failed: 0 } });
    expect(replay.items.map(({ recording }) => recording)).toEqual(ids.slice(1));
  });

  test("compares nothing with an answer that was not kept", async () => {
    const config = recordingConfig(backend, { what: ["request"] });
    const short = await bed.gateway({ config });
    const client = new AdminClient(short);
    const response = await ask(short, "exactly?", { temperature: 0 });
    await response.text();
    const id = ownIdOf(response);
    await recordingOf(client, id);
    const judge = { model: "m", rubric: "The better one is better." };
    const started = await client.ok("POST", "/admin/replays", { recordings: id, model: "m", judge });
    const replay = await waitFor("the replay is over", async () => {
      const told = (await client.get(`/admin/replays/${started.id}`)) as unknown as Replay;
      return told.status !== "running" && told;
    });
    expect(replay).toMatchObject({ done: 1, identical: 0, different: 0 });
    expect(replay.items[0]).toMatchObject({ identical: null, judged: { better: null } });
    expect(replay.items[0]?.judged?.reason).toContain("not kept");
  });

  test("is judged by a model, with each side first in every other request", async () => {
    const ids = [await recorded("judge one"), await recorded("judge two")];
    const asked: string[] = [];
    other.answer = (request) => {
      const { model, messages } = request.json<{ model: string; messages: { content: string }[] }>();
      if (model !== "judge") return chat("a better answer");
      const question = messages[1]?.content ?? "";
      asked.push(question);
      const better = /# Answer A\na better answer/.test(question) ? "A" : "B";
      return chat(`Sure: {"better": "${better}", "reason": "It is better."}`);
    };
    const judge = { model: "judge", rubric: "The better one is better." };
    const replay = await replayed({ recordings: ids, model: "other", judge });
    expect(replay).toMatchObject({ better: 2, worse: 0 });
    expect(replay.items.map(({ judged }) => judged)).toEqual([
      { better: "replayed", reason: "It is better." },
      { better: "replayed", reason: "It is better." },
    ]);
    expect(asked.map((question) => question.includes("# Rubric\nThe better one is better."))).toEqual([true, true]);
    expect(asked.filter((question) => /# Answer A\na better/.test(question))).toHaveLength(1);
    other.answer = chat("no idea");
    const unread = await replayed({ recordings: ids.slice(0, 1), model: "other", judge });
    expect(unread.items[0]?.judged).toMatchObject({ better: null });
  });

  test("asks no judge about a request that failed, and reads no answer without an end", async () => {
    const id = await recorded("failing");
    const judge = { model: "judge", rubric: "The better one is better." };
    const judged = () => other.requests.filter((request) => request.text.includes("# Rubric")).length;
    const before = judged();
    const failed = await replayed({ recordings: id, model: "nobody-serves-this", judge });
    expect(failed.items[0]).toMatchObject({ judged: null, replayed: { status: 404 } });
    expect(judged()).toBe(before);
    other.answer = chat("x".repeat(33 * 1024 ** 2));
    const long = await replayed({ recordings: id, model: "other" });
    expect(long.items[0]?.replayed).toMatchObject({
      status: 200,
      text: "",
      error: "The answer is too long to be read.",
    });
  });

  test("asks what a filter means, and says what it cannot ask", async () => {
    await recorded("a filtered zebra");
    await recorded("another zebra");
    other.answer = chat("ok");
    const replay = await replayed({ recordings: { text: "zebra", key: "ann" }, model: "other" });
    expect(replay.items.map(({ recording }) => recording)).toEqual(await found(admin, "text=zebra"));
    expect(await replayed({ recordings: { text: "zebra", limit: "1" }, model: "other" })).toMatchObject({ total: 1 });
    const embedded = await gateway.post("/v1/embeddings", { model: "m", input: "zebra" });
    await recordingOf(admin, ownIdOf(embedded));
    const none = await replayed({ recordings: ownIdOf(embedded), model: "other" });
    expect(none.items[0]).toMatchObject({ replayed: null });
    expect(none.items[0]?.reason).toContain("no conversations");
  });

  test("holds the rights and the budget of its key", async () => {
    const id = await recorded("on a budget");
    other.answer = chat("paid");
    const poor = await replayed({ recordings: [id, await recorded("too much")], model: "other", key: "poor" });
    expect(poor.items.map(({ replayed }) => replayed?.status).toSorted()).toEqual([200, 429]);
    const failed = await replayed({ recordings: id, model: "nobody-serves-this" });
    expect(failed.items[0]?.replayed).toMatchObject({ status: 404 });
    expect(failed.replayed).toMatchObject({ failed: 1 });
  });

  test("waits while four others are under way", async () => {
    const hanging = bed.backend({ models: ["m"], answer: chat("hello") });
    const busy = await bed.gateway({ config: recordingConfig(hanging) });
    const client = new AdminClient(busy);
    const response = await ask(busy, "in turn");
    await response.text();
    const id = ownIdOf(response);
    await recordingOf(client, id);
    hanging.answer = { hang: true };
    const replays: string[] = [];
    for (let count = 0; count < 6; count++) {
      replays.push(String((await client.ok("POST", "/admin/replays", { recordings: id, model: "m" })).id));
    }
    await waitFor("four of them ask", () => hanging.requests.length === 5);
    hanging.answer = chat("hello");
    await client.ok("DELETE", `/admin/replays/${replays[0]}`);
    for (const waiting of replays.slice(4)) {
      await waitFor("it is over", async () => (await client.get(`/admin/replays/${waiting}`)).status === "completed");
    }
    expect(await client.get(`/admin/replays/${replays[1]}`)).toMatchObject({ status: "running", done: 0 });
    for (const running of replays.slice(1, 4)) await client.ok("DELETE", `/admin/replays/${running}`);
  });

  test("is refused where it makes no sense", async () => {
    const id = await recorded("refused");
    const wrong: [body: Record<string, unknown>, field: string][] = [
      [{ recordings: id }, "model"],
      [{ recordings: "nothing", model: "m" }, "recordings"],
      [{ recordings: [], model: "m" }, "recordings"],
      [{ recordings: { text: "no such word at all" }, model: "m" }, "recordings"],
      [{ recordings: { colour: "red" }, model: "m" }, "recordings.colour"],
      [{ recordings: id, model: "m", route: "smart" }, "route"],
      [{ recordings: id, model: "m", arm: "trial" }, "arm"],
      [{ recordings: id, route: "smart", arm: "none" }, "arm"],
      [{ recordings: id, route: "none" }, "route"],
      [{ recordings: id, model: "m", key: "none" }, "key"],
      [{ recordings: id, prompt: "terse.md", instructions: "Be brief." }, "instructions"],
    ];
    for (const [body, field] of wrong) {
      expect((await admin.refused(400, "POST", "/admin/replays", body)).fields).toEqual([field]);
    }
    await admin.refused(404, "GET", "/admin/replays/none");
  });

  test("is listed, and deleted with its recording or by itself", async () => {
    const id = await recorded("to be deleted");
    other.answer = chat("soon gone");
    const replay = await replayed({ recordings: id, model: "other" });
    const { replays } = await admin.get("/admin/replays");
    expect((replays as Replay[])[0]).toMatchObject({ id: replay.id, total: 1 });
    await admin.ok("DELETE", "/admin/recordings?text=deleted");
    expect(await admin.get(`/admin/replays/${replay.id}`)).toMatchObject({ items: [] });
    await admin.ok("DELETE", `/admin/replays/${replay.id}`);
    await admin.refused(404, "GET", `/admin/replays/${replay.id}`);
  });
});

/** A gateway of its own with recordings, in front of a backend that asks for its turn. */
async function replaying(count: number) {
  const slow = bed.backend({ models: ["slow"], answer: chat("done") });
  const config = recordingConfig(backend, {});
  const killed = await bed.process({
    config: {
      ...config,
      server: { shutdown_timeout: "1s" },
      backends: [...(config.backends ?? []), { name: "slow", type: "vllm", url: slow.url, models: ["slow"] }],
    },
  });
  const client = new AdminClient(killed);
  const ids: string[] = [];
  for (let asked = 0; asked < count; asked++) {
    const response = await ask(killed, `question ${asked}`);
    await response.text();
    ids.push(ownIdOf(response));
  }
  for (const id of ids) await recordingOf(client, id);
  const read = async (id: string) => (await client.get(`/admin/replays/${id}`)) as unknown as Replay;
  const over = (id: string) =>
    waitFor("the replay is over", async () => {
      const replay = await read(id);
      return replay.status !== "running" && replay;
    });
  const begin = async () => String((await client.ok("POST", "/admin/replays", { recordings: ids, model: "slow" })).id);
  return { slow, killed, begin, read, over };
}

const questionsOf = (requests: readonly RecordedRequest[]) =>
  requests.map((request) => request.json<{ messages: { content: string }[] }>().messages[0]?.content);

describe("a replay that a restart breaks off", () => {
  test("goes on after kill -9: rows done are kept, those under way are asked again and say so", async () => {
    const { slow, killed, begin, read, over } = await replaying(9);
    let answered = 0;
    slow.answer = () => (++answered <= 2 ? chat("done") : { hang: true });
    const id = await begin();
    await waitFor("two answers, and four requests under way", async () => {
      return (await read(id)).done === 2 && slow.requests.length === 6;
    });
    killed.process.kill("SIGKILL");
    await killed.process.finished();
    slow.answer = chat("later");
    await killed.restart();
    const replay = await over(id);
    expect(replay).toMatchObject({ status: "completed", total: 9, done: 9, replayed: { failed: 0 } });
    const told = replay.items.map(({ replayed, asked_again }) => [replayed?.text, asked_again]);
    expect(told.filter(([text]) => text === "done")).toEqual([
      ["done", false],
      ["done", false],
    ]);
    expect(told.filter(([, again]) => again)).toHaveLength(4);
    // Each question once, and those under way once more.
    const asked = questionsOf(slow.requests);
    expect(asked).toHaveLength(13);
    expect(new Set(asked)).toHaveLength(9);
  });

  test("goes on after a stop as well, and one that is over stays over", async () => {
    const { slow, killed, begin, read, over } = await replaying(6);
    const first = await begin();
    await over(first);
    let answered = 0;
    slow.answer = () => (++answered <= 1 ? chat("done") : { hang: true });
    const id = await begin();
    await waitFor("one answer", async () => (await read(id)).done === 1);
    killed.process.kill("SIGTERM");
    await killed.process.finished();
    slow.answer = chat("later");
    await killed.restart();
    const replay = await over(id);
    expect(replay).toMatchObject({ status: "completed", done: 6, replayed: { failed: 0 } });
    expect(await read(first)).toMatchObject({ status: "completed", done: 6 });
  });
});

describe("signalbox replay", () => {
  test("asks what its filter means, and prints both sides", async () => {
    await recorded("the command line heron");
    other.answer = chat("a heron again");
    const replay = (...words: string[]) =>
      runCommand({ config: null, args: ["replay", "--url", gateway.url, ...words] });
    const filter = 'text="command heron" limit=1';
    const told = await replay("--filter", filter, "--model", "other", "--key", "ann");
    expect(told).toMatchObject({ exitCode: 0, stderr: "" });
    for (const part of ["completed: 1 of 1", "recorded: hello", "replayed: a heron again"]) {
      expect(told.stdout).toContain(part);
    }
    const asJson = await replay("--filter", filter, "--model", "other", "--json");
    expect(JSON.parse(asJson.stdout)).toMatchObject({ status: "completed", total: 1 });
    const wrong = await replay("--filter", "colour=red", "--model", "other");
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stderr).toContain("recordings.colour");
    for (const words of [
      ["--model", "m"],
      ["--filter", "a=b"],
      ["--filter", "odd", "--model", "m"],
    ]) {
      const { exitCode, stderr } = await replay(...words);
      expect([exitCode === 0, stderr === ""]).toEqual([false, false]);
    }
  });
});
