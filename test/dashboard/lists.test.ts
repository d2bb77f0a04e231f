// Lists of the dashboard in a real Chromium: sorted, filtered by values, grouped, walked through by the keyboard, as a file, as
// cards on a phone, and quick with very many rows.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { SECURITY_HEADERS } from "../../src/dashboard/page.ts";
import { type Browser, launchBrowser, type Page, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  [busy, browser] = await Promise.all([startBusyGateway(), launchBrowser()]);
  await busy.load(120);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

async function openPage(path: string, options: object = {}): Promise<WatchedPage & { close(): Promise<void> }> {
  const context = await browser.context({ viewport: { width: 1440, height: 900 }, ...options });
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard#/${path}`);
  await watched.page.locator("tbody tr[data-row]").first().waitFor();
  return { ...watched, close: () => context.close() };
}

const cellsOf = (page: Page, column: number) =>
  page.evaluate<string[]>(
    `[...document.querySelectorAll("tbody tr[data-row]")].map((row) => row.cells[${column}].innerText.trim())`,
  );

describe("requests", () => {
  test("are sorted by a column, in both directions and back, and so for who opens the link", async () => {
    const { page, offences, close } = await openPage("requests");
    const unsorted = await cellsOf(page, 2);
    await page.getByRole("button", { name: "Model", exact: true }).click();
    await untilPage(page, "location.hash === '#/requests?sort=-Model'");
    const descending = await cellsOf(page, 2);
    expect(descending).toEqual(descending.toSorted().toReversed());
    expect(await page.locator("th[aria-sort=descending]").innerText()).toContain("Model");
    await page.reload();
    await page.locator("th[aria-sort=descending]").waitFor();
    await page.getByRole("button", { name: "Model", exact: true }).click();
    expect(await cellsOf(page, 2)).toEqual(descending.toSorted());
    await page.getByRole("button", { name: "Model", exact: true }).click();
    expect((await cellsOf(page, 2)).length).toBe(unsorted.length);
    expect(await page.locator("th[aria-sort]").count()).toBe(0);
    // The longest of all, not of those that are shown.
    await page.getByRole("button", { name: "Duration", exact: true }).click();
    const { requests } = (await (await busy.gateway.fetch("/admin/requests?sort=duration&limit=1")).json()) as {
      requests: { id: string }[];
    };
    await page.locator(`tbody tr[data-row="0"] a[href="#/request/${requests[0]?.id}"]`).waitFor();
    expect(offences).toEqual([]);
    await close();
  });

  test("are filtered by the values that they have", async () => {
    const { page, barriers, close } = await openPage("requests");
    await page.getByRole("button", { name: /^failed/ }).click();
    await untilPage(page, "location.hash === '#/requests?outcome=failed'");
    await waitFor("only failed ones", async () => (await cellsOf(page, 1)).every((text) => text.includes("failed")));
    expect(await page.getByRole("button", { name: /^failed/, pressed: true }).count()).toBe(1);
    expect(await barriers()).toEqual([]);
    await page.getByRole("button", { name: /^failed/ }).click();
    await untilPage(page, "location.hash === '#/requests'");
    await close();
  });

  test("are grouped, and a group opens to its requests", async () => {
    const { page, barriers, close } = await openPage("requests?view=groups");
    const failed = page.getByRole("row", { name: /503 scripted_error mixtral-8x7b/ }).first();
    const many = Number((await failed.innerText()).trim().split(/\s/)[0]);
    expect(many).toBeGreaterThan(0);
    expect(await barriers()).toEqual([]);
    await failed.getByRole("link", { name: "503 scripted_error" }).click();
    await page.getByText(`${many} match`, { exact: true }).waitFor();
    expect(page.url()).toContain("code=scripted_error");
    await page.evaluate('location.hash = "#/errors"');
    await page
      .getByRole("region", { name: /^Failed requests/ })
      .getByText("503 scripted_error")
      .first()
      .waitFor();
    await page
      .getByRole("region", { name: /^Refused requests/ })
      .getByText("404 model_not_found")
      .first()
      .waitFor();
    await close();
  });

  test("have the columns that were chosen, also in the file", async () => {
    const { page, barriers, close } = await openPage("requests");
    await page.getByText("Columns", { exact: true }).click();
    await page.locator(".menu-box label", { hasText: "Backend" }).click();
    expect(await barriers()).toEqual([]);
    await page.reload();
    await page.locator("tbody tr[data-row]").first().waitFor();
    expect(await page.getByRole("columnheader", { name: "Backend" }).count()).toBe(0);
    const downloaded = page.waitForEvent("download") as Promise<{
      path(): Promise<string>;
      suggestedFilename(): string;
    }>;
    await page.getByRole("button", { name: "CSV" }).click();
    const file = await downloaded;
    expect(file.suggestedFilename()).toBe("requests.csv");
    const lines = (await Bun.file(await file.path()).text()).trim().split("\r\n");
    expect(lines[0]).toBe("Time,Outcome,Model,Caller,Attempts,Duration,First token,Tokens,Id");
    expect(lines.length - 1).toBe((await cellsOf(page, 0)).length);
    await close();
  });

  test("are walked through, opened and searched by the keyboard", async () => {
    const { page, close } = await openPage("requests");
    const at = () => page.evaluate<string>("document.activeElement.dataset.row ?? document.activeElement.id");
    await page.keyboard.press("j");
    await waitFor("the first row", async () => (await at()) === "0");
    await page.keyboard.press("j");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("k");
    await waitFor("the second row", async () => (await at()) === "1");
    await page.keyboard.press("/");
    await waitFor("the search", async () => (await at()).startsWith("filter-"));
    await page.keyboard.type("jk");
    expect(await page.locator("#filter-model").inputValue()).toBe("jk");
    await page.locator("#filter-model").fill("");
    await page.keyboard.press("Escape");
    await page.locator("tbody tr[data-row]").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Request", exact: true }).waitFor();
    await close();
  });

  test("are cards on a phone, and nothing is wider than it", async () => {
    const { page, barriers, close } = await openPage("requests", { viewport: { width: 360, height: 740 } });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(360);
    expect(await page.evaluate<string>("getComputedStyle(document.querySelector('td'), '::before').content")).toBe(
      '"Time"',
    );
    expect(await barriers()).toEqual([]);
    await close();
  });
});

const PROGRAM = `/** @jsxImportSource preact */
import { render } from "preact";
import { createApp } from "./app/app.ts";
import { AppContext } from "./app/context.ts";
import { List, useOrder } from "./parts/list.tsx";

const rows = Array.from({ length: 100_000 }, (_, index) => ({ id: "row " + index, size: (index * 7919) % 100_000 }));
function Page() {
  return (
    <List name="many" caption="Many" order={useOrder()} rows={rows} keyOf={({ id }) => id} empty="None." hrefOf={() => "#/"}
      columns={[
        { title: "Id", value: ({ id }) => id, cell: ({ id }) => id },
        { title: "Size", isNumber: true, value: ({ size }) => size, cell: ({ size }) => size },
      ]} />
  );
}
render(<AppContext.Provider value={createApp(location.href)}><Page /></AppContext.Provider>, document.body);
`;

test("100,000 rows are a few in the page, whichever of them are seen", async () => {
  const web = join(import.meta.dir, "../../src/dashboard/web");
  const { outputs } = await Bun.build({
    entrypoints: [join(web, "many-rows.tsx"), join(web, "style.css")],
    files: { [join(web, "many-rows.tsx")]: PROGRAM },
    target: "browser",
    define: { "process.env.NODE_ENV": '"production"' },
    naming: "[name].[ext]",
  });
  const files = new Map(outputs.map((output) => [`/${output.path.split("/").at(-1)}`, output]));
  const html =
    '<!doctype html><html lang="en"><head><title>Many</title><link rel="icon" href="style.css"><link rel="stylesheet" href="style.css"><script type="module" src="many-rows.js"></script></head><body></body></html>';
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const file = files.get(new URL(request.url).pathname);
      return new Response(file ?? html, {
        headers: { ...SECURITY_HEADERS, "Content-Type": file?.type ?? "text/html" },
      });
    },
  });
  const context = await browser.context({ viewport: { width: 1200, height: 800 } });
  const { page, offences } = await browser.open(context, server.url.href);
  await page.getByText("row 0", { exact: true }).waitFor();
  const drawn = () => page.evaluate<number>('document.querySelectorAll("tr[data-row]").length');
  await waitFor("the rest has its height", () =>
    page.evaluate<boolean>("document.documentElement.scrollHeight > 3_000_000"),
  );
  expect(await drawn()).toBeLessThan(120);
  await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
  await page.getByText("row 99999", { exact: true }).waitFor();
  expect(await drawn()).toBeLessThan(120);
  expect(await page.locator("table").getAttribute("aria-rowcount")).toBe("100001");
  await page.evaluate("scrollTo(0, 0)");
  await page.getByRole("button", { name: "Size" }).click();
  await page.locator('tr[data-row="0"]', { hasText: "99999" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("End");
  await page.locator('tr[data-row="99999"]:focus').waitFor();
  expect(offences).toEqual([]);
  await context.close();
  await server.stop(true);
});
