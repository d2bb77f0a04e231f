// A process that is killed under load: what its budgets have spent is what the vendor has billed, but for the last moment, and
// nothing twice.

import { expect, test } from "bun:test";
import type { RecordedRequest } from "../support/fake-backend.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 4);
/** What was settled within this time may be lost: SAVE_AFTER_MS of the ledger, and as much for a machine that is busy. */
const LOST_MS = 200;
const CLIENTS = 8;

const bed = createTestBed();
const backend = bed.backend();

test("after kills under load, what is spent is what was billed, but for the last moment before each", async () => {
  /** When each answer was on its way, and what it cost. */
  const billed: { atMs: number; cost: number }[] = [];
  backend.answer = (request: RecordedRequest) => {
    const { max_tokens } = request.json<{ max_tokens: number }>();
    billed.push({ atMs: performance.now(), cost: max_tokens });
    return chat("x", { usage: { prompt_tokens: 0, completion_tokens: max_tokens, total_tokens: max_tokens } });
  };
  const gateway = await bed.process({
    config: {
      health_checks: { enabled: false },
      retry: { max_attempts: 1 },
      backends: [
        {
          name: "one",
          url: backend.url,
          models: ["m"],
          model_configs: [{ id: "m", metadata: { pricing: { output_tokens: 1_000 } } }],
        },
      ],
      budgets: { rules: [{ id: "all", limit: { cost: 9_000_000 }, window: "month" }] },
    },
  });
  const lost: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    let isOver = false;
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let turn = 0; !isOver; turn++) {
        const response = await gateway
          .chat({ model: "m", max_tokens: 1 + ((turn + client) % 50) })
          .catch(() => undefined);
        await response?.text().catch(() => {});
      }
    });
    const wanted = billed.length + 200 + Math.floor(Math.random() * 200);
    await waitFor("requests are answered", () => billed.length >= wanted);
    const killedMs = performance.now();
    await gateway.stop("SIGKILL");
    isOver = true;
    await Promise.all(clients);
    lost.push(billed.filter(({ atMs }) => atMs > killedMs - LOST_MS).reduce((sum, { cost }) => sum + cost, 0));
    await gateway.restart();
    const response = await gateway.fetch("/admin/budgets/all");
    const { limits } = (await response.json()) as { limits: { spent: number }[] };
    const spent = limits[0]?.spent ?? 0;
    const total = billed.reduce((sum, { cost }) => sum + cost, 0);
    expect(spent).toBeLessThanOrEqual(total);
    expect(total - spent).toBeLessThanOrEqual(lost.reduce((sum, cost) => sum + cost, 0));
  }
});
