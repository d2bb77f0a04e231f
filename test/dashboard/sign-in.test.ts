// Signing in to the dashboard: with every method, wrongly, in two tabs, and when the sign-in is over or the gateway is away.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const PASSWORD = "sekret-password";
let busy: BusyGateway;
let browser: Browser;

beforeAll(async () => {
  const port = await freePort();
  const auth = { method: "basic", username: "ann", password: PASSWORD } as const;
  [busy, browser] = await Promise.all([startBusyGateway({ auth, port }), launchBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

const address = () => `${busy.gateway.url}/dashboard`;

async function signIn({ page }: WatchedPage, password = PASSWORD): Promise<void> {
  await page.getByLabel("User name").fill("ann");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Refusals are told by the console of a browser; anything else must not be there. */
async function expectClean({ page, offences }: WatchedPage, isAway = false): Promise<void> {
  const allowed = isAway ? /status of 401|ERR_|net::/ : /status of 401/;
  expect(offences.filter((offence) => !allowed.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

test("the page without a sign-in has no data, and asks for what the gateway wants", async () => {
  const shell = await busy.gateway.fetch("/dashboard");
  expect(shell.status).toBe(200);
  expect(shell.headers.get("www-authenticate")).toBeNull();
  expect(await shell.text()).not.toMatch(/gpu-1|qwen/);
  const context = await browser.context();
  const watched = await browser.open(context, address());
  await watched.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await untilPage(watched.page, "document.activeElement.id === 'username'");
  expect(await watched.barriers()).toEqual([]);
  await expectClean(watched);
  await context.close();
});

test("a wrong password is told, the right one lets in; the browser keeps a cookie that no script can read", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/backends`);
  const { page } = watched;
  await signIn(watched, "wrong");
  await page.getByRole("alert").filter({ hasText: "Wrong" }).waitFor();
  await page.getByLabel("Password").fill(PASSWORD);
  await waitFor("a guess is forgiven", async () => {
    await page.getByRole("button", { name: "Sign in" }).click();
    return await page
      .getByRole("heading", { name: "Backends" })
      .waitFor({ timeout: 1_000 })
      .then(() => true)
      .catch(() => false);
  });
  await page.getByText("gpu-1").waitFor();
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  expect(
    await page.evaluate<string>("document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })"),
  ).not.toContain(PASSWORD);
  expect(await page.content()).not.toContain(PASSWORD);
  await page.reload();
  await page.getByText("gpu-1").waitFor();
  await page.locator("details.asked summary").click();
  expect(await page.locator("details.asked pre").first().innerText()).toContain('curl -H "$AUTH"');
  await expectClean(watched);
  await context.close();
});

describe("two tabs", () => {
  test("one signs in for both, and out for both", async () => {
    const context = await browser.context();
    const one = await browser.open(context, address());
    const two = await browser.open(context, `${address()}#/models`);
    await two.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(one);
    await one.page.getByRole("heading", { name: "Overview" }).waitFor();
    await two.page.getByRole("heading", { name: "Models" }).waitFor();
    await one.page.getByRole("button", { name: "Sign out" }).click();
    await one.page.getByRole("heading", { name: "Sign in" }).waitFor();
    await two.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await two.page.content()).not.toContain("gpu-1");
    await Promise.all([expectClean(one), expectClean(two)]);
    await context.close();
  });
});

test("a sign-in that is over is told, and what was written is still there behind the next", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/configuration/retry`);
  const { page } = watched;
  await signIn(watched);
  const editor = page.locator("#editor");
  await waitFor("the section is there", async () => (await editor.inputValue()).includes("max_attempts"));
  await context.clearCookies();
  // It is checked as it is written.
  await editor.fill(`${await editor.inputValue()}# mine\n`);
  await page.getByText("This sign-in is over.").waitFor();
  expect(await editor.count()).toBe(0);
  await signIn(watched);
  await page.getByRole("heading", { name: "Configuration: retry" }).waitFor();
  await waitFor("what was written is there", async () => (await editor.inputValue()).includes("# mine"));
  await expectClean(watched);
  await context.close();
});

test("what was typed into a form is still there behind the next sign-in, and goes on being checked", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/backends/gpu-1?do=edit`);
  const { page } = watched;
  await signIn(watched);
  await page.getByText("In force", { exact: true }).waitFor();
  await context.clearCookies();
  await page.getByLabel("Weight").fill("7");
  await page.getByText("This sign-in is over.").waitFor();
  await signIn(watched);
  await page.getByText("Would be accepted.").waitFor();
  expect(await page.getByLabel("Weight").inputValue()).toBe("7");
  await expectClean(watched);
  await context.close();
});

test("what was chosen on a page is still chosen behind the next sign-in, and forgotten by another visit", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/usage`);
  const { page } = watched;
  await signIn(watched);
  await page.getByRole("heading", { name: "Usage and cost" }).waitFor();
  await context.clearCookies();
  await page.getByRole("button", { name: "User", exact: true }).click();
  await page.getByText("This sign-in is over.").waitFor();
  await signIn(watched);
  await page.getByRole("button", { name: "User", exact: true, pressed: true }).waitFor();
  await page.evaluate('location.hash = "#/models"');
  await page.getByRole("heading", { name: "Models" }).waitFor();
  await page.evaluate('location.hash = "#/usage"');
  await page.getByRole("button", { name: "User", exact: true, pressed: false }).waitFor();
  await expectClean(watched);
  await context.close();
});

test("a sign-out that does not arrive is told, and is none", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/backends`);
  const { page } = watched;
  await signIn(watched);
  await page.getByRole("heading", { name: "Backends" }).waitFor();
  await context.setOffline(true);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Not signed out: The gateway cannot be reached.").waitFor();
  await page.getByText("gpu-1", { exact: true }).waitFor();
  await context.setOffline(false);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await expectClean(watched, true);
  await context.close();
});

test("a gateway that is away is seen, and the page goes on by itself when it is back", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, address());
  const { page } = watched;
  await signIn(watched);
  await page.getByText("Live", { exact: true }).waitFor();
  await busy.gateway.stop("SIGTERM");
  await page.getByText("Not live", { exact: true }).waitFor();
  await busy.gateway.restart({ awaitHealth: false });
  // Sign-ins are gone with the process.
  await page.getByText("This sign-in is over.").waitFor({ timeout: 30_000 });
  await signIn(watched);
  await page.getByText("Live", { exact: true }).waitFor();
  await expectClean(watched, true);
  await context.close();
});

test("a gateway that says nothing any more, not even that it is there, is not live", async () => {
  const context = await browser.context();
  await context.clock.install();
  const watched = await browser.open(context, address());
  const { page } = watched;
  await signIn(watched);
  await page.getByText("Live", { exact: true }).waitFor();
  process.kill(busy.gateway.pid, "SIGSTOP");
  await context.clock.fastForward(36_000);
  await page.getByText("Not live", { exact: true }).waitFor();
  process.kill(busy.gateway.pid, "SIGCONT");
  await context.clock.fastForward(30_000);
  await page.getByText("Live", { exact: true }).waitFor();
  await expectClean(watched, true);
  await context.close();
});

test("with a token", async () => {
  const other = await startBusyGateway({ auth: { method: "bearer_token", token: "sekret-token" } });
  const context = await browser.context();
  const watched = await browser.open(context, `${other.gateway.url}/dashboard`);
  await watched.page.getByLabel("Token").fill("sekret-token");
  await watched.page.keyboard.press("Enter");
  await watched.page.getByRole("heading", { name: "Overview" }).waitFor();
  await expectClean(watched);
  await context.close();
  await other.close();
});

test("without a method, others than this machine are sent away, in words for people and for programs", async () => {
  const open = await startBusyGateway();
  const forwarded = { "X-Forwarded-For": "203.0.113.9" };
  const page = await open.gateway.fetch("/dashboard", { headers: { ...forwarded, Accept: "text/html" } });
  expect(page.status).toBe(403);
  expect(page.headers.get("content-type")).toContain("text/html");
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await page.text()).toContain("admin.auth");
  const program = await open.gateway.fetch("/dashboard", { headers: forwarded });
  expect(program.status).toBe(403);
  expect(((await program.json()) as { error: { message: string } }).error.message).toContain("proxy");
  await open.close();
});
