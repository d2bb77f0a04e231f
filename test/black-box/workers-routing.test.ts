// What several processes choose by: prefixes of prompts, requests in flight, calls that are shared. Each worker chooses as
// one process would.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { chat, chatEvents, eventStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const WORKERS = 2;

/** Each request on a connection of its own, so that any worker may get it. */
const ALONE = { keepalive: false, headers: { connection: "close" } };

async function start(size: number, config: ConfigDocument, answer = chat("hello")) {
  const backends = Array.from({ length: size }, () => bed.backend({ answer }));
  const gateway = await bed.process({
    config: {
      ...config,
      server: { bind_address: "127.0.0.1:0", workers: WORKERS },
      backends: backends.map(({ url }, place) => ({ name: `b${place}`, url, models: ["m"] })),
    },
  });
  return { gateway, backends };
}

function workerOf(response: Response): string {
  return (response.headers.get("x-signalbox-request-id") ?? "").split("-", 1)[0] as string;
}

async function read<Answer>(gateway: ProcessGateway, path: string, init: RequestInit = {}): Promise<Answer> {
  return (await (await gateway.fetch(path, { ...ALONE, ...init })).json()) as Answer;
}

/** Asks until every worker has answered; who has answered for them. */
async function askAll(gateway: ProcessGateway, body: Record<string, unknown>): Promise<(string | null)[]> {
  const seen = new Set<string>();
  const backends: (string | null)[] = [];
  await waitFor("every worker has answered", async () => {
    const response = await gateway.chat(body, ALONE);
    await response.text();
    seen.add(workerOf(response));
    backends.push(response.headers.get("x-signalbox-backend"));
    return seen.size === WORKERS;
  });
  return backends;
}

test("what one worker learns of a KV cache all know, and all forget it before that is told", async () => {
  const { gateway } = await start(4, { kv_cache_index: { enabled: true } });
  const prompt = (user: string) => ({ messages: [{ role: "user", content: `${user} `.repeat(400) }] });
  let known = 0;
  for (const user of ["ann", "bob", "cid", "dee"]) {
    const first = await gateway.chat(prompt(user), ALONE);
    await first.text();
    const home = first.headers.get("x-signalbox-backend");
    await waitFor("the primary knows it", async () => {
      const { entries } = await read<{ entries: number }>(gateway, "/admin/kv-index");
      const hasLearnt = entries > known;
      known = entries;
      return hasLearnt;
    });
    // The answer waits for all workers, which have got what was learnt before.
    await read(gateway, "/admin/kv-index");
    for (const backend of await askAll(gateway, prompt(user))) expect(backend).toBe(home);
  }
  const view = await read<{ entries: number; hits: number; lookups: number }>(gateway, "/admin/kv-index");
  expect(view.lookups - view.hits).toBe(4);
  const { removed } = await read<{ removed: number }>(gateway, "/admin/kv-index", { method: "DELETE" });
  expect(removed).toBe(view.entries);
  await askAll(gateway, prompt("ann"));
  const after = await read<{ hits: number; lookups: number }>(gateway, "/admin/kv-index");
  // Whoever asked first found nothing, whichever worker that was.
  expect(after.lookups - after.hits).toBeGreaterThanOrEqual(5);
  await gateway.close();
});

test("a worker that begins knows what the others have learnt", async () => {
  const { gateway } = await start(4, { kv_cache_index: { enabled: true } });
  const body = { messages: [{ role: "user", content: "again ".repeat(400) }] };
  const first = await gateway.chat(body, ALONE);
  await first.text();
  expect((await gateway.fetch("/admin/workers/restart", { ...ALONE, method: "POST" })).status).toBe(200);
  for (const backend of await askAll(gateway, body)) expect(backend).toBe(first.headers.get("x-signalbox-backend"));
  const view = await read<{ hits: number; lookups: number }>(gateway, "/admin/kv-index");
  expect(view.lookups - view.hits).toBe(1);
  await gateway.close();
});

test("what is forgotten while a worker begins, that one does not know either", async () => {
  const { gateway } = await start(4, { kv_cache_index: { enabled: true } });
  const body = { messages: [{ role: "user", content: "again ".repeat(400) }] };
  await (await gateway.chat(body, ALONE)).text();
  const restarted = gateway.fetch("/admin/workers/restart", { ...ALONE, method: "POST" });
  await waitFor(
    "new workers begin",
    async () => {
      const { workers } = await read<{ workers: { state: string }[] }>(gateway, "/admin/workers");
      return workers.length > WORKERS;
    },
    { intervalMs: 1 },
  );
  const { removed } = await read<{ removed: number }>(gateway, "/admin/kv-index", { method: "DELETE" });
  expect(removed).toBeGreaterThan(0);
  expect((await restarted).status).toBe(200);
  const before = await read<{ hits: number; lookups: number }>(gateway, "/admin/kv-index");
  await (await gateway.chat(body, ALONE)).text();
  const after = await read<{ hits: number; lookups: number }>(gateway, "/admin/kv-index");
  expect(after.lookups - before.lookups).toBe(1);
  expect(after.hits).toBe(before.hits);
  await gateway.close();
});

test("a worker chooses by the requests in flight of all workers", async () => {
  const held = Promise.withResolvers<void>();
  const { gateway, backends } = await start(2, { routing: { selection_strategy: "LeastLatency" } });
  const [busy, free] = backends as [(typeof backends)[0], (typeof backends)[0]];
  for (const backend of backends) backend.answer = chat("hello");
  // Both are measured, by every worker.
  for (let round = 0; round < 4; round++) await askAll(gateway, {});
  for (const backend of backends) backend.reset({ ...chat("late"), headersAfter: held.promise });
  const pending: Promise<Response>[] = [];
  await waitFor("one of them has to wait", async () => {
    pending.push(gateway.chat({}, ALONE));
    await Bun.sleep(20);
    return busy.requests.length + free.requests.length >= 8;
  });
  await Bun.sleep(300);
  // What each worker knows of the whole is in the story of its next request.
  const before = busy.requests.length + free.requests.length;
  const probe = gateway.chat({}, ALONE);
  await waitFor("it is at a backend", () => busy.requests.length + free.requests.length > before);
  held.resolve();
  const answered = await probe;
  await answered.text();
  const id = answered.headers.get("x-signalbox-request-id") as string;
  const told = await read<{ steps: { candidates?: { in_flight: number }[] }[] }>(gateway, `/admin/requests/${id}`);
  const candidates = told.steps.flatMap(({ candidates = [] }) => candidates);
  expect(candidates.reduce((sum, { in_flight }) => sum + in_flight, 0)).toBe(before);
  for (const each of pending) expect((await each).status).toBe(200);
  await gateway.close();
});

test("identical requests share one call, whichever worker has them, and its story says whose", async () => {
  const gate = Promise.withResolvers<void>();
  const { gateway, backends } = await start(
    1,
    {},
    eventStream(chatEvents(["one", "two"]), {
      beforeChunk: () => gate.promise,
    }),
  );
  const body = { temperature: 0, stream: true };
  const asking = Array.from({ length: 16 }, () => gateway.chat(body, ALONE));
  await waitFor("all are under way", async () => {
    const { requests } = await read<{ requests: { status: number | null }[] }>(gateway, "/admin/requests?limit=50");
    return requests.length === 16;
  });
  gate.resolve();
  const answers = await Promise.all(asking);
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  expect(new Set(answers.map(workerOf)).size).toBe(WORKERS);
  expect(new Set(texts).size).toBe(1);
  expect(texts[0]).toContain("[DONE]");
  expect(backends[0]?.requests.length).toBe(1);
  const leaders = new Set<string>();
  for (const answer of answers) {
    const id = answer.headers.get("x-signalbox-request-id") as string;
    const { steps } = await read<{ steps: { type: string; leader?: string }[] }>(gateway, `/admin/requests/${id}`);
    leaders.add(steps.find(({ leader }) => leader !== undefined)?.leader ?? id);
  }
  expect(leaders.size).toBe(1);
  const stats = await read<{ overall: { total_requests: number } }>(gateway, "/admin/stats");
  expect(stats.overall.total_requests).toBe(16);
  await gateway.close();
});

test("an error that is shared is told in the words of one process", async () => {
  const { gateway, backends } = await start(1, { retry: { max_attempts: 1 } });
  const [backend] = backends as [FakeBackend];

  /** Whether a process has told an error of another one. */
  async function ask(content: string): Promise<boolean> {
    const gate = Promise.withResolvers<void>();
    backend.reset({ ...failure(400), headersAfter: gate.promise });
    const messages = [{ role: "user", content }];
    const asking = Array.from({ length: 16 }, () => gateway.chat({ temperature: 0, messages }, ALONE));
    await waitFor("all are under way", async () => {
      const { requests } = await read<{ requests: { finished: boolean }[] }>(gateway, "/admin/requests?limit=50");
      return requests.filter(({ finished }) => !finished).length === 16;
    });
    gate.resolve();
    const answers = await Promise.all(asking);
    expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(400));
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
    const ids = answers.map((answer) => answer.headers.get("x-signalbox-request-id") as string);
    const stories = await Promise.all(
      ids.map((id) => read<{ steps: { type: string; leader?: string }[] }>(gateway, `/admin/requests/${id}`)),
    );
    const shared = stories.flatMap(({ steps }, index) =>
      steps.flatMap(({ leader }) => (leader === undefined ? [] : [{ id: ids[index] as string, leader }])),
    );
    expect(shared.length + backend.requests.length).toBe(16);
    const processOf = (id: string) => id.split("-")[0];
    return shared.some(({ id, leader }) => processOf(id) !== processOf(leader));
  }

  // A request under way may reach the shared call after it has ended, and then makes one of its own.
  let isShared = false;
  for (let round = 0; round < 10 && !isShared; round++) isShared = await ask(`question ${round}`);
  expect(isShared).toBe(true);
  await gateway.close();
});
