// The page of batches in a real Chromium: how far they are, what they cost, and how one is cancelled, by whoever may.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, type WatchedPage } from "../support/browser.ts";
import { BUSY_KEYS, type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";
import { chat } from "../support/openai-answers.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const OPERATOR = "sekret-operator-token";
const VIEWER = "sekret-viewer-token";

let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  const auth = {
    method: "bearer_token" as const,
    tokens: [
      { name: "olga", token: OPERATOR, role: "operator" as const },
      { name: "vera", token: VIEWER, role: "viewer" as const },
    ],
  };
  [busy, browser] = await Promise.all([startBusyGateway({ port: await freePort(), auth }), launchBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

async function created(model: string, requests: number): Promise<string> {
  const params = (index: number) => ({
    ...{ model, max_tokens: 16 },
    messages: [{ role: "user", content: `question ${index}` }],
  });
  const response = await busy.gateway.fetch("/v1/messages/batches", {
    method: "POST",
    headers: { "x-api-key": BUSY_KEYS[1] },
    body: JSON.stringify({
      requests: Array.from({ length: requests }, (_, index) => ({ custom_id: `${index}`, params: params(index) })),
    }),
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

async function signedIn(token: string): Promise<WatchedPage> {
  const watched = await browser.open(await browser.context(), `${busy.gateway.url}/dashboard#/batches`);
  await watched.page.getByLabel("Token").fill(token);
  await watched.page.getByRole("button", { name: "Sign in", exact: true }).click();
  await watched.page.getByRole("heading", { name: "Batches", exact: true }).waitFor();
  return watched;
}

async function expectClean({ page, offences }: WatchedPage): Promise<void> {
  expect(offences.filter((offence) => !/status of 40[13]/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

test("a batch shows its progress, and is cancelled after a question", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let count = 0;
  const slow = () => ({ ...chat("hello"), ...(++count > 4 && { headersAfter: promise }) });
  for (const backend of [busy.backends.fast, busy.backends.slow, busy.backends.broken]) backend.answer = slow;
  const done = await created("gpt-5-mini", 3);
  const id = await created("qwen3-32b", 40);
  await waitFor("as many requests as there may be are under way", () => count === 4 + 16);
  const watched = await signedIn(OPERATOR);
  const { page } = watched;
  await page
    .getByRole("row", { name: new RegExp(`^${done}.*gpt-5-mini organization:product completed 100 % of 3 3 0`) })
    .waitFor();
  const row = page.getByRole("row", { name: new RegExp(`^${id}`) });
  expect(await row.innerText()).toMatch(/in progress[\s\S]*10 % of 40[\s\S]*\/s[\s\S]*(?:min|s|h)\b/);
  expect(await watched.barriers()).toEqual([]);
  await page.getByRole("button", { name: `Cancel ${id}`, exact: true }).click();
  expect(await page.locator("dialog").innerText()).toContain(`/admin/batches/${id}/cancel`);
  await page.locator("dialog").getByRole("button", { name: "Cancel the batch" }).click();
  await page.getByRole("row", { name: new RegExp(`^${id}.*cancelled 100 % of 40 4 36`) }).waitFor();
  resolve();
  await page.setViewportSize({ width: 360, height: 800 });
  expect(
    await page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
  ).toBeLessThanOrEqual(0);
  await expectClean(watched);
  const headers = { Authorization: `Bearer ${OPERATOR}` };
  const audit = await busy.gateway.fetch(`/admin/batches/${id}`, { headers });
  expect(await audit.json()).toMatchObject({ id, status: "cancelled", total: 40, completed: 4, failed: 36 });
});

test("a viewer sees batches and cancels none", async () => {
  const id = await created("gpt-5-mini", 1);
  const watched = await signedIn(VIEWER);
  await watched.page.getByRole("row", { name: new RegExp(`^${id}`) }).waitFor();
  expect(await watched.page.getByRole("button", { name: /^Cancel/ }).count()).toBe(0);
  await expectClean(watched);
  const headers = { Authorization: `Bearer ${VIEWER}` };
  const refused = await busy.gateway.fetch(`/admin/batches/${id}/cancel`, { method: "POST", headers });
  expect(refused.status).toBe(403);
});
