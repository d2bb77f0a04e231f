// Requests are found after a restart and after many further ones, whatever happens to the file that keeps them.

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const KEYS = [
  { id: "team-b", key: "sekret-b", user_id: "bea", organization_id: "north" },
  { id: "team-c", key: "sekret-c", organization_id: "south" },
];
const PROMPT = "what nobody may read";

type Row = Record<string, unknown> & { id: string };

async function ask(gateway: ProcessGateway, key: string, body: Record<string, unknown> = {}): Promise<string> {
  const response = await gateway.chat(
    { messages: [{ role: "user", content: PROMPT }], ...body },
    { headers: { Authorization: `Bearer ${key}` } },
  );
  await response.text();
  return response.headers.get("x-signalbox-request-id") as string;
}

function twoBackends() {
  const [bad, good] = [
    bed.backend({ answer: failure(503, `cannot read '${PROMPT}'`) }),
    bed.backend({ answer: chat("an answer") }),
  ];
  return {
    backends: [
      { name: "gpu-1", type: "vllm" as const, url: bad.url, models: ["m"], weight: 1 },
      { name: "gpu-2", type: "vllm" as const, url: good.url, models: ["m"], weight: 0 },
    ],
    circuit_breaker: { enabled: false },
    retry: { base_delay: "1ms" },
    api_keys: { mode: "blocking" as const, keys: KEYS },
  };
}

const idsIn = async (admin: AdminClient, query: string): Promise<string[]> => {
  return ((await admin.get(`/admin/requests?${query}`)).requests as Row[]).map(({ id }) => id);
};

test("a request, its steps and the groups of refusals are told after a restart, without what they were about", async () => {
  const gateway = await bed.process({ config: twoBackends() });
  const admin = new AdminClient(gateway);
  const slow = await ask(gateway, "sekret-b");
  const others: string[] = [];
  for (let index = 0; index < 5; index++) others.push(await ask(gateway, "sekret-c", { model: "gpt-4o" }));
  const story = await waitFor("it is over", async () => {
    const told = await admin.get(`/admin/requests/${slow}`);
    return told.finished === true && told;
  });
  expect(story).toMatchObject({ steps: { length: 2 }, key_id: "team-b", user_id: "bea", organization_id: "north" });
  const listed = await admin.get("/admin/requests");
  const [first] = (listed.requests as Row[]).slice(-1);

  await gateway.restart();
  const kept = (await admin.get(`/admin/requests/${slow}`)) as typeof story & { steps: Row[] };
  expect(kept).toEqual({ ...story, summary: kept.summary, explanation: kept.explanation, steps: kept.steps });
  // What the backend said may quote the prompt.
  expect(kept.steps.map(({ detail: _, text: __, ...step }) => step)).toEqual(
    (story.steps as Row[]).map(({ detail: _, text: __, ...step }) => step),
  );
  expect(kept.steps[0]?.text).toStartWith("gpu-1 was overloaded or not ready (status 503);");
  expect(await admin.get("/admin/requests")).toEqual(listed);
  expect(await idsIn(admin, `until=${first?.started_at}`)).toEqual([]);
  expect(await idsIn(admin, "user=bea&sort=duration")).toEqual([slow]);
  expect(await idsIn(admin, "backend=gpu-1")).toEqual([slow]); // of an attempt that was not the last one
  const expected = {
    status: 404,
    code: "model_not_found",
    key_id: "team-c",
    model: "gpt-4o",
    count: 5,
    example_id: others.at(-1),
  };
  expect(await admin.get("/admin/errors/groups?by=status,code,key,model")).toMatchObject({
    groups: [expected],
    total: 5,
    omitted: 0,
    searched_since: null,
  });
  const { groups } = await admin.get("/admin/requests/groups?by=organization");
  expect(groups).toMatchObject([
    { organization_id: "south", count: 5 },
    { organization_id: "north", count: 1 },
  ]);

  // Further requests join those before the restart, each of them once.
  const later = await ask(gateway, "sekret-b");
  await waitFor("it is listed", async () => (await idsIn(admin, "limit=1"))[0] === later);
  expect(await idsIn(admin, "")).toEqual([later, ...others.toReversed(), slow]);

  expect(await gateway.stop()).toBe(0);
  const data = join(gateway.folder, "data");
  const written = Buffer.concat(
    readdirSync(data)
      .filter(isOfRequests)
      .map((name) => readFileSync(join(data, name))),
  );
  expect(written.length).toBeGreaterThan(0);
  for (const secret of ["sekret", PROMPT, "an answer"]) expect(written.includes(secret)).toBe(false);
});

const isOfRequests = (name: string): boolean => name.startsWith("requests.db");

function chunksIn(path: string): number | undefined {
  if (!existsSync(path)) return undefined;
  const database = new Database(path, { readonly: true });
  try {
    return database.query<{ count: number }, []>("SELECT count(*) AS count FROM chunks").get()?.count;
  } catch {
    return undefined; // the table is not there yet
  } finally {
    database.close();
  }
}

test("what was told a second before a kill is found; a broken file is set aside, and then the next requests are", async () => {
  const backend = bed.backend({ answer: chat("x") });
  const config = { backends: [{ name: "a", type: "vllm" as const, url: backend.url, models: ["m"] }] };
  const gateway = await bed.process({ config });
  const admin = new AdminClient(gateway);
  const id = await ask(gateway, "");
  const path = join(gateway.folder, "data", "requests.db");
  await waitFor("it is written", () => chunksIn(path) === 1);
  gateway.process.kill("SIGKILL");
  await gateway.process.finished();
  await gateway.restart();
  expect(await admin.get(`/admin/requests/${id}`)).toMatchObject({ id, status: 200, backend: "a" });

  await gateway.stop();
  for (const name of readdirSync(join(gateway.folder, "data")).filter(isOfRequests)) {
    rmSync(join(gateway.folder, "data", name));
  }
  writeFileSync(path, "no database ".repeat(1_000));
  await gateway.restart();
  const next = await ask(gateway, "");
  await waitFor("it is set aside", () => existsSync(`${path}.broken`));
  await gateway.stop();
  expect(gateway.printed.stderr).toContain("the log of requests is broken; it was set aside as .broken");
  await gateway.restart();
  expect(await admin.get(`/admin/requests/${next}`)).toMatchObject({ id: next, status: 200 });
});

test("with workers, the primary writes what all of them have answered; switched off, nothing is written", async () => {
  const backend = bed.backend({ answer: chat("x") });
  const config = { backends: [{ name: "a", type: "vllm" as const, url: backend.url, models: ["m"] }] };
  const gateway = await bed.process({ config: { ...config, server: { workers: 2 } } });
  const admin = new AdminClient(gateway);
  const ids = await Promise.all(Array.from({ length: 20 }, () => ask(gateway, "")));
  await gateway.restart();
  expect((await idsIn(admin, "limit=100")).toSorted()).toEqual(ids.toSorted());
  gateway.writeConfig({ ...config, admin: { requests: { enabled: false } } });
  await gateway.restart();
  const id = await ask(gateway, "");
  await waitFor("it is over", async () => (await admin.get(`/admin/requests/${id}`)).finished);
  expect(await idsIn(admin, "")).toEqual([id]);
});
