// The dashboard under roles: signing in at an OpenID provider in a real browser, and what each role is offered.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, type Context, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";
import { OIDC_CLIENT, startOidcProvider, type TestProvider } from "../support/oidc-provider.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;
let provider: TestProvider;

beforeAll(async () => {
  const port = await freePort();
  provider = await startOidcProvider([`http://127.0.0.1:${port}`]);
  provider.roles.set("ann", ["boss"]);
  provider.roles.set("olga", ["on-call"]);
  provider.roles.set("vera", ["reader"]);
  const oidc = {
    ...OIDC_CLIENT,
    issuer: provider.issuer,
    scopes: ["openid", "profile", "roles"],
    roles: { admin: ["boss"], operator: ["on-call"], viewer: ["reader"] },
  };
  [busy, browser] = await Promise.all([
    startBusyGateway({ auth: { method: "oidc", oidc }, port, config: { response_cache: { enabled: true } } }),
    launchBrowser(),
  ]);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
  await provider?.close();
});

const address = () => `${busy.gateway.url}/dashboard`;
const signInLink = ({ page }: WatchedPage) =>
  page.getByRole("link", { name: `Sign in with ${new URL(provider.issuer).host}` });

async function signIn(watched: WatchedPage, name: string, button = "Continue"): Promise<void> {
  await signInLink(watched).click();
  await watched.page.getByLabel("Account").fill(name);
  await watched.page.getByRole("button", { name: button }).click();
}

async function signedIn(name: string, hash: string): Promise<WatchedPage & { context: Context }> {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}${hash}`);
  await signIn(watched, name);
  return { ...watched, context };
}

/** The provider is another host, and refusals are told by the console of a browser. */
async function expectClean({ page, offences }: WatchedPage): Promise<void> {
  const allowed = (offence: string) =>
    /status of 40[13]/.test(offence) || offence.startsWith(`request to another host: ${provider.issuer}/`);
  expect(offences.filter((offence) => !allowed(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

test("a person signs in, comes back to the page asked for with the role, stays in, and signs out", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/backends`);
  const { page } = watched;
  await signInLink(watched).waitFor();
  expect(await watched.barriers()).toEqual([]);
  await signIn(watched, "ann");
  await page.getByRole("heading", { name: "Backends" }).waitFor();
  await page.getByText("gpu-1").first().waitFor();
  expect(page.url()).toBe(`${address()}#/backends`);
  expect(await page.locator(".signed-in").innerText()).toBe("ann (admin)");
  expect(await page.getByRole("link", { name: "Edit gpu-1" }).count()).toBe(1);
  const session = (await context.cookies()).find(({ name }) => name.startsWith("signalbox_session"));
  expect(session).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/admin" });
  await page.reload();
  await page.getByText("gpu-1").first().waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signInLink(watched).waitFor();
  await page.reload();
  await signInLink(watched).waitFor();
  await expectClean(watched);
  await context.close();
});

test("an operator runs what there is, and is not offered to change it", async () => {
  const watched = await signedIn("olga", "#/backends");
  const { page, context } = watched;
  await page.getByRole("button", { name: "Drain gpu-2" }).waitFor();
  expect(await page.locator(".signed-in").innerText()).toBe("olga (operator)");
  for (const label of ["Edit gpu-2", "Duplicate gpu-2", "Add a backend"]) {
    expect([label, await page.getByRole("link", { name: label }).count()]).toEqual([label, 0]);
  }
  expect(await page.getByRole("button", { name: "Remove gpu-2" }).count()).toBe(0);
  await page.getByRole("button", { name: "Drain gpu-2" }).click();
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByRole("button", { name: "Enable gpu-2" }).waitFor();
  await page.goto(`${address()}#/keys`);
  await page.getByRole("button", { name: "Rotate search" }).waitFor();
  expect(await page.getByRole("link", { name: "Add a key" }).count()).toBe(1);
  await page.goto(`${address()}#/configuration/retry`);
  await page.getByText("Only the role admin changes the configuration.").waitFor();
  await untilPage(page, "document.querySelector('#editor')?.value.includes('max_attempts') ?? false");
  expect(await page.evaluate<boolean>("document.querySelector('#editor').readOnly")).toBe(true);
  expect(await page.getByRole("button", { name: /Go back to version/ }).count()).toBe(0);
  expect(await watched.barriers()).toEqual([]);
  await expectClean(watched);
  await context.close();
});

test("a viewer is offered nothing that changes anything", async () => {
  const watched = await signedIn("vera", "#/backends");
  const { page, context } = watched;
  await page.getByText("gpu-1").first().waitFor();
  expect(await page.locator(".signed-in").innerText()).toBe("vera (viewer)");
  const changing = page.getByRole("button", {
    name: /^(Drain|Enable|Weight|Remove|Reset|Rotate|Disable|Clear|Record)/,
  });
  const links = page.getByRole("link", { name: /^(Edit|Duplicate|Add)/ });
  for (const [hash, shown] of [
    ["backends", "gpu-1"],
    ["keys", "search"],
    ["budgets", "There is no budget"],
    ["errors", "Failed requests"],
    ["fallback", "llama-3.3-70b"],
  ] as const) {
    await page.goto(`${address()}#/${hash}`);
    await page.getByText(shown).first().waitFor();
    expect([hash, await changing.count(), await links.count()]).toEqual([hash, 0, 0]);
  }
  await expectClean(watched);
  await context.close();
});

test("a person without a role, and a sign-in that was given up, are told so; the page asked for is kept", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, `${address()}#/keys`);
  const { page } = watched;
  await signIn(watched, "ann", "Cancel");
  await page.getByRole("alert").filter({ hasText: "refused the sign-in" }).waitFor();
  await signIn(watched, "stranger");
  await page.getByRole("alert").filter({ hasText: "has no role here" }).waitFor();
  expect(await watched.barriers()).toEqual([]);
  expect(new URL(page.url()).hash).toBe("#/keys");
  provider.roles.set("stranger", ["reader"]);
  await signInLink(watched).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await expectClean(watched);
  await context.close();
});

test("an answer of a sign-in that did not begin here is told on the page", async () => {
  const context = await browser.context();
  const watched = await browser.open(context, address());
  const { page } = watched;
  await signInLink(watched).click();
  await page.getByLabel("Account").waitFor();
  await page.goto(`${busy.gateway.url}/admin/oidc/callback?state=unknown`);
  await page.getByRole("alert").filter({ hasText: "took too long" }).waitFor();
  await context.close();
});
