// Every page of the dashboard in a real Chromium, under load and with failing backends: it shows what the gateway does,
// to everybody, on any screen, and does nothing that it should not.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const PAGES = [
  ["overview", "Overview", "First token"],
  ["requests", "Requests", "qwen3-32b"],
  ["recordings", "Recordings", "Nothing is recorded"],
  ["replays", "Replays", "There are no replays"],
  ["errors", "Errors", "mixtral-8x7b"],
  ["backends", "Backends", "gpu-4"],
  ["batches", "Batches", "There are no batches"],
  ["models", "Models", "gpt-5-mini"],
  ["backends?do=add", "Add a backend", "Health check"],
  ["backends/gpu-1?do=edit", "Edit gpu-1", "Health check"],
  ["queue", "Queue", "The queue is off"],
  ["queue/weights?do=edit", "Edit weights", "Max wait"],
  ["fallback", "Fallback chains", "llama-3.3-70b"],
  ["fallback?do=add", "Add a fallback chain", "Models"],
  ["keys", "Keys", "assistant"],
  ["keys/assistant?do=copy", "Duplicate assistant", "Expires at"],
  ["prompts", "Prompts", "There is no prompt file"],
  ["prompts?do=add", "Add a prompt file", "Content"],
  ["usage", "Usage and cost", "assistant"],
  ["limits", "Limits and cache", "Response cache"],
  ["configuration", "Configuration", "circuit_breaker"],
  ["configuration/retry", "Configuration: retry", "max_attempts"],
  ["audit", "Audit", "Outcome"],
  ["playground", "Playground", "System prompt"],
] as const;

let busy: BusyGateway;
let browser: Browser;
let load: ReturnType<BusyGateway["keepAsking"]>;
let storyId: string;

beforeAll(async () => {
  [busy, browser] = await Promise.all([startBusyGateway(), launchBrowser()]);
  await busy.load(40);
  load = busy.keepAsking(4);
  const { requests } = await told<{ requests: { id: string; attempts: number }[] }>("/admin/requests?limit=500");
  storyId = requests.find(({ attempts }) => attempts > 1)?.id as string;
  expect(storyId).toBeString();
});

afterAll(async () => {
  await load?.end();
  await browser?.close();
  await busy?.close();
});

async function told<Answer>(path: string): Promise<Answer> {
  return (await (await busy.gateway.fetch(path)).json()) as Answer;
}

async function openPage(path: string, options: object = {}): Promise<WatchedPage & { close(): Promise<void> }> {
  const context = await browser.context(options);
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard#/${path}`);
  await watched.page.locator("main h1").waitFor();
  await loaded(watched);
  return { ...watched, close: () => context.close() };
}

async function loaded({ page }: WatchedPage): Promise<void> {
  await untilPage(page, "!document.querySelector('main').textContent.includes('Loading…')");
}

/** Nothing that a page must not do, however it was opened. */
async function expectClean({ page, offences }: WatchedPage): Promise<void> {
  expect(offences).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

/** In the dark only what depends on colours: the rest is the same page. */
describe.each([
  ["light", undefined],
  ["dark", ["color-contrast"]],
] as const)("%s", (colorScheme, rules) => {
  test("every page shows what it is for, without a barrier, an error or a request to another host", async () => {
    const watched = await openPage("overview", { colorScheme });
    const { page, barriers, close } = watched;
    for (const [path, heading, text] of [...PAGES, [`request/${storyId}`, "Request", "What happened"] as const]) {
      await page.evaluate(`location.hash = "#/${path}"`);
      await page.getByRole("heading", { name: heading, exact: true }).waitFor();
      await page.locator("main", { hasText: text }).waitFor();
      await loaded(watched);
      expect({ path, barriers: await barriers(rules) }).toEqual({ path, barriers: [] });
      expect(await page.title()).toContain("Signalbox");
    }
    await expectClean(watched);
    await close();
  });
});

test("nothing is wider than the screen, from 360 to 2,560 pixels", async () => {
  const watched = await openPage("overview");
  const { page, close } = watched;
  const wide: string[] = [];
  const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  for (const path of [...PAGES.map(([name]) => name), `request/${storyId}`]) {
    await page.evaluate(`location.hash = "#/${path}"`);
    await untilPage(page, "document.querySelector('main h1') !== null");
    await loaded(watched);
    for (const width of [360, 820, 1280, 2560]) {
      await page.setViewportSize({ width, height: 800 });
      await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
      // Charts follow the width a moment later.
      const fits = await untilPage(page, `${overflow} <= 0`).then(
        () => true,
        () => false,
      );
      if (!fits) wide.push(`${path} at ${width}: ${await page.evaluate<number>(overflow)}`);
    }
  }
  expect(wide).toEqual([]);
  await expectClean(watched);
  await close();
});

test("the first page comes at once, and nothing moves while it is filled", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard`);
  const { page } = watched;
  await page.getByText("gpu-1").first().waitFor();
  await untilPage(page, "performance.getEntriesByName('first-contentful-paint').length > 0");
  const shifts = await page.evaluate<number>(
    `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0)))
      .observe({ type: "layout-shift", buffered: true })) && Promise.race([
        new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().reduce((sum, { value }) => sum + value, 0))).observe({ type: "layout-shift", buffered: true })),
        new Promise((resolve) => setTimeout(resolve, 500, 0)),
      ])`,
  );
  // What browsers' makers call good.
  expect(shifts).toBeLessThan(0.1);
  await context.close();
});

test("the page and its files come with what keeps others out", async () => {
  const page = await busy.gateway.fetch("/dashboard");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("require-trusted-types-for 'script'");
  // Pictures that were recorded; nothing else may come out of an address itself.
  expect(policy).toContain("img-src 'self' data:;");
  expect(policy.replace("img-src 'self' data:;", "")).not.toMatch(/unsafe|\*|https?:|data:/);
  expect(page.headers.get("x-content-type-options")).toBe("nosniff");
  expect(page.headers.get("cache-control")).toBe("no-store");
  expect(page.headers.get("referrer-policy")).toBe("same-origin");
  const text = await page.text();
  expect(text).not.toMatch(/<style|style=|<script>|\son\w+=/);
  const files = [...text.matchAll(/"(dashboard\/[\w.-]+)"/g)].map(([, path]) => path);
  expect(files.length).toBe(3);
  for (const path of files) {
    for (const encoding of ["br", "gzip", "identity"]) {
      const file = await busy.gateway.fetch(`/${path}`, {
        headers: { "Accept-Encoding": encoding },
        decompress: false,
      } as RequestInit);
      expect(file.status).toBe(200);
      expect(file.headers.get("content-encoding")).toBe(encoding === "identity" ? null : encoding);
      expect(file.headers.get("cache-control")).toContain("immutable");
      expect(file.headers.get("vary")).toContain("Accept-Encoding");
      expect(file.headers.get("x-content-type-options")).toBe("nosniff");
    }
  }
  const missing = await busy.gateway.fetch("/dashboard/main-00000000.js");
  expect(missing.status).toBe(404);
});

test("requests are shown as they end, and the charts move", async () => {
  const watched = await openPage("overview?range=5m");
  const { page, close } = watched;
  await page.getByText("Live", { exact: true }).waitFor();
  const latest = page.getByRole("region", { name: "Latest requests" }).locator("tbody a").first();
  const before = await latest.getAttribute("href");
  await waitFor("another request is the latest", async () => (await latest.getAttribute("href")) !== before);
  await waitFor("the rate is shown", async () => Number(await page.locator(".tile-value").first().innerText()) > 1);
  const chart = page.getByRole("img", { name: /^Requests per second/ });
  expect(await chart.getAttribute("aria-label")).toMatch(/all: now [\d.]+, at most [\d.]+/);
  await chart.hover();
  await page
    .getByText(/min ago$/)
    .first()
    .waitFor();
  await expectClean(watched);
  await close();
});

test("what the charts show is there as a table, for the keyboard and for screen readers", async () => {
  const watched = await openPage("overview?range=5m");
  const { page, barriers, close } = watched;
  await page.getByText("The charts as a table").focus();
  await page.keyboard.press("Enter");
  const rows = page.getByRole("region", { name: /^The last five minutes/ }).locator("tbody tr");
  await waitFor("it has numbers", async () => {
    const cells = await rows.first().locator("td").allInnerTexts();
    return cells.length === 8 && Number(cells[1]) > 0 && / m?s$/.test(cells[3] ?? "");
  });
  expect(await barriers()).toEqual([]);
  await expectClean(watched);
  await close();
});

test("a backend whose circuit is open does not look ready", async () => {
  const { page, close } = await openPage("overview");
  await page.getByRole("region", { name: "Backends" }).getByText("circuit open").waitFor();
  await page.evaluate('location.hash = "#/models"');
  await page.getByRole("row", { name: /^mixtral-8x7b gpu-3 \(circuit open\).*100 %/ }).waitFor();
  await close();
});

test("a narrow screen shows where one is in the navigation", async () => {
  const { page, close } = await openPage("overview", { viewport: { width: 360, height: 700 } });
  await page.evaluate('location.hash = "#/limits"');
  await untilPage(
    page,
    "(({ left, right }) => left >= 0 && right <= innerWidth)(document.querySelector('nav [aria-current]').getBoundingClientRect())",
  );
  await close();
});

test("a page is reached, read and left by the keyboard alone", async () => {
  const watched = await openPage("overview");
  const { page, close } = watched;
  await page.evaluate("document.querySelector('a, button, input, [tabindex]').focus()");
  expect(await page.evaluate<string>("document.activeElement.textContent")).toBe("Skip to content");
  await page.keyboard.press("Enter");
  expect(await page.evaluate<string>("document.activeElement.tagName")).toBe("MAIN");
  await page.getByRole("link", { name: "Backends", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Backends" }).waitFor();
  await untilPage(page, "document.activeElement.tagName === 'H1'");
  await page.getByRole("button", { name: "Weight of gpu-1" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Weight of gpu-1" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await untilPage(page, "document.activeElement.getAttribute('aria-label') === 'Weight of gpu-1'");
  await expectClean(watched);
  await close();
});

test("colours are those of the system, or chosen and kept", async () => {
  const watched = await openPage("overview", { colorScheme: "light" });
  const { page, close } = watched;
  const background = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
  const light = await background();
  await page.getByRole("button", { name: /^Colours: Auto/ }).click();
  await page.getByRole("button", { name: /^Colours: Light/ }).click();
  await page.getByRole("button", { name: /^Colours: Dark/ }).waitFor();
  const dark = await background();
  expect(dark).not.toBe(light);
  await page.reload();
  await page.locator("main h1").waitFor();
  expect(await background()).toBe(dark);
  await expectClean(watched);
  await close();
});
