// What the holder of a key sees of its own usage and requests, and that it sees nothing of anyone else (docs/api.md).

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();

const pricing = { input_tokens: 1, output_tokens: 10 };
/** Two of one organization, and ids that look alike. */
const IDS = ["a", "A", "a ", "a*", "*", "ab", "(none)", "(other)", "%", "key_id", "__proto__"];
const keys = IDS.map((id, index) => ({ key: `sekret-number-${index}`, id, organization_id: "sales", user_id: "u" }));
const config = {
  health_checks: { enabled: false },
  backends: [
    {
      name: "the-backend",
      url: backend.url,
      models: ["m", "other"],
      model_configs: [{ id: "m", metadata: { pricing } }],
    },
  ],
  api_keys: { keys },
} as ConfigDocument;

const bearer = (id: string) => ({ headers: { Authorization: `Bearer sekret-number-${IDS.indexOf(id)}` } });

interface Usage {
  total: { requests: number; cost: number };
  rows: Record<string, unknown>[];
}
interface Requests {
  requests: Record<string, unknown>[];
  next_cursor: string | null;
}

async function ask<Answer>(gateway: Gateway, path: string, id: string): Promise<Answer> {
  const response = await gateway.fetch(path, bearer(id));
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

async function started(): Promise<Gateway> {
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
  backend.reset();
  backend.answer = chat("x", { usage });
  return await bed.gateway({ config });
}

const seen = async (gateway: Gateway, id: string) =>
  (await ask<Requests>(gateway, "/v1/me/requests", id)).requests.map(({ request_id }) => request_id);

const send = async (gateway: Gateway, id: string, trace: string, model = "m") => {
  const { headers } = bearer(id);
  const response = await gateway.chat({ model }, { headers: { ...headers, "X-Request-ID": trace } });
  await response.text();
  expect(response.status).toBe(200);
};

test("each key sees its own rows, whatever the ids look like, and those without a key are of none", async () => {
  const gateway = await started();
  await (await gateway.chat({ model: "m" })).text();
  for (const [index, id] of IDS.entries()) {
    for (let count = 0; count <= index; count++) await send(gateway, id, `of-${index}`);
  }
  await waitFor("all are counted", async () => {
    const last = IDS.at(-1) as string;
    return (await ask<Usage>(gateway, "/v1/me/usage", last)).total.requests === IDS.length;
  });
  for (const [index, id] of IDS.entries()) {
    expect(await seen(gateway, id)).toEqual(Array(index + 1).fill(`of-${index}`));
    const { total, rows } = await ask<Usage>(gateway, "/v1/me/usage?by=model,day", id);
    const isShared = id === "(none)" || id === "(other)";
    expect(total.requests).toBe(isShared ? 0 : index + 1);
    if (!isShared) expect(rows).toMatchObject([{ model_id: "m", requests: index + 1, prompt_tokens: 5 * (index + 1) }]);
  }
});

test("a request is told with its attempts, and without the backend, the client or other names", async () => {
  const gateway = await started();
  backend.queue({ status: 503, body: "sekret words of the backend" });
  await send(gateway, "a", "mine");
  const { requests } = await ask<Requests>(gateway, "/v1/me/requests", "a");
  expect(requests).toMatchObject([
    {
      request_id: "mine",
      model: "m",
      status: 200,
      outcome: "succeeded",
      prompt_tokens: 5,
      completion_tokens: 3,
      cost: 0.035,
      cached: false,
      attempts: [
        { model: "m", outcome: "failed", status: 503 },
        { model: "m", outcome: "succeeded", status: 200 },
      ],
    },
  ]);
  const told = JSON.stringify(requests);
  for (const hidden of ["the-backend", backend.url, "sekret", "127.0.0.1", "sales"]) expect(told).not.toContain(hidden);
});

test("pages follow each other, and windows and models choose", async () => {
  const gateway = await started();
  for (let index = 0; index < 5; index++) {
    await send(gateway, "a", `a-${index}`, index === 4 ? "other" : "m");
    await send(gateway, "ab", `ab-${index}`);
  }
  const ids: unknown[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const more = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: Requests = await ask(gateway, `/v1/me/requests?limit=2${more}`, "a");
    ids.push(...page.requests.map(({ request_id }) => request_id));
    cursor = page.next_cursor;
  }
  expect(ids).toEqual(["a-4", "a-3", "a-2", "a-1", "a-0"]);
  const others = await ask<Requests>(gateway, "/v1/me/requests?model=other&window=1h", "a");
  expect(others.requests.map(({ request_id }) => request_id)).toEqual(["a-4"]);
  const byModel = await ask<Usage>(gateway, "/v1/me/usage?window=24h", "a");
  expect(byModel.rows.map(({ model_id, requests }) => [model_id, requests])).toEqual([
    ["m", 4],
    ["other", 1],
  ]);
  expect((await ask<Usage>(gateway, "/v1/me/usage?until=2020-01-01", "a")).total.requests).toBe(0);
});

test("what asks for others is refused", async () => {
  const gateway = await started();
  for (const path of [
    "usage?key=ab",
    "usage?by=key",
    "usage?by=organization",
    "requests?key=ab",
    "requests?cursor=x",
  ]) {
    await expectError(await gateway.fetch(`/v1/me/${path}`, bearer("a")), 400);
  }
  for (const path of ["usage", "requests"]) {
    await expectError(await gateway.fetch(`/v1/me/${path}`), 401);
    await expectError(await gateway.fetch(`/v1/me/${path}`, { headers: { Authorization: "Bearer wrong" } }), 401);
  }
});
