// The page of the audit in a real Chromium: entries with what changed, filters in the address, pages, CSV, and for whom it is.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";

setDefaultTimeout(60_000);

const ADMIN = "sekret-admin-token";
const VIEWER = "sekret-viewer-token";

let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  const auth = {
    method: "bearer_token" as const,
    tokens: [
      { name: "ann", token: ADMIN, role: "admin" as const },
      { name: "vera", token: VIEWER, role: "viewer" as const },
    ],
  };
  [busy, browser] = await Promise.all([startBusyGateway({ port: await freePort(), auth }), launchBrowser()]);
  await patch(ADMIN, "retry", { max_attempts: 2 });
  await patch(ADMIN, "retry", { max_attempts: -1 });
  await patch(ADMIN, "web_search", { provider: "brave", api_key: "sekret-of-search" });
  await patch("sekret-wrong", "retry", { max_attempts: 1 });
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

function patch(token: string, section: string, config: object) {
  const headers = { Authorization: `Bearer ${token}` };
  return busy.gateway.fetch(`/admin/config/${section}`, { method: "PATCH", headers, body: JSON.stringify({ config }) });
}

async function signedIn(token: string, hash: string, options: object = {}) {
  const context = await browser.context(options);
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard#/${hash}`);
  await watched.page.getByLabel("Token").fill(token);
  await watched.page.getByRole("button", { name: "Sign in", exact: true }).click();
  return { ...watched, context };
}

const rows = ({ page }: WatchedPage) => page.locator("main tbody tr");
const untilRows = ({ page }: WatchedPage, most: number) =>
  untilPage(page, `document.querySelectorAll("main tbody td[data-title=Outcome]").length === ${most}`);

/** Refused requests are told by the console of a browser. */
async function expectClean({ page, offences }: WatchedPage): Promise<void> {
  expect(offences.filter((offence) => !/status of 40[13]/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

describe.each(["light", "dark"] as const)("%s", (colorScheme) => {
  test("an entry has who, what and which outcome, and opens to its fields before and after, secrets masked", async () => {
    const watched = await signedIn(ADMIN, "audit", { colorScheme });
    const { page, context } = watched;
    await page.getByRole("heading", { name: "Audit", exact: true }).waitFor();
    const change = rows(watched).filter({ hasText: "done (200)" }).filter({ hasText: "retry" });
    await change.locator("summary").click();
    expect(await change.innerText()).toMatch(/ann[\s\S]*127\.0\.0\.1[\s\S]*retry\.max_attempts 3 → 2/);
    await rows(watched).filter({ hasText: "failed (400)" }).first().waitFor();
    await rows(watched).filter({ hasText: "refused (401)" }).first().waitFor();
    const secret = rows(watched).filter({ hasText: "web_search" });
    await secret.locator("summary").click();
    expect(await secret.innerText()).toContain("web_search.api_key");
    expect(await page.content()).not.toContain("sekret");
    expect(await watched.barriers()).toEqual([]);
    await page.setViewportSize({ width: 360, height: 800 });
    expect(
      await page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
    ).toBeLessThanOrEqual(0);
    await expectClean(watched);
    await context.close();
  });
});

test("filters stand in the address and hold for the file, too; the time is that of the bar", async () => {
  const watched = await signedIn(ADMIN, "audit?outcome=failed");
  const { page, context } = watched;
  await untilRows(watched, 1);
  expect(await rows(watched).innerText()).toContain("failed (400)");
  await page.getByLabel("Outcome").selectOption("");
  await page.getByLabel("Name", { exact: true }).fill("ann");
  await page.getByLabel("Operation").fill("patchConfigSection");
  await page.getByLabel("Outcome").selectOption("done");
  await untilPage(page, "location.hash.includes('name=ann') && location.hash.includes('outcome=done')");
  await untilRows(watched, 2);
  const address = (await page.getByRole("link", { name: "CSV" }).getAttribute("href")) as string;
  const file = await busy.gateway.fetch(address.slice(new URL(address).origin.length), {
    headers: { Authorization: `Bearer ${ADMIN}` },
  });
  expect((await file.text()).split("\r\n").filter((line) => line.includes(",done,"))).toHaveLength(2);
  await page.goto(`${busy.gateway.url}/dashboard#/audit?range=1577836800000-1577840400000`);
  await page.getByText("No entries match in this time.").waitFor();
  await expectClean(watched);
  await context.close();
});

test("the page is offered to the roles that may read it, and tells others why it is empty", async () => {
  const headers = { Authorization: `Bearer ${VIEWER}` };
  const session = (await (await busy.gateway.fetch("/admin/session", { headers })).json()) as {
    needs_higher_role: string[];
  };
  const mayRead = !session.needs_higher_role.includes("GET /admin/audit");
  const watched = await signedIn(VIEWER, "backends");
  const { page, context } = watched;
  await page.getByRole("link", { name: "Notifications", exact: true }).waitFor();
  expect(await page.getByRole("link", { name: "Audit", exact: true }).count()).toBe(mayRead ? 1 : 0);
  await page.goto(`${busy.gateway.url}/dashboard#/audit`);
  if (mayRead) await rows(watched).filter({ hasText: "done (200)" }).first().waitFor();
  else await page.getByRole("alert").filter({ hasText: "This needs the role" }).waitFor();
  await expectClean(watched);
  await context.close();
});

test("more than a page of entries is read page by page", async () => {
  for (let times = 0; times < 101; times++) await patch(ADMIN, "retry", { max_attempts: -1 });
  const watched = await signedIn(ADMIN, "audit?outcome=failed");
  const { page, context } = watched;
  await untilRows(watched, 100);
  await page.getByRole("button", { name: "Older entries" }).click();
  await untilRows(watched, 2);
  expect(await page.getByRole("button", { name: "Older entries" }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Newer entries" }).click();
  await untilRows(watched, 100);
  await expectClean(watched);
  await context.close();
});
