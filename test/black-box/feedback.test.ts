// Feedback from outside: who may rate which answer, and where the score is seen.

import { beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { ask, ownIdOf, recordingConfig } from "../support/recordings.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("hello") });

const config = {
  ...recordingConfig(backend, { enabled: false }),
  routes: [{ name: "smart", targets: [{ model: "m", name: "main" }] }],
};

let gateway: Gateway;
let admin: AdminClient;

beforeAll(async () => {
  gateway = await bed.gateway({ config });
  admin = new AdminClient(gateway);
});

async function rate(body: unknown, key?: string, from: Pick<Gateway, "fetch"> = gateway) {
  const response = await from.fetch("/v1/feedback", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key !== undefined && { Authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function asked(model: string, key?: string, from = gateway): Promise<string> {
  const response = await ask(from, "Hello!", { model }, key);
  await response.text();
  return ownIdOf(response);
}

const armOf = async () => {
  const { arms } = (await admin.get("/admin/routes/smart")) as { arms: { name: string; feedback: unknown }[] };
  return arms.find(({ name }) => name === "main")?.feedback;
};

describe("feedback", () => {
  test("by the id that a client chose is for its own request, whoever else chose the same", async () => {
    const headers = { "X-Request-ID": "the-same-for-all" };
    const first = ownIdOf(await ask(gateway, "Hello!", {}, "ann-sekret", headers));
    await ask(gateway, "Hello!", {}, "bob-sekret", headers);
    expect(await rate({ request_id: "the-same-for-all", score: 1 }, "ann-sekret")).toMatchObject({
      status: 201,
      body: { request_id: first },
    });
  });

  test("is taken while others guess ids", async () => {
    const id = await asked("m", "ann-sekret");
    const guesses = Array.from({ length: 100 }, (_, guess) =>
      rate({ request_id: `guess-${guess}`, score: 1 }, "bob-sekret"),
    );
    expect((await rate({ request_id: id, score: 1 }, "ann-sekret")).status).toBe(201);
    for (const { status } of await Promise.all(guesses)) expect(status).toBe(404);
  });

  test.each([
    ["no UTF-8", Buffer.from('{"request_id":"x","score":1,"comment":"\xff"}', "latin1"), "UTF-8"],
    ["a member twice", '{"request_id":"x","score":0,"score":1}', "more than once"],
    [
      "metadata 300 deep",
      `{"request_id":"x","score":1,"metadata":{"a":${"[".repeat(300)}${"]".repeat(300)}}}`,
      "deeper",
    ],
  ])("of %s is refused as any other body", async (_, body, reason) => {
    const headers = { Authorization: "Bearer ann-sekret" };
    const response = await gateway.fetch("/v1/feedback", { method: "POST", headers, body });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(reason)]);
  });

  test("is given by the key that asked, and by no other", async () => {
    const id = await asked("m", "ann-sekret");
    const given = { request_id: id, score: 0.75, comment: "The Kiwi was wrong.", metadata: { page: 3 } };
    for (const key of ["bob-sekret", undefined]) {
      expect(await rate(given, key)).toMatchObject({ status: 404, body: { error: { param: "request_id" } } });
    }
    expect(await rate(given, "ann-sekret")).toMatchObject({
      status: 201,
      body: { object: "feedback", request_id: id, score: 0.75 },
    });
    const { feedback } = await admin.get(`/admin/feedback?request=${id}`);
    expect(feedback).toEqual([
      {
        ...{ request: id, key_id: "ann", user_id: "ann", model: "m", route: null, arm: null, at: expect.any(String) },
        ...{ score: 0.75, comment: "The Kiwi was wrong.", metadata: { page: 3 } },
      },
    ]);
    expect(String(gateway.printed)).not.toContain("Kiwi");
    const unnamed = await asked("m");
    expect((await rate({ request_id: unnamed, score: 0 }, "ann-sekret")).status).toBe(404);
    expect((await rate({ request_id: unnamed, score: 0 })).status).toBe(201);
  });

  test("is counted for the target of a route; a second one replaces the first", async () => {
    const first = await asked("smart", "ann-sekret");
    const second = await asked("smart", "ann-sekret");
    await rate({ request_id: first, score: 1 }, "ann-sekret");
    await rate({ request_id: second, score: 1 }, "ann-sekret");
    expect(await armOf()).toEqual({ count: 2, mean_score: 1 });
    await rate({ request_id: second, score: 0 }, "ann-sekret");
    expect(await armOf()).toEqual({ count: 2, mean_score: 0.5 });
    const arms = [{ route: "smart", arm: "main", count: 2, mean_score: 0.5 }];
    expect(await admin.get("/admin/feedback?route=smart&arm=main")).toMatchObject({ arms, feedback: [{}, {}] });
    const metrics = await (await gateway.fetch("/metrics")).text();
    expect(metrics).toContain('signalbox_route_feedback_total{route="smart",arm="main"} 3');
    await gateway.restart();
    await waitFor("the scores are known again", async () =>
      Bun.deepEquals(await armOf(), { count: 2, mean_score: 0.5 }),
    );
  });

  test.each([
    [{ score: 1 }, "request_id"],
    [{ request_id: "x" }, "score"],
    [{ request_id: "x", score: 2 }, "score"],
    [{ request_id: "x", score: "good" }, "score"],
    [{ request_id: "x", score: 1, comment: "x".repeat(4_001) }, "comment"],
    [{ request_id: "x", score: 1, metadata: { text: "x".repeat(4_001) } }, "metadata"],
    [{ request_id: "x", score: 1, metadata: [] }, "metadata"],
    [{ request_id: "x", score: 1, stars: 5 }, "stars"],
  ])("%j is refused", async (body, param) => {
    expect(await rate(body, "ann-sekret")).toMatchObject({ status: 400, body: { error: { param } } });
  });

  test("goes away with the recordings of its key", async () => {
    const id = await asked("m", "bob-sekret");
    await rate({ request_id: id, score: 1 }, "bob-sekret");
    await admin.ok("DELETE", "/admin/recordings?key=bob");
    expect(await admin.get("/admin/feedback?key=bob")).toMatchObject({ feedback: [] });
    expect((await admin.get("/admin/feedback?key=ann")).feedback).not.toEqual([]);
  });

  test("reaches the primary through every worker", async () => {
    const process = await bed.process({ config: { ...config, server: { bind_address: "127.0.0.1:0", workers: 2 } } });
    const id = await asked("m", "ann-sekret", process);
    expect((await rate({ request_id: id, score: 1 }, "ann-sekret", process)).status).toBe(201);
    const { feedback } = await new AdminClient(process).get("/admin/feedback");
    expect(feedback).toMatchObject([{ request: id, score: 1 }]);
  });
});
