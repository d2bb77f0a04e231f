// The page for holders of keys in a real Chromium: without a sign-in it shows what one key may know, and keeps the key nowhere.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { BUSY_KEYS, type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const [SEARCH, ASSISTANT] = BUSY_KEYS;
let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  const auth = { method: "bearer_token", token: "sekret-admin-token" } as const;
  const rules = [{ id: "each-day", limit: { requests: 1_000 }, window: "day", per: "key" }];
  [busy, browser] = await Promise.all([
    startBusyGateway({ auth, config: { budgets: { rules } } as never }),
    launchBrowser(),
  ]);
  for (const [key, count] of [
    [SEARCH, 25],
    [ASSISTANT, 3],
  ] as const) {
    for (let index = 0; index < count; index++) {
      const messages = [{ role: "user", content: `${key} ${index}` }];
      const headers = { Authorization: `Bearer ${key}` };
      await (await busy.gateway.chat({ model: "gpt-5-mini", messages }, { headers })).text();
    }
  }
  await waitFor("all are counted", async () => {
    const headers = { Authorization: `Bearer ${SEARCH}` };
    const usage = (await (await busy.gateway.fetch("/v1/me/usage", { headers })).json()) as {
      total: { requests: number };
    };
    return usage.total.requests === 25;
  });
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

async function openPage(options: object = {}) {
  const context = await browser.context(options);
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard/me`);
  await watched.page.getByLabel("API key or token").waitFor();
  return { ...watched, context };
}

async function enter({ page }: Pick<WatchedPage, "page">, key: string): Promise<void> {
  await page.getByLabel("API key or token").fill(key);
  await page.keyboard.press("Enter");
}

async function expectClean({ page, offences }: WatchedPage): Promise<void> {
  expect(offences.filter((offence) => !/status of 401/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

test("shows limits, budgets, usage and the key's own requests, page by page, and nothing of others", async () => {
  const watched = await openPage();
  const { page, context } = watched;
  await enter(watched, SEARCH);
  await page.getByRole("heading", { name: "search", exact: true }).waitFor();
  await page.getByRole("row", { name: /^each-day day all 975 of 1.000 requests left, 2\.5 % spent/ }).waitFor();
  await page.getByRole("row", { name: /^gpt-5-mini 25 / }).waitFor();
  const rows = () => page.locator("section[aria-label='Latest requests'] tbody tr").count();
  expect(await rows()).toBe(20);
  await page.getByRole("button", { name: "Older requests" }).click();
  await waitFor("the second page", async () => (await rows()) === 25);
  const text = await page.content();
  for (const hidden of ["gpu-1", "hosted", "assistant", "sekret", "batch"]) expect(text).not.toContain(hidden);
  const kept = await page.evaluate<string>(
    "location.href + document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage, ...history.state })",
  );
  expect(kept).not.toContain("sekret");
  expect(await context.cookies()).toEqual([]);
  await page.getByRole("button", { name: "Forget the key" }).click();
  await page.getByLabel("API key or token").waitFor();
  expect(await page.content()).not.toContain("each-day");
  await enter(watched, ASSISTANT);
  await page.getByRole("heading", { name: "assistant", exact: true }).waitFor();
  await page.getByText("600 a minute").waitFor();
  await page.reload();
  await page.getByLabel("API key or token").waitFor();
  await expectClean(watched);
  await context.close();
});

test("a wrong key is told, and shows nothing", async () => {
  const watched = await openPage();
  await enter(watched, "sekret-of-nothing");
  await watched.page.getByRole("alert").filter({ hasText: "not valid here" }).waitFor();
  await expectClean(watched);
  await watched.context.close();
});

describe.each(["light", "dark"] as const)("%s", (colorScheme) => {
  test("is for everyone, on a telephone too", async () => {
    const watched = await openPage({ colorScheme, viewport: { width: 360, height: 740 } });
    const { page } = watched;
    expect(await watched.barriers()).toEqual([]);
    await enter(watched, SEARCH);
    await page.getByRole("heading", { name: "Latest requests" }).waitFor();
    expect(await watched.barriers()).toEqual([]);
    await untilPage(page, "document.documentElement.scrollWidth <= 360");
    await expectClean(watched);
    await watched.context.close();
  });
});
