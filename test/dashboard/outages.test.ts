// A page while its gateway is refreshed, away, frozen or back: what is typed stays, what is shown says how old it is, and every page
// goes on by itself.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, type Page, untilPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  [busy, browser] = await Promise.all([startBusyGateway({ port: await freePort() }), launchBrowser()]);
  await busy.load(20);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

const open = async (path: string, withClock = false) => {
  const context = await browser.context();
  if (withClock) await context.clock.install();
  const watched = await browser.open(context, `${busy.gateway.url}/dashboard#/${path}`);
  await watched.page.locator("main h1").waitFor();
  return { context, ...watched };
};

/** Counts the requests for a path. */
function countRequests(page: Page, path: string): () => number {
  let count = 0;
  page.on("request", (request: { url(): string }) => {
    if (request.url().includes(path)) count++;
  });
  return () => count;
}

test("what is typed and where the keyboard is stay while the numbers change", async () => {
  const { context, page } = await open("models", true);
  await page.getByText("gpt-5-mini").first().waitFor();
  const field = page.getByLabel("Name contains");
  const asked = countRequests(page, "/admin/backends");
  await field.fill("qwen");
  await page.getByText("gpt-5-mini").first().waitFor({ state: "detached" });
  await context.clock.fastForward(5_000);
  await waitFor("the page has asked again", () => asked() > 0);
  expect(await field.inputValue()).toBe("qwen");
  expect(await page.evaluate<string>("document.activeElement.id")).toBe("part");
  await page.evaluate('location.hash = "#/backends"');
  await page.getByRole("button", { name: "Weight of gpu-1" }).focus();
  await page.keyboard.press("Enter");
  const weight = page.getByLabel("Weight, 0 to 100");
  await weight.fill("9");
  const before = asked();
  await context.clock.fastForward(2_000);
  await waitFor("the page behind the dialog has asked again", () => asked() > before);
  expect(await weight.inputValue()).toBe("9");
  expect(await page.evaluate<string>("document.activeElement.id")).toBe("weight");
  await context.close();
});

test("a gateway that is away is told with the age of what is shown, and every page goes on when it is back", async () => {
  const pages = await Promise.all(["backends", "configuration/retry", "overview"].map((path) => open(path)));
  for (const { page } of pages) {
    await page.locator(".live.good").waitFor();
    await untilPage(page, "!document.querySelector('main').textContent.includes('Loading…')");
  }
  const [backends, configuration, overview] = pages.map(({ page }) => page) as [Page, Page, Page];
  await busy.gateway.stop("SIGTERM");
  await configuration.evaluate('location.hash = "#/configuration/logging"');
  for (const page of [backends, overview]) {
    await page.getByText(/The gateway cannot be reached\. What is shown is stale since \d\d:\d\d:\d\d\./).waitFor();
    await page.getByText("gpu-1").first().waitFor();
  }
  await configuration.getByText("The gateway cannot be reached.").first().waitFor();
  await busy.gateway.restart({ awaitHealth: false });
  for (const page of [backends, configuration, overview]) {
    await page.locator(".notice.bad", { hasText: "cannot be reached" }).waitFor({ state: "detached", timeout: 20_000 });
    await page.locator(".live.good").waitFor({ timeout: 20_000 });
  }
  await waitFor("the section is there, though it was opened meanwhile", async () => {
    return (await configuration.locator("#editor").inputValue()).includes("level");
  });
  await Promise.all(pages.map(({ context }) => context.close()));
});

test("a gateway that is there and does not answer is told, too", async () => {
  const { context, page } = await open("backends", true);
  await page.getByText("gpu-1", { exact: true }).waitFor();
  process.kill(busy.gateway.pid, "SIGSTOP");
  try {
    const asked = countRequests(page, "/admin/backends");
    await context.clock.fastForward(3_000);
    await waitFor("the page has asked", () => asked() > 0);
    await context.clock.fastForward(31_000);
    await page.getByText(/The gateway does not answer\. What is shown is stale since/).waitFor();
  } finally {
    process.kill(busy.gateway.pid, "SIGCONT");
  }
  await context.clock.fastForward(3_000);
  await page.getByText("The gateway does not answer.").waitFor({ state: "detached" });
  await context.close();
});
