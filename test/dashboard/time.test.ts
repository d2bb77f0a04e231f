// The time that pages show, in a real Chromium: chosen, zoomed into, gone back from, and the same for who opens the link.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;
/** Requests came before; a change of the configuration, and further requests, behind. */
let changedMs: number;

beforeAll(async () => {
  const config = { metrics: { persistence: { snapshot_interval_seconds: 1 } } };
  [busy, browser] = await Promise.all([startBusyGateway({ config }), launchBrowser()]);
  await busy.load(40);
  await snapshots(2);
  changedMs = Date.now();
  await busy.gateway.fetch("/admin/config/retry", { method: "PATCH", body: '{"max_attempts": 4}' });
  await snapshots(2);
  await busy.load(40);
  await snapshots(6);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

/** Waits until so many more have been written. */
async function snapshots(count: number): Promise<void> {
  const written = async () => {
    const path = "/admin/metrics/history?metric=signalbox_uptime_seconds";
    return ((await (await busy.gateway.fetch(path)).json()) as { row_count: number }).row_count;
  };
  const before = await written();
  await waitFor("further snapshots", async () => (await written()) >= before + count);
}

async function openPage(path: string, options: object = {}): Promise<WatchedPage & { close(): Promise<void> }> {
  const context = await browser.context({ viewport: { width: 1440, height: 900 }, ...options });
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard#/${path}`);
  await watched.page.locator("main h1").waitFor();
  return { ...watched, close: () => context.close() };
}

test("the chosen time stands in the address, and goes along from page to page", async () => {
  const { page, offences, barriers, close } = await openPage("overview");
  await page.locator(".range-menu summary").click();
  expect(await barriers()).toEqual([]);
  await page.getByRole("button", { name: "Last 6 h" }).click();
  await untilPage(page, "location.hash === '#/overview?range=6h'");
  await page.getByRole("link", { name: "Usage" }).click();
  await untilPage(page, "location.hash === '#/usage?range=6h'");
  await page.getByRole("link", { name: "Backends" }).click();
  await page.keyboard.press("Escape");
  await untilPage(page, "location.hash === '#/backends'");
  expect(offences).toEqual([]);
  await close();
});

test("dragging over a chart zooms into it, and Escape goes back", async () => {
  const { page, offences, close } = await openPage("overview?range=15m");
  const plot = page.getByRole("img", { name: /^Requests per second, Last 15 min/ });
  await waitFor("numbers are drawn", async () => /at most [1-9]/.test((await plot.getAttribute("aria-label")) ?? ""));
  const [left = 0, top = 0, width = 0] = await page.evaluate<number[]>(`(() => {
    const box = document.querySelector(".u-over").getBoundingClientRect();
    return [box.left, box.top, box.width];
  })()`);
  await page.mouse.move(left + width * 0.4, top + 30);
  await page.mouse.down();
  await page.mouse.move(left + width * 0.6, top + 30);
  await page.mouse.move(left + width * 0.8, top + 30);
  await page.mouse.up();
  await untilPage(page, "/range=\\d+-\\d+$/.test(location.hash)");
  const [from = 0, to = 0] = (/range=(\d+)-(\d+)$/.exec(page.url()) ?? []).slice(1).map(Number);
  // Four tenths of a quarter of an hour.
  expect(Math.abs(to - from - 360_000)).toBeLessThan(30_000);
  await page.keyboard.press("Escape");
  await untilPage(page, "location.hash === '#/overview?range=15m'");
  expect(offences).toEqual([]);
  await close();
});

test("a link shows the same to others: the requests of that time, the numbers, and the change within it", async () => {
  const { page, offences, barriers, close } = await openPage(`requests?range=${changedMs - 60_000}-${changedMs}`);
  await page.getByText("40 match", { exact: true }).waitFor();
  await page.evaluate(`location.hash = "#/overview?range=${changedMs - 60_000}-${changedMs + 5_000}"`);
  await page.getByText("Requests per second").first().waitFor();
  const plot = page.getByRole("img", { name: /^Requests per second/ });
  await waitFor("numbers are drawn", async () => /at most [1-9]/.test((await plot.getAttribute("aria-label")) ?? ""));
  const figure = page.locator("figure", { hasText: "Requests per second" });
  // Along the chart until the cursor is at the marker.
  await waitFor("the change is told", async () => {
    const [left = 0, top = 0, width = 0] = await page.evaluate<number[]>(`(() => {
      const box = document.querySelector(".u-over").getBoundingClientRect();
      return [box.left, box.top, box.width];
    })()`);
    for (let share = 0.85; share < 1; share += 0.01) {
      await page.mouse.move(left + width * share, top + 30);
      if ((await figure.getByText(/Version 2: retry/).count()) > 0) return true;
    }
    return false;
  });
  await page.getByText("As a table").first().click();
  await page.getByRole("region", { name: "Requests per second, the newest first" }).waitFor();
  expect(await barriers()).toEqual([]);
  expect(offences).toEqual([]);
  await close();
});

test("on a phone the menu fits the screen", async () => {
  const { page, close } = await openPage("overview", { viewport: { width: 360, height: 740 } });
  await page.locator(".range-menu summary").click();
  const wide = await page.evaluate<number>("document.documentElement.scrollWidth");
  expect(wide).toBeLessThanOrEqual(360);
  const [left = -1, right = 999] = await page.evaluate<number[]>(`(() => {
    const box = document.querySelector(".range-choices").getBoundingClientRect();
    return [box.left, box.right];
  })()`);
  expect(left >= 0 && right <= 360).toBe(true);
  await close();
});
