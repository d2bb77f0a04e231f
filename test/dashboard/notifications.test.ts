// The page of notifications in a real Chromium: the list, and a test that says what the receiver answered.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;
let watched: WatchedPage;
const bodies: string[] = [];
const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    bodies.push(await request.text());
    return new Response("<b>thanks</b>");
  },
});

beforeAll(async () => {
  const notifications = [
    {
      name: "ops",
      url: `http://127.0.0.1:${receiver.port}/sekret-path`,
      events: ["budget" as const],
      allow_private: true,
    },
  ];
  [busy, browser] = await Promise.all([
    startBusyGateway({ port: await freePort(), config: { notifications } }),
    launchBrowser(),
  ]);
  watched = await browser.open(await browser.context({}), `${busy.gateway.url}/dashboard#/notifications`);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
  receiver.stop(true);
});

test("Send test posts one event, and shows the answer as text", async () => {
  const { page } = watched;
  await page.getByRole("heading", { name: "Notifications", exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Send a test to ops", exact: true }).click();
  await page.locator("dialog").getByRole("button", { name: "Send test", exact: true }).click();
  await page
    .getByText(/The receiver answered with HTTP 200 after \d+ ms: <b>thanks<\/b>/)
    .first()
    .waitFor();
  expect(bodies.map((body) => JSON.parse(body).type)).toEqual(["test"]);
  expect(await page.content()).not.toContain("sekret-path");
});

test("a receiver is added after a dry run, edited with its url left masked, and removed", async () => {
  const { page, offences } = watched;
  const field = (name: string) => page.getByLabel(new RegExp(`^${name}( \\(required\\))?$`, "i")).first();
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const accepted = () => page.getByText("Would be accepted.").waitFor();
  const configured = async () => {
    const { config } = (await (await busy.gateway.fetch("/admin/config/notifications")).json()) as {
      config: Record<string, unknown>[];
    };
    return config.find(({ name }) => name === "team");
  };
  await page.getByRole("link", { name: "Add a notification" }).click();
  await page.getByRole("heading", { name: "Add a notification" }).waitFor();
  await field("Name").fill("team");
  await field("URL").fill("https://hooks.example/sekret-team");
  await field("Format").selectOption("slack");
  await accepted();
  expect(await configured()).toBeUndefined();
  expect(await watched.barriers()).toEqual([]);
  await button("Add the notification").click();
  await page.getByRole("row", { name: /^team hooks\.example slack/ }).waitFor();
  expect(await configured()).toMatchObject({ format: "slack", url: "********" });

  await page.getByRole("link", { name: "Edit team" }).click();
  await page.getByRole("heading", { name: "Edit team" }).waitFor();
  await field("Format").selectOption(""); // json, by default
  await accepted();
  await button("Save").click();
  await page.getByRole("row", { name: /^team hooks\.example json/ }).waitFor();
  expect(await page.content()).not.toContain("sekret");

  await button("Remove team").click();
  await page.locator("dialog").getByRole("button", { name: "Remove the notification" }).click();
  await page.getByRole("row", { name: /^team/ }).waitFor({ state: "detached" });
  expect(await configured()).toBeUndefined();
  await page.getByRole("row", { name: /^ops/ }).waitFor();
  expect(offences).toEqual([]);
});
