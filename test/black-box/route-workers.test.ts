// Routes with several processes: shares are those of all together, numbers are counted in one place, and a rollback reaches each.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const WORKERS = 3;

test("of all workers together targets get their shares, and a worse one none any more", async () => {
  const main = bed.backend({ answer: chat("main") });
  const trial = bed.backend({ answer: chat("trial") });
  const gateway = await bed.process({
    config: {
      server: { workers: WORKERS },
      admin: { auth: { method: "none" } },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      retry: { max_attempts: 1 },
      backends: [
        { name: "main", url: main.url, models: ["big"] },
        { name: "trial", url: trial.url, models: ["small"] },
      ],
      routes: [
        {
          name: "smart",
          sticky: "none",
          targets: [
            { model: "big", weight: 70 },
            { model: "small", weight: 30 },
          ],
          rollback: { metric: "error_rate", min_requests: 20 },
        },
      ],
    },
  });
  const admin = new AdminClient(gateway);
  async function ask(times: number): Promise<void> {
    const statuses = await Promise.all(
      Array.from({ length: times }, async () => {
        // A connection of its own may reach any worker.
        const response = await gateway.chat({ model: "smart" }, { headers: { Connection: "close" } });
        await response.text();
        return response.status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  for (let round = 0; round < 10; round++) await ask(30);
  expect(Math.abs(trial.requests.length - 90)).toBeLessThanOrEqual(2 * WORKERS);
  expect(main.requests.length + trial.requests.length).toBe(300);

  interface Arm {
    weight: number;
    total_requests: number;
  }
  const arms = async () => (await admin.get("/admin/routes/smart")).arms as [Arm, Arm];
  await waitFor("every request is counted", async () => {
    const [big, small] = await arms();
    return big.total_requests + small.total_requests === 300;
  });

  trial.reset(failure(500));
  await waitFor("the trial has weight 0", async () => {
    await ask(30);
    return (await arms())[1].weight === 0;
  });
  await waitFor("no worker asks it any more", async () => {
    const before = trial.requests.length;
    await ask(60);
    return trial.requests.length === before;
  });
});
