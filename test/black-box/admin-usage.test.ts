// GET /admin/usage: who has used what and what it costs, as JSON and as CSV, also after a restart.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
/** A model that a spreadsheet would calculate, and a comma. */
const TRAP = '=SUM(A1,"x")';

type Row = Record<string, string | number>;

async function start() {
  const [one, two] = [bed.backend({ answer: chat("x") }), bed.backend({ answer: chat("x") })];
  const gateway = await bed.gateway({
    config: {
      backends: [
        {
          name: "one",
          type: "vllm",
          url: one.url,
          models: ["m"],
          model_configs: [{ id: "m", metadata: { pricing: { input_tokens: 1, output_tokens: 10 } } }],
        },
        { name: "two", type: "vllm", url: two.url, models: [TRAP] },
      ],
      api_keys: {
        keys: [
          { id: "k1", key: "sekret-1", user_id: "ann", organization_id: "north" },
          { id: "k2", key: "sekret-2", user_id: "bob", organization_id: "north" },
        ],
      },
    },
  });
  const ask = async (model: string, key?: string) => {
    const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    expect((await (await gateway.chat({ model }, { headers })).text()).length).toBeGreaterThan(0);
  };
  await ask("m", "sekret-1");
  await ask("m", "sekret-1");
  await ask("m", "sekret-2");
  await ask(TRAP);
  return { gateway, admin: new AdminClient(gateway) };
}

/** Of one request: 3 tokens read, 2 written. */
const sums = (requests: number, isPriced = true) => ({
  requests,
  prompt_tokens: 3 * requests,
  completion_tokens: 2 * requests,
  cached_tokens: 0,
  cost: isPriced ? (requests * 23) / 1000 : 0,
});

test("usage by each name, by several at once, in a time, and after a restart", async () => {
  const { gateway, admin } = await start();
  const today = new Date().toISOString().slice(0, 10);
  const expected: Record<string, Row[]> = {
    key: [
      { key_id: "k1", ...sums(2) },
      { key_id: "k2", ...sums(1) },
      { key_id: "(none)", ...sums(1, false) },
    ],
    user: [
      { user_id: "ann", ...sums(2) },
      { user_id: "bob", ...sums(1) },
      { user_id: "(none)", ...sums(1, false) },
    ],
    organization: [
      { organization_id: "north", ...sums(3) },
      { organization_id: "(none)", ...sums(1, false) },
    ],
    model: [
      { model_id: "m", ...sums(3) },
      { model_id: TRAP, ...sums(1, false) },
    ],
    backend: [
      { backend_name: "one", ...sums(3) },
      { backend_name: "two", ...sums(1, false) },
    ],
    day: [{ day: today, ...sums(4, false), cost: 0.069 }],
    "day,user,model": [
      { day: today, user_id: "ann", model_id: "m", ...sums(2) },
      { day: today, user_id: "bob", model_id: "m", ...sums(1) },
      { day: today, user_id: "(none)", model_id: TRAP, ...sums(1, false) },
    ],
  };
  async function check(): Promise<void> {
    for (const [by, rows] of Object.entries(expected)) {
      expect(await admin.get(`/admin/usage?by=${by}&window=24h`)).toEqual({
        by: by.split(","),
        currency: "USD",
        unpriced_models: ['=SUM(A1,"x")'],
        since: expect.any(String),
        until: null,
        total: { ...sums(4, false), cost: 0.069 },
        rows,
      });
    }
    expect(await admin.get("/admin/usage")).toMatchObject({ by: ["key"], since: null, until: null });
    for (const window of ["today", "this_week", "this_month"]) {
      expect(await admin.get(`/admin/usage?window=${window}`)).toMatchObject({ total: { requests: 4, cost: 0.069 } });
    }
    const today = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
    expect(await admin.get(`/admin/usage?since=${today}`)).toMatchObject({ total: { requests: 4 } });
    const nothing = await admin.get("/admin/usage?since=2020-01-01T00:00:00Z&until=2020-02-01T00:00:00Z");
    expect(nothing).toMatchObject({ since: "2020-01-01T00:00:00.000Z", rows: [], total: { requests: 0, cost: 0 } });
  }
  await check();
  await gateway.restart();
  await check();
  // The same as the costs, which say it in another shape.
  const { total_cost, rows } = await admin.get("/admin/stats/costs?by=user");
  expect({ total_cost, rows }).toEqual({ total_cost: 0.069, rows: expected.user });
});

test("as a table for a spreadsheet, in which nothing is calculated", async () => {
  const { gateway } = await start();
  const response = await gateway.fetch("/admin/usage?by=model,key&format=csv");
  expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8; header=present");
  expect(response.headers.get("content-disposition")).toMatch(
    /^attachment; filename="signalbox-usage-by-model-key-\d{4}-\d\d-\d\d\.csv"$/,
  );
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(await response.text()).toBe(
    [
      "model_id,key_id,requests,prompt_tokens,completion_tokens,cached_tokens,cost",
      "m,k1,2,6,4,0,0.046",
      "m,k2,1,3,2,0,0.023",
      '"\'=SUM(A1,""x"")",(none),1,3,2,0,0',
      "",
    ].join("\r\n"),
  );
});

test("what makes no sense is refused with its name", async () => {
  const { admin } = await start();
  for (const [query, param] of [
    ["by=hour", "by"],
    ["by=key,key", "by"],
    ["by=key,user,model,day", "by"],
    ["by=", "by"],
    ["format=xls", "format"],
    ["window=2h", "window"],
    ["window=1h&since=0", "window"],
    ["since=yesterday", "since"],
  ] as const) {
    expect((await admin.refused(400, "GET", `/admin/usage?${query}`)).param).toBe(param);
  }
  expect((await admin.refused(400, "GET", "/admin/stats/costs?by=key,model")).param).toBe("by");
});
