// Everything by its name, in a real Chromium: pages, backends, requests, times and actions, by the keyboard alone.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  [busy, browser] = await Promise.all([startBusyGateway(), launchBrowser()]);
  await busy.load(20);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

test("pages, requests, times and actions are found and done by the keyboard", async () => {
  const context = await browser.context({ viewport: { width: 1440, height: 900 } });
  const { page, offences, barriers } = await browser.open(context, `${busy.gateway.url}/dashboard#/overview`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const { requests } = (await (await busy.gateway.fetch("/admin/requests?limit=1")).json()) as {
    requests: { id: string; request_id: string }[];
  };
  const [request] = requests;
  const option = (name: string | RegExp) => page.getByRole("option", { name });
  async function find(text: string): Promise<void> {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(text);
  }

  await find("usage");
  await option("Usage Page").waitFor();
  expect(await barriers()).toEqual([]);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Usage and cost" }).waitFor();

  await find("last 7");
  await option("Last 7 d Time").waitFor();
  await page.keyboard.press("Enter");
  await untilPage(page, "location.hash === '#/usage?range=7d'");

  await find(request?.request_id.slice(0, 13) ?? "");
  await option(new RegExp(`^${request?.request_id}`)).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Request", exact: true }).waitFor();
  expect(page.url()).toContain(`#/request/${request?.id}`);

  await find("gpu-2 drain");
  await option("Drain gpu-2 Action").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Drain gpu-2" }).waitFor();
  await page.keyboard.press("Control+k"); // the dialog is to be answered first
  expect(await page.getByRole("combobox").count()).toBe(0);
  await page.keyboard.press("Escape");

  await find("no such thing at all");
  await page.getByText("Nothing has this name.").waitFor();
  await page.keyboard.press("Escape");
  expect(await page.getByRole("combobox").count()).toBe(0);
  expect(offences).toEqual([]);
  await context.close();
});
