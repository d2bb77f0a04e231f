// Names and texts from clients and backends that would like to be markup: they are shown as what they are.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, untilPage, type WatchedPage } from "../support/browser.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chatStream, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";

setDefaultTimeout(60_000);

const IMAGE = '<img src=x onerror="alert(1)">';
const SCRIPT = "</script><script>alert(1)</script>";
const HANDLER = `"' onmouseover=alert(1) x="`;
const LINK = "javascript:alert(1)";
const MODELS = [IMAGE, SCRIPT, HANDLER, LINK, "{{constructor.constructor('alert(1)')()}}", "=HYPERLINK(1)"];

let gateway: Gateway;
let browser: Browser;
let watched: WatchedPage;
const backend = new FakeBackend({ models: MODELS, answer: () => chatStream([IMAGE, SCRIPT]) });
const failing = new FakeBackend({ models: ["bad"], answer: () => failure(400, `${IMAGE}${SCRIPT}`) });

beforeAll(async () => {
  [gateway, browser] = await Promise.all([
    startGateway({
      config: {
        backends: [
          { name: "plain", url: backend.url, models: MODELS },
          { name: "bad", url: failing.url, models: ["bad"] },
        ],
        fallback: { fallback_chains: { [IMAGE]: [SCRIPT, LINK] } },
        api_keys: { keys: [{ id: IMAGE, key: "sekret-key", user_id: SCRIPT, organization_id: HANDLER }] },
      },
    }),
    launchBrowser(),
  ]);
  const headers = { Authorization: "Bearer sekret-key" };
  for (const model of [...MODELS, "bad", `missing ${IMAGE}`]) {
    await (await gateway.chat({ model, stream: true }, { headers })).arrayBuffer();
  }
  await (await gateway.chat({ model: IMAGE }, { headers: { ...headers, "X-Request-ID": "a.b_c-1" } })).arrayBuffer();
  watched = await browser.open(await browser.context(), `${gateway.url}/dashboard`);
});

afterAll(async () => {
  await browser?.close();
  await gateway?.close();
  backend.stop();
  failing.stop();
});

test("every page shows them as texts", async () => {
  const { page, offences } = watched;
  const { requests } = (await (await gateway.fetch("/admin/requests")).json()) as { requests: { id: string }[] };
  const paths = [
    "overview",
    "requests",
    "errors",
    "backends",
    "models",
    "fallback",
    `fallback/${encodeURIComponent(IMAGE)}?do=edit`,
    "keys",
    `keys/${encodeURIComponent(IMAGE)}?do=copy`,
    "backends/plain?do=edit",
    "prompts",
    "usage",
    "limits",
    "configuration/backends",
    "configuration/api_keys",
    "playground",
  ];
  const seen: string[] = [];
  for (const path of [...paths, ...requests.map(({ id }) => `request/${id}`)]) {
    await page.evaluate(`location.hash = "#/${path}"`);
    await page.locator("main h1").waitFor();
    await untilPage(page, "!document.querySelector('main').textContent.includes('Loading…')");
    expect(
      await page.locator("main img, main script, main iframe, [onerror], [onmouseover], a[href^='javascript']").count(),
    ).toBe(0);
    seen.push(await page.evaluate<string>("document.body.innerText"));
  }
  for (const name of MODELS) expect(seen.some((text) => text.includes(name))).toBe(true);
  expect(seen.some((text) => text.includes(`missing ${IMAGE}`))).toBe(true);
  expect(offences.filter((offence) => !/Failed to load resource/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
});

test("what a model writes is a text", async () => {
  const { page, offences } = watched;
  await page.evaluate('location.hash = "#/playground"');
  await page.getByLabel("Model", { exact: true }).fill(IMAGE);
  await page.locator("#prompt").fill(SCRIPT);
  await page.locator("#prompt").press("Enter");
  await page.locator(".message.assistant", { hasText: `${IMAGE}${SCRIPT}` }).waitFor();
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(offences.filter((offence) => !/Failed to load resource/.test(offence))).toEqual([]);
});

test("addresses that were made by others lead nowhere else", async () => {
  const { page, offences } = watched;
  for (const hash of [
    `#/request/${encodeURIComponent(IMAGE)}`,
    `#/${IMAGE}`,
    "#/__proto__",
    "#/constructor",
    `#/requests?model=${encodeURIComponent(SCRIPT)}`,
    "#/configuration/..%2F..%2Fx",
    "#/fallback/__proto__?do=edit",
    "#/prompts/..%2F..%2Fx.md?do=edit",
    `#/keys/${encodeURIComponent(SCRIPT)}?do=copy`,
    "#/backends/..%2Fkeys?do=edit",
    "#//evil.example/x",
  ]) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator("main h1").waitFor();
    expect(await page.locator("main img, main script").count()).toBe(0);
  }
  expect(offences.filter((offence) => !/Failed to load resource/.test(offence))).toEqual([]);
});
