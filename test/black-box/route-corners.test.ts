// Corners of routes: names that keys may use, answers that name their model oddly, what one vendor keeps, searches, and mirrors.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const hello = [{ role: "user", content: "Hello!" }];

/** Two models on two backends of their own. */
async function start(routes: ConfigDocument["routes"], more: Partial<ConfigDocument> = {}) {
  const main = bed.backend({ answer: chat("main", { model: "big-2026" }) });
  const trial = bed.backend({ answer: chat("trial", { model: "small-2026" }) });
  const gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [
        { name: "main", url: main.url, models: ["big"] },
        { name: "trial", url: trial.url, models: ["small"] },
      ],
      routes,
      ...more,
    },
  });
  return { main, trial, gateway };
}

describe("a key that may use a model", () => {
  const headers = { Authorization: "Bearer sk-sekret-corner" };
  const api_keys = (models: string[]): ConfigDocument["api_keys"] => ({
    mode: "blocking",
    keys: [{ id: "k", key: "sk-sekret-corner", models }],
  });

  test("may not use a route whose name begins with a backend of this model", async () => {
    const { gateway, main } = await start([{ name: "trial/*", targets: [{ model: "big" }] }], {
      api_keys: api_keys(["small"]),
    });
    expect((await gateway.chat({ model: "trial/small", messages: hello }, { headers })).status).toBe(403);
    expect(main.requests).toHaveLength(0);
  });

  test("of the same name as a route may not use the model behind it", async () => {
    const { gateway, main } = await start([{ name: "big", targets: [{ model: "small" }] }], {
      api_keys: api_keys(["big"]),
    });
    expect((await gateway.chat({ model: "big", messages: hello }, { headers })).status).toBe(200);
    expect((await gateway.chat({ model: "main/big", messages: hello }, { headers })).status).toBe(403);
    expect(main.requests).toHaveLength(0);
  });
});
