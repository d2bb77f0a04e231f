// A thousand requests for a route while its targets fail, get other weights and are removed: no request is lost, and the shares are
// those that are told.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Responder } from "../support/fake-backend.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const MODELS = ["a", "b", "c"] as const;
const AT_ONCE = 16;

/** Every seventh request fails in one of three ways; none is answered while it is held. */
function unreliable(held: { until: Promise<void> | undefined }): Responder {
  let count = 0;
  return async (request) => {
    count++;
    await held.until;
    if (count % 7 === 0) return failure(503);
    if (count % 11 === 0) return { breakWith: "reset" };
    const { model, stream } = request.json<{ model: string; stream?: boolean }>();
    return stream === true ? chatStream(["hel", "lo"], { model }) : chat("hello", { model });
  };
}

test("no request of a thousand is lost, and shares are within 1 % of what is told", async () => {
  const held: { until: Promise<void> | undefined } = { until: undefined };
  const backends = MODELS.map(() => bed.backend({ answer: unreliable(held) }));
  const weighted = (weights: readonly number[]) => ({
    targets: MODELS.flatMap((model, index) =>
      weights[index] === undefined ? [] : [{ model, weight: weights[index] }],
    ),
  });
  const gateway = await bed.gateway({
    config: {
      admin: { auth: { method: "none" } },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      retry: { max_attempts: 1 },
      // The last resort of the last target, so that two failures in a row lose nothing.
      fallback: { fallback_chains: { a: ["steady"], b: ["steady"], c: ["steady"] } },
      backends: [
        ...MODELS.map((model, index) => ({ name: model, url: backends[index]!.url, models: [model] })),
        { name: "steady", type: "demo" as const, models: ["steady"] },
      ],
      routes: [{ name: "smart", sticky: "none" as const, ...weighted([80, 15, 5]) }],
    },
  });
  const admin = new AdminClient(gateway);
  const received = () => backends.reduce((sum, backend) => sum + backend.requests.length, 0);

  const chosen = new Map<string, number>();
  async function ask(index: number): Promise<void> {
    const stream = index % 3 === 0;
    const messages = [{ role: "user", content: `question ${index}` }];
    const response = await gateway.chat({ model: "smart", messages, stream });
    const text = await response.text();
    expect({ status: response.status, text: response.status === 200 ? "" : text }).toEqual({ status: 200, text: "" });
    if (stream) expect(text).toEndWith("data: [DONE]\n\n");
    expect(text).toContain('"model":"smart"');
    // The target that was chosen first, whichever has answered.
    const first = response.headers.get("x-original-model") ?? response.headers.get("x-signalbox-arm") ?? "none";
    chosen.set(first, (chosen.get(first) ?? 0) + 1);
  }

  let asked = 0;
  async function askMany(count: number): Promise<void> {
    const end = asked + count;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (asked < end) await ask(asked++);
      }),
    );
  }

  /** Changes the targets while requests for the former ones are under way. */
  async function changeUnderWay(weights: readonly number[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.until = promise;
    const before = received();
    const running = Array.from({ length: AT_ONCE }, () => ask(asked++));
    await waitFor("they are under way", () => received() - before >= AT_ONCE);
    await admin.ok("PUT", "/admin/routes/smart", weighted(weights));
    held.until = undefined;
    resolve();
    await Promise.all(running);
  }

  function expectShares(weights: readonly number[]): void {
    const total = [...chosen.values()].reduce((sum, count) => sum + count, 0);
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    const shares = MODELS.map((model) => (chosen.get(model) ?? 0) / total);
    for (const [index, share] of shares.entries()) {
      expect(Math.abs(share - (weights[index] ?? 0) / all)).toBeLessThanOrEqual(0.01);
    }
    chosen.clear();
  }

  await askMany(300 - AT_ONCE);
  await changeUnderWay([20, 60, 20]);
  expectShares([80, 15, 5]);
  await askMany(300 - AT_ONCE);
  await changeUnderWay([50, 50]);
  expectShares([20, 60, 20]);
  await askMany(400);
  expectShares([50, 50]);
  expect(asked).toBe(1_000);
});
