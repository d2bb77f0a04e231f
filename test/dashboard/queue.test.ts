// The page of the queue in a real Chromium: who waits for what, how much backends and classes have to do, the form for weights and
// longest waits, for whom it is, and the story of a request that waited or was refused.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { BUSY_KEYS, type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { freePort } from "../support/free-port.ts";
import { chat } from "../support/openai-answers.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const TOKENS = {
  operator: { name: "on-call", token: "sekret-operator-token", role: "operator" as const },
  viewer: { name: "vera", token: "sekret-viewer-token", role: "viewer" as const },
};

interface QueueAnswer {
  enabled: boolean;
  total_waiting: number;
  classes: { class: string; weight: number; max_wait_ms: number }[];
}

let busy: BusyGateway;
let browser: Browser;
let operator: WatchedPage;
const running: (() => void)[] = [];
const engine = new FakeBackend({
  models: ["m"],
  answer(request) {
    const { promise, resolve } = Promise.withResolvers<void>();
    running.push(resolve);
    void request.closed.then(resolve);
    return { ...chat("done"), headersAfter: promise };
  },
});

beforeAll(async () => {
  [busy, browser] = await Promise.all([
    startBusyGateway({
      port: await freePort(),
      auth: { method: "bearer_token", tokens: Object.values(TOKENS) },
      config: {
        backends: [{ name: "engine", url: engine.url, models: ["m"] }],
        fallback: { enabled: false, fallback_chains: {} },
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
        admission: { per_backend: { max_concurrent: 1 }, queue: { max_waiting: 2 } },
      },
    }),
    launchBrowser(),
  ]);
  operator = await signedIn(TOKENS.operator.token);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
  engine.stop();
});

async function signedIn(token: string): Promise<WatchedPage> {
  const watched = await browser.open(await browser.context({}), `${busy.gateway.url}/dashboard#/queue`);
  await watched.page.getByLabel("Token").fill(token);
  await watched.page.getByRole("button", { name: "Sign in", exact: true }).click();
  await watched.page.getByRole("heading", { name: "Queue", exact: true }).waitFor();
  return watched;
}

async function queue(): Promise<QueueAnswer> {
  const headers = { Authorization: `Bearer ${TOKENS.viewer.token}` };
  return (await (await busy.gateway.fetch("/admin/queue", { headers })).json()) as QueueAnswer;
}

const waiting = (count: number) => waitFor(`${count} wait`, async () => (await queue()).total_waiting === count);
const ask = (key: (typeof BUSY_KEYS)[number], headers: Record<string, string> = {}) =>
  busy.gateway.chat(
    { model: "m", messages: [{ role: "user", content: "a question" }] },
    { headers: { Authorization: `Bearer ${key}`, ...headers } },
  );

/** The browser's console tells of the sign-in that was missing, and of dry runs that were refused. */
async function expectClean({ page, offences, barriers }: WatchedPage): Promise<void> {
  expect(await barriers()).toEqual([]);
  expect(offences.filter((offence) => !/status of 40[013]/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

const row = ({ page }: WatchedPage, name: RegExp) => page.getByRole("row", { name }).waitFor();

async function openStory(id: string): Promise<void> {
  await operator.page.evaluate(`location.hash = "#/request/${id}"`);
  await operator.page.getByRole("heading", { name: "Request", exact: true }).waitFor();
}

async function openQueue({ page }: WatchedPage): Promise<void> {
  await page.evaluate('location.hash = "#/queue"');
  await page.getByRole("heading", { name: "Queue", exact: true }).waitFor();
}

test("off, it says what to set, and shows the classes", async () => {
  const { page } = operator;
  await page.getByText(/The queue is off: .*Set admission\.enabled/).waitFor();
  await page.getByText("Nothing is counted while the queue is off.").waitFor();
  await row(operator, /^interactive 10 15\.0 s 0$/);
  await row(operator, /^batch 1 1 d 0$/);
  await expectClean(operator);
});

test("an operator switches it on and changes weights and waits by a form that says before what it changes", async () => {
  const { page } = operator;
  await page.getByRole("link", { name: "Tune weights" }).click();
  await page.getByRole("heading", { name: "Edit weights" }).waitFor();
  await page.getByText("In force", { exact: true }).waitFor();
  await page.getByRole("checkbox", { name: "Enabled" }).click();
  const field = (name: string) => page.locator(`[id="field-classes.batch.${name}"]`);
  const fault = (name: string, hasText: RegExp) =>
    page.locator(`[id="field-classes.batch.${name}-fault"]`, { hasText });
  await field("weight").fill("0");
  await fault("weight", /must be greater than 0/).waitFor();
  await field("weight").fill("2");
  await field("max_wait").fill("soon");
  await fault("max_wait", /expected a duration/).waitFor();
  await field("max_wait").fill("12h");
  await page.getByText("Would be accepted.").waitFor();
  const command = await page.locator(".entry-check pre").innerText();
  expect(command).toMatch(/PATCH[\s\S]*admin\/queue[\s\S]*"batch":\{"weight":2,"max_wait":"12h"\}/);
  await expectClean(operator);
  expect((await queue()).enabled).toBe(false);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await row(operator, /^batch 2 12 h 0$/);
  expect(await queue()).toMatchObject({
    enabled: true,
    classes: [
      { class: "interactive", weight: 10, max_wait_ms: 15_000 },
      { class: "default", weight: 5, max_wait_ms: 30_000 },
      { class: "batch", weight: 2, max_wait_ms: 43_200_000 },
    ],
  });
});

describe("with requests that wait", () => {
  const asked: Promise<Response>[] = [];

  test("it shows by itself who waits for what, and how full the backend is", async () => {
    const { page } = operator;
    await page.getByText("No requests wait: every backend has a free slot.").waitFor();
    asked.push(ask(BUSY_KEYS[0]));
    await waitFor("one is answered", () => running.length === 1);
    asked.push(ask(BUSY_KEYS[1]));
    await waiting(1);
    asked.push(ask(BUSY_KEYS[0], { "X-Signalbox-Priority": "batch" }));
    await waiting(2);
    await row(operator, /^product, assistant m default [\d.]+ m?s$/);
    await row(operator, /^research, search m batch [\d.]+ m?s$/);
    await row(operator, /^batch 2 12 h 1$/);
    await row(operator, /^engine 1 of 1 \d.*, no limit full$/);
    await row(operator, /^engine m 2 –$/);
    await expectClean(operator);
  });

  test("nothing is wider than the screen", async () => {
    const { page } = operator;
    for (const width of [360, 820, 2560, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      expect(
        await page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
      ).toBeLessThanOrEqual(0);
    }
  });

  test("a refusal says why on the page of the request", async () => {
    const refused = await ask(BUSY_KEYS[1]);
    expect(refused.status).toBe(429);
    await openStory(refused.headers.get("x-signalbox-request-id") as string);
    await operator.page
      .getByText(/No backend was asked: .*the queue in front of its backends is full \(class default, 2 waiting\)/)
      .first()
      .waitFor();
    await operator.page.getByText("(queue_refused)").waitFor();
    await expectClean(operator);
  });

  test("a wait is a step of the story, in words; the page is empty again behind it", async () => {
    for (let index = 0; index < asked.length; index++) {
      await waitFor("a request is there", () => running.length > 0);
      running.shift()?.();
    }
    const [, second] = await Promise.all(asked);
    await openStory(second?.headers.get("x-signalbox-request-id") as string);
    await operator.page.getByText(/^The request waited [\d.]+ m?s in the queue \(class default\)\.$/).waitFor();
    await operator.page.getByText("wait: queue").waitFor();
    await openQueue(operator);
    await operator.page.getByText("No requests wait: every backend has a free slot.").waitFor();
    await row(operator, /^engine 0 of 1 0, no limit has room$/);
    await expectClean(operator);
  });
});

test("a viewer sees it, and is not offered the form", async () => {
  const viewer = await signedIn(TOKENS.viewer.token);
  await row(viewer, /^default 5 30\.0 s 0$/);
  await untilPage(viewer.page, "!document.querySelector('main').textContent.includes('Tune weights')");
  await expectClean(viewer);
});
