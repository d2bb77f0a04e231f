// The head of the overview says what is wrong, what came before it, and offers the next step.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser } from "../support/browser.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { chat, failure } from "../support/openai-answers.ts";

setDefaultTimeout(60_000);

let browser: Browser;
let gateway: ProcessGateway;
const sick = new FakeBackend({ models: ["m"], answer: failure(500) });

beforeAll(async () => {
  [browser, gateway] = await Promise.all([
    launchBrowser(),
    startGatewayProcess({
      config: {
        backends: [{ name: "gpu-1", url: sick.url, models: ["m"] }],
        circuit_breaker: { failure_threshold: 1, panic: false },
      },
    }),
  ]);
});

afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  await sick.stop();
});

test("an open circuit is told with the change before it, and reset from there", async () => {
  await gateway.fetch("/admin/config/retry", { method: "PATCH", body: '{"max_attempts": 1}' });
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] });
  await gateway.fetch("/v1/chat/completions", { method: "POST", body });
  const context = await browser.context();
  const { page, offences, barriers } = await browser.open(context, `${gateway.url}/dashboard#/overview`);
  const notice = page.locator(".notice", { hasText: "1 circuit not closed, since" });
  await notice.getByText(/Shortly before, .* changed retry \(version 2\)/).waitFor();
  expect(await barriers()).toEqual([]);
  sick.reset(chat("well again"));
  await page.getByRole("button", { name: "Reset the circuit of gpu-1" }).click();
  await page.getByRole("button", { name: "Reset", exact: true }).click();
  await page.locator(".notice.good", { hasText: "All is well" }).waitFor();
  // GET /admin/health is 503 while no backend can be asked.
  expect(offences.filter((offence) => !offence.includes("503"))).toEqual([]);
  await context.close();
});
