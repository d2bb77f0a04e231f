// The chart of the dashboard in a real Chromium, below the policy of its pages: cursors of a group go together, a part of the time
// is chosen by dragging, markers and gaps are drawn, and the colours follow the theme.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { SECURITY_HEADERS } from "../../src/dashboard/page.ts";
import { type Browser, launchBrowser, type Page, untilPage, type WatchedPage } from "../support/browser.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const WEB = join(import.meta.dir, "../../src/dashboard/web");
/** Two charts with 60 values, a second apart: the first one knows nothing between 20 and 40. */
const PROGRAM = `/** @jsxImportSource preact */
import { render } from "preact";
import { createApp } from "./app/app.ts";
import { AppContext } from "./app/context.ts";
import { Chart } from "./parts/chart.tsx";

const app = createApp(location.href);
const endMs = Math.floor(Date.now() / 1000) * 1000;
const times = Array.from({ length: 60 }, (_, index) => endMs - (59 - index) * 1000);
globalThis.times = times;
globalThis.switchTheme = app.themes.next;
const values = times.map((_, index) => (index >= 20 && index < 40 ? undefined : index));
const shared = { times, span: "last minute", format: String, group: "test" };
const markers = [{ atMs: times[45], tone: "bad", text: "gpu-3 opened" }];
render(
  <AppContext.Provider value={app}>
    <Chart {...shared} title="One" lines={[{ name: "all", look: "first", values }]} markers={markers}
      onSelect={(from, to) => { globalThis.selected = [from, to]; }} />
    <Chart {...shared} title="Two" lines={[{ name: "twice", look: "second", values: times.map((_, index) => index * 2) }]} />
  </AppContext.Provider>,
  document.body,
);
`;

let server: ReturnType<typeof Bun.serve>;
let browser: Browser;
let watched: WatchedPage;
let page: Page;

beforeAll(async () => {
  const { outputs } = await Bun.build({
    entrypoints: [join(WEB, "chart-page.tsx"), join(WEB, "style.css")],
    files: { [join(WEB, "chart-page.tsx")]: PROGRAM },
    target: "browser",
    define: { "process.env.NODE_ENV": '"production"' },
    naming: "[name].[ext]",
  });
  const files = new Map(outputs.map((output) => [`/${output.path.split("/").at(-1)}`, output]));
  const html =
    '<!doctype html><html lang="en"><head><link rel="icon" href="style.css"><link rel="stylesheet" href="style.css"><script type="module" src="chart-page.js"></script></head><body></body></html>';
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const file = files.get(new URL(request.url).pathname);
      const headers = { ...SECURITY_HEADERS, "Content-Type": file?.type ?? "text/html" };
      return new Response(file ?? html, { headers });
    },
  });
  browser = await launchBrowser();
  const context = await browser.context({ viewport: { width: 900, height: 700 }, colorScheme: "light" });
  watched = await browser.open(context, server.url.href);
  page = watched.page;
  await page.locator("canvas").first().waitFor();
});

afterAll(async () => {
  await browser?.close();
  await server?.stop(true);
});

const chart = (name: string) => page.getByRole("img", { name: new RegExp(`^${name},`) });
const figure = (title: string) => page.locator("figure", { hasText: title });

/** Goes to a value of the first chart, by its index. */
async function pointAt(index: number): Promise<void> {
  const [x = 0, y = 0] = await page.evaluate<number[]>(`(() => {
    const { left, top, width } = document.querySelector(".u-over").getBoundingClientRect();
    return [left + (width * ${index}) / 59, top + 20];
  })()`);
  await page.mouse.move(x, y);
}

/** Colours of the first canvas within some shares of its width; each component in steps of 4, because of rounding. */
async function coloursBetween(from: number, to: number): Promise<string[]> {
  return await page.evaluate<string[]>(`(() => {
    const canvas = document.querySelector("canvas");
    const over = document.querySelector(".u-over");
    const ratio = canvas.width / canvas.clientWidth;
    const left = (over.offsetLeft + over.offsetWidth * ${from}) * ratio;
    const width = over.offsetWidth * ${to - from} * ratio;
    const { data } = canvas.getContext("2d").getImageData(left, over.offsetTop * ratio, width, over.offsetHeight * ratio);
    const found = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) found.add([data[at], data[at + 1], data[at + 2]].map((part) => Math.round(part / 4)).join());
    return [...found];
  })()`);
}

const colourOf = (variable: string) =>
  page.evaluate<string>(`(() => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = "var(${variable})";
    const colour = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map((part) => Math.round(part / 4)).join();
    probe.remove();
    return colour;
  })()`);

test("it says its numbers in words, the latest or those at the cursor, in all charts of a group", async () => {
  expect(await chart("One").getAttribute("aria-label")).toBe("One, last minute. all: now 59, at most 59");
  expect(await figure("One").locator("b").innerText()).toBe("59");
  await pointAt(10);
  await figure("One").getByText("10", { exact: true }).waitFor();
  await figure("Two").getByText("20", { exact: true }).waitFor();
  await figure("Two")
    .getByText(/\d+ s ago$/)
    .waitFor();
  await pointAt(30);
  await figure("One").getByText("–", { exact: true }).waitFor();
  await figure("Two").getByText("60", { exact: true }).waitFor();
});

test("a marker is a line in its colour, and is told where the cursor is near", async () => {
  const bad = await colourOf("--bad");
  expect(await coloursBetween(44.5 / 59, 45.5 / 59)).toContain(bad);
  expect(await coloursBetween(5 / 59, 15 / 59)).not.toContain(bad);
  expect(await figure("One").getByText("gpu-3 opened").count()).toBe(0);
  await pointAt(45);
  await figure("One").getByText("gpu-3 opened").waitFor();
});

test("nothing is drawn where nothing is known, and the colours are those of the theme", async () => {
  const accent = await colourOf("--accent");
  expect(await coloursBetween(5 / 59, 15 / 59)).toContain(accent);
  expect(await coloursBetween(22 / 59, 37 / 59)).not.toContain(accent);
  await page.emulateMedia({ colorScheme: "dark" });
  await untilPage(page, "matchMedia('(prefers-color-scheme: dark)').matches");
  const dark = await colourOf("--accent");
  expect(dark).not.toBe(accent);
  await waitFor("the chart is dark", async () => (await coloursBetween(5 / 59, 15 / 59)).includes(dark));
  await page.evaluate("switchTheme()"); // light, whatever the system has
  await untilPage(page, "document.documentElement.dataset.theme === 'light'");
  await waitFor("the chart is light", async () => (await coloursBetween(5 / 59, 15 / 59)).includes(accent));
});

test("a part of the time is chosen by dragging; a click chooses none", async () => {
  async function drag(from: number, to: number): Promise<void> {
    await pointAt(from);
    await page.mouse.down();
    await pointAt(to);
    await page.mouse.up();
  }
  await drag(12, 12);
  expect(await page.evaluate("globalThis.selected")).toBeUndefined();
  await drag(10, 20);
  await untilPage(page, "globalThis.selected !== undefined");
  const seconds = await page.evaluate<number[]>("selected.map((at) => (at - times[0]) / 1000)");
  expect(seconds[0]).toBeCloseTo(10, 0);
  expect(seconds[1]).toBeCloseTo(20, 0);
});

test("it is as wide as its place", async () => {
  for (const width of [500, 1_100]) {
    await page.setViewportSize({ width, height: 700 });
    await untilPage(
      page,
      "Math.abs(document.querySelector('canvas').clientWidth - document.querySelector('.plot').clientWidth) <= 1",
    );
  }
  // The browser advises against reading pixels, as these tests do.
  expect(watched.offences.filter((offence) => !offence.includes("getImageData"))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
});
