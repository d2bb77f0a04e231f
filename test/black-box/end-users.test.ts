// The user that a request names: kept with its story, its error, its log line and its tokens, unless that is switched off.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("x") });
const gateway = await bed.process({
  config: {
    server: { workers: 2 },
    backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
    api_keys: {
      keys: [
        { id: "named", key: "sekret-named", user_id: "owner", organization_id: "org-1" },
        { id: "plain", key: "sekret-plain", organization_id: "org-1" },
      ],
    },
    retry: { max_attempts: 1 },
    circuit_breaker: { enabled: false },
  },
});
const admin = new AdminClient(gateway);
const MESSAGES = [{ role: "user", content: "Hello!" }];

type Row = Record<string, unknown>;

/** The story of a request that is over, and its line in the log. */
async function asked(path: string, body: object, key?: string): Promise<{ story: Row; line: Row }> {
  const response = await gateway.fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key !== undefined && { Authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ model: "m", ...body }),
  });
  await response.text();
  const id = response.headers.get("x-signalbox-request-id");
  const story = await waitFor("the story is told", async () => {
    const { requests } = (await admin.get(`/admin/requests?id=${id}`)) as { requests: Row[] };
    return requests.find(({ finished }) => finished === true);
  });
  const line = await waitFor("the line is written", () => gateway.printed.logEntries.find((entry) => entry.id === id));
  return { story, line };
}

async function usersOf(query = "by=user"): Promise<Record<string, unknown>> {
  const { rows } = (await admin.get(`/admin/usage?${query}`)) as { rows: Row[] };
  return Object.fromEntries(rows.map(({ user_id, requests }) => [user_id, requests]));
}

test.each([
  ["user", "/v1/chat/completions", { messages: MESSAGES, user: "ada" }, "ada"],
  ["safety_identifier", "/v1/chat/completions", { messages: MESSAGES, safety_identifier: "bob" }, "bob"],
  ["Responses", "/v1/responses", { input: "Hello!", safety_identifier: "cleo" }, "cleo"],
  ["Messages", "/v1/messages", { max_tokens: 9, messages: MESSAGES, metadata: { user_id: "dan" } }, "dan"],
  ["a long one", "/v1/chat/completions", { messages: MESSAGES, user: "e".repeat(5_000) }, "e".repeat(256)],
])("is read from the request: %s", async (_name, path, body, user) => {
  const { story, line } = await asked(path, body, "sekret-plain");
  expect(story).toMatchObject({ user_id: user, organization_id: "org-1", key_id: "plain", outcome: "succeeded" });
  expect(line).toMatchObject({ user, organization: "org-1", key: "plain" });
});

test("its key names it first; lists, errors and usage go by the name", async () => {
  expect(
    (await asked("/v1/chat/completions", { messages: MESSAGES, user: "eve" }, "sekret-named")).story,
  ).toMatchObject({
    user_id: "owner",
  });
  const { total } = (await admin.get("/admin/requests?user=owner&organization=org-1")) as { total: number };
  expect(total).toBe(1);
  expect(await usersOf()).toMatchObject({ owner: 1, ada: 1, bob: 1, cleo: 1, dan: 1 });
  backend.answer = failure(503);
  const { story } = await asked("/v1/chat/completions", { messages: MESSAGES, user: "fay" });
  backend.answer = chat("x");
  expect(await admin.get(`/admin/errors/${story.id}`)).toMatchObject({ user_id: "fay", key_id: null });
});

test("metrics.by_key leaves the metrics of keys out from now on", async () => {
  const counted = async () => {
    const text = await (await gateway.fetch("/metrics")).text();
    return /signalbox_key_requests_total\{key="plain",organization="org-1",outcome="succeeded"\} (\d+)/.exec(text)?.[1];
  };
  await waitFor("they are counted", async () => (await counted()) === "5");
  await admin.ok("PATCH", "/admin/config/metrics", { by_key: false });
  await asked("/v1/chat/completions", { messages: MESSAGES }, "sekret-plain");
  expect(await counted()).toBe("5");
});

test("telemetry.record_user false leaves it out everywhere, and what keys name in", async () => {
  await admin.ok("PATCH", "/admin/config/telemetry", { record_user: false });
  const { story, line } = await asked("/v1/chat/completions", { messages: MESSAGES, user: "grace" }, "sekret-plain");
  expect([story.user_id, line.user]).toEqual([null, undefined]);
  expect((await asked("/v1/chat/completions", { messages: MESSAGES, user: "x" }, "sekret-named")).story.user_id).toBe(
    "owner",
  );
  expect(await usersOf()).toMatchObject({ owner: 2 });
  const told = [await admin.get("/admin/requests?limit=1000"), await admin.get("/admin/usage?by=user,key")];
  expect(JSON.stringify(told)).not.toContain("grace");
});
