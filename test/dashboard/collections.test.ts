// Collections in a real Chromium: backends, keys, fallback chains and prompt files are added, edited, duplicated and removed by
// forms that are made from schemas, and nothing typed is lost when the gateway refuses, is away, or has another user's change.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, launchBrowser, type Page, untilPage, type WatchedPage } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;
let watched: WatchedPage;
let page: Page;

beforeAll(async () => {
  const config = { circuit_breaker: { enabled: true, failure_threshold: 2, timeout: "1h" } } as const;
  [busy, browser] = await Promise.all([startBusyGateway({ port: await freePort(), config }), launchBrowser()]);
  watched = await browser.open(
    await browser.context({ permissions: ["clipboard-read", "clipboard-write"] }),
    `${busy.gateway.url}/dashboard`,
  );
  page = watched.page;
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

async function told<Answer>(path: string): Promise<Answer> {
  return (await (await busy.gateway.fetch(path)).json()) as Answer;
}

const send = (method: string, path: string, body?: unknown) =>
  busy.gateway.fetch(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });

const version = async () => (await told<{ version: number }>("/admin/config")).version;
const entry = async (name: string) =>
  (await told<{ config: Record<string, unknown>[] }>("/admin/config/backends")).config.find(
    (each) => each.name === name,
  );

async function goTo(path: string, heading: string): Promise<void> {
  await page.evaluate(`location.hash = "#/${path}"`);
  await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
  await untilPage(page, "!document.querySelector('main').textContent.includes('Loading…')");
}

const field = (name: string) => page.getByLabel(new RegExp(`^${name}( \\(required\\))?$`)).first();
const dialog = () => page.locator("dialog");
const button = (name: string) => page.getByRole("button", { name, exact: true });
const accepted = () => page.getByText("Would be accepted.").waitFor();
const command = () => page.locator(".entry-check pre").innerText();

/** The fault that stands at a field, as screen readers read it. */
async function faultAt(name: string): Promise<string> {
  const described = await field(name).getAttribute("aria-describedby");
  const fault = described?.split(" ").find((id) => id.endsWith("-fault"));
  return fault === undefined ? "" : await page.locator(`[id="${fault}"]`).innerText();
}

const faulty = (name: string, fault: RegExp) =>
  waitFor(`${name}: ${fault}`, async () => fault.test(await faultAt(name)));

describe("a backend", () => {
  test("is added after a dry run that says what changes; a refusal stands at its field", async () => {
    const before = await version();
    await goTo("backends", "Backends");
    await page.getByRole("link", { name: "Add a backend" }).click();
    await page.getByRole("heading", { name: "Add a backend" }).waitFor();
    await button("Add the backend").click();
    await faulty("Name", /is required/);
    expect(await page.evaluate<string>("document.activeElement.id")).toBe("field-name");
    await page.keyboard.type("gpu 9");
    await field("Type").selectOption("demo");
    await faulty("Name", /letters, digits/);
    expect(await field("Name").getAttribute("aria-invalid")).toBe("true");
    await field("Name").fill("gpu-1");
    await faulty("Name", /There is a backend "gpu-1" already/);
    await field("Name").fill("gpu-9");
    await field("Weight").fill("900");
    await faulty("Weight", /at most 100/);
    await field("Weight").fill("9");
    await field("Models").fill("small, large");
    await field("API key").fill("sekret-of-gpu-9");
    await page.getByText("Health check", { exact: true }).click();
    await field("Timeout").fill("soon");
    await faulty("Timeout", /duration/);
    await field("Timeout").fill("7s");
    await accepted();
    expect(await field("Timeout").isVisible()).toBe(true);
    expect(await page.locator(".entry-check .changes").innerText()).toContain("gpu-9");
    expect(await command()).toMatch(/admin\/backends[\s\S]*"name":"gpu-9"[\s\S]*"health_check":\{"timeout":"7s"\}/);
    expect(await page.content()).not.toContain("sekret");
    expect(await version()).toBe(before);
    await button("Add the backend").click();
    await page.getByRole("row", { name: /^gpu-9 demo/ }).waitFor();
    expect(await version()).toBe(before + 1);
    expect(await entry("gpu-9")).toMatchObject({
      ...{ type: "demo", weight: 9, models: ["small", "large"], enabled: true, api_key: "********" },
      health_check: { timeout: "7s" },
    });
  });

  test("is edited: only what differs is sent, the secret stays, and a member of a group goes", async () => {
    await page.getByRole("link", { name: "Edit gpu-9" }).click();
    await page.getByRole("heading", { name: "Edit gpu-9" }).waitFor();
    await page.getByText("In force", { exact: true }).waitFor();
    expect(await field("API key").inputValue()).toBe("");
    await field("Timeout").fill("");
    await field("Models").fill("small");
    await page.getByRole("checkbox", { name: "Enabled" }).click();
    await accepted();
    expect(await command()).toContain('{"models":["small"],"enabled":false,"health_check":null,"version":');
    await button("Save").click();
    await page.getByRole("row", { name: /^gpu-9.*disabled/ }).waitFor();
    const changed = await entry("gpu-9");
    expect(changed).toMatchObject({ models: ["small"], enabled: false, api_key: "********", health_check: {} });
  });

  test("is duplicated without its secret, by the keyboard alone", async () => {
    await page.getByRole("link", { name: "Duplicate gpu-9" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Duplicate gpu-9" }).waitFor();
    await waitFor("a name is proposed", async () => (await field("Name").inputValue()) === "gpu-9-copy");
    await accepted();
    await field("Name").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: /^gpu-9-copy.*disabled/ }).waitFor();
    const copy = await entry("gpu-9-copy");
    expect(copy).toMatchObject({ type: "demo", weight: 9, models: ["small"], enabled: false });
    expect(copy).not.toHaveProperty("api_key");
  });

  test("is removed after a dry run", async () => {
    const before = await version();
    await button("Remove gpu-9-copy").click();
    await dialog().locator(".changes", { hasText: "gpu-9-copy" }).waitFor();
    expect(await version()).toBe(before);
    await dialog().getByRole("button", { name: "Remove the backend" }).click();
    await page.getByRole("row", { name: /^gpu-9-copy/ }).waitFor({ state: "detached" });
    expect(await entry("gpu-9-copy")).toBeUndefined();
  });

  test("whose circuit is open says since when, and is reset", async () => {
    for (let asked = 0; asked < 3; asked++) await (await busy.gateway.chat({ model: "mixtral-8x7b" })).text();
    await page.getByRole("row", { name: /^gpu-3.*open since \d\d:\d\d:\d\d/ }).waitFor();
    await button("Reset circuit of gpu-3").click();
    await dialog().getByRole("button", { name: "Reset", exact: true }).click();
    await page.getByText(/The circuit of backend 'gpu-3' was open, and is closed/).waitFor();
    await button("Reset circuit of gpu-3").waitFor({ state: "detached" });
  });

  test("that drains says how many requests are left", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    busy.backends.fast.queue({ headersAfter: held, body: "{}" });
    busy.backends.slow.queue({ headersAfter: held, body: "{}" });
    const asked = busy.gateway.chat({ model: "qwen3-32b" });
    const name = await waitFor("one is asked", async () => {
      const { backends } = await told<{ backends: { name: string; in_flight: number }[] }>("/admin/backends");
      return backends.find(({ in_flight }) => in_flight > 0)?.name;
    });
    await button(`Drain ${name}`).click();
    await dialog().getByRole("button", { name: "Drain", exact: true }).click();
    await page.getByRole("row", { name: new RegExp(`^${name}.*draining 1 request in flight, .* left`) }).waitFor();
    letGo();
    await (await asked).arrayBuffer();
    await page.getByRole("row", { name: new RegExp(`^${name}.*disabled`) }).waitFor();
    await send("PUT", `/admin/backends/${name}`, { enabled: true });
    busy.backends.fast.reset();
    busy.backends.slow.reset();
  });
});

describe("a budget", () => {
  test("is added by a form, and shows what is spent, by whom", async () => {
    const key = { id: "spender", key: "secret-of-the-spender" };
    expect((await send("POST", "/admin/keys", key)).status).toBe(201);
    await goTo("budgets", "Budgets");
    await page.getByRole("link", { name: "Add a budget" }).click();
    await field("ID").fill("per-key");
    await page.getByText("Limit", { exact: true }).click();
    await field("Requests").fill("4");
    await field("Window").fill("day");
    await field("Per").selectOption("key");
    await accepted();
    await button("Add the budget").click();
    await page.getByRole("row", { name: /^per-key.*everything, for each key.*day.*0 of 4 requests/ }).waitFor();
    for (let count = 0; count < 3; count++) {
      const messages = [{ role: "user", content: `question ${count}` }];
      expect((await busy.gateway.chat({ model: "qwen3-32b", messages }, bearer(key.key))).status).toBe(200);
    }
    await page.reload();
    await page.getByRole("row", { name: /^per-key.*3 of 4 requests, 75 %/ }).waitFor();
    await page.getByRole("link", { name: "per-key", exact: true }).click();
    await page.getByRole("row", { name: /^spender.*75 %/ }).waitFor();
  });

  test("is reset with a reason, and removed", async () => {
    await button("Reset per-key").click();
    await page.getByLabel(/^Reason/).fill("a new day");
    await dialog().getByRole("button", { name: "Begin from nothing" }).click();
    await page.getByRole("row", { name: /^per-key.*0 of 4 requests/ }).waitFor();
    expect(JSON.stringify(await told("/admin/config/history"))).toContain("budget per-key reset: a new day");
    await button("Remove per-key").click();
    await dialog().getByRole("button", { name: "Remove the budget" }).click();
    await page.getByText("There is no budget: nothing limits what may be spent.").waitFor();
  });
});

describe("an organization", () => {
  test("is added by a form, shows its keys and what they have spent, and is removed", async () => {
    const key = { id: "member", key: "secret-of-the-member", organization_id: "sales" };
    expect((await send("POST", "/admin/keys", key)).status).toBe(201);
    await goTo("organizations", "Organizations");
    await page.getByRole("link", { name: "Add an organization" }).click();
    await field("ID").fill("sales");
    await field("Requests").fill("4");
    await field("Window").fill("day");
    await accepted();
    await button("Add the organization").click();
    await page.getByRole("row", { name: /^sales enabled 1 .*0 of 4 requests/ }).waitFor();
    const messages = [{ role: "user", content: "a question of a member" }];
    expect((await busy.gateway.chat({ model: "qwen3-32b", messages }, bearer(key.key))).status).toBe(200);
    await page.reload();
    await page.getByRole("row", { name: /^sales.*1 of 4 requests, 25 %/ }).waitFor();
    await goTo("keys", "Keys");
    await page.getByRole("row", { name: /^member.*3 of 4 requests, organization:sales/ }).waitFor();
    await goTo("organizations", "Organizations");
    await button("Remove sales").click();
    await dialog().getByRole("button", { name: "Remove the organization" }).click();
    await page.getByText("There is no organization:").waitFor();
    expect((await send("DELETE", "/admin/keys/member")).status).toBe(200);
  });
});

describe("a route", () => {
  test("is added by a form, shows its targets side by side, and is removed", async () => {
    await goTo("routes", "Routes");
    await page.getByRole("link", { name: "Add a route" }).click();
    await field("Name").fill("smart");
    await field("Targets").fill('[{"model": "qwen3-32b", "weight": 3}, {"model": "absent", "name": "canary"}]');
    await field("Sticky").selectOption("none");
    await accepted();
    await button("Add the route").click();
    await page.getByRole("row", { name: /^smart qwen3-32b \(main\) ?canary 3 ?1 0 ?0/ }).waitFor();
    for (let index = 0; index < 4; index++) {
      expect(
        (await busy.gateway.chat({ model: "smart", messages: [{ role: "user", content: `question ${index}` }] }))
          .status,
      ).toBe(200);
    }
    await page.reload();
    await page.getByRole("row", { name: /canary 3 ?1 4 ?1 0 % ?100 % \(/ }).waitFor();
    await button("Remove smart").click();
    await dialog().getByRole("button", { name: "Remove the route" }).click();
    await page.getByText("There is no route:").waitFor();
  });
});

describe("a key", () => {
  const keyOf = async (id: string) =>
    (await told<{ keys: Record<string, unknown>[] }>("/admin/keys")).keys.find((key) => key.id === id);

  test("is added with a secret that the gateway makes and the page shows once", async () => {
    await goTo("keys", "Keys");
    await page.getByRole("link", { name: "Add a key" }).click();
    await field("ID").fill("night");
    await page.getByRole("checkbox", { name: "files" }).click();
    await field("Rate limit").fill("120");
    await field("Expires at").fill("2099-03-01T12:30:00");
    await accepted();
    await button("Add the key").click();
    await page.getByText("This secret is shown once.").waitFor();
    const secret = await page.locator("main .command pre").innerText();
    expect(secret).toStartWith("sk-signalbox-");
    await button("Copy the secret").click();
    await page.getByText("Copied the secret.").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(secret);
    expect((await busy.gateway.chat({ model: "qwen3-32b" }, bearer(secret))).status).toBe(200);
    await page.getByRole("link", { name: "Done" }).click();
    await page.getByRole("row", { name: /^night.*valid.*2099-03-01 12:30:00.*read, write.*120/ }).waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(await keyOf("night")).toMatchObject({ scopes: ["read", "write"], rate_limit: 120 });
  });

  test("is edited without its secret on the page", async () => {
    await page.getByRole("link", { name: "Edit night" }).click();
    await field("Models").fill("qwen*");
    await accepted();
    expect(await page.getByLabel("Key", { exact: true }).count()).toBe(0);
    expect(await command()).toContain('{"models":["qwen*"],"version":');
    await button("Save").click();
    await page.getByRole("row", { name: /^night.*qwen\*/ }).waitFor();
    expect(await keyOf("night")).toMatchObject({ models: ["qwen*"], scopes: ["read", "write"] });
  });

  test("gets a new secret, shown once, while the old one stays valid", async () => {
    await button("Rotate night").click();
    await page.getByLabel(/^Overlap/).fill("soon");
    await dialog().getByRole("button", { name: "Make a new secret" }).click();
    await dialog().getByRole("alert").filter({ hasText: "overlap" }).waitFor();
    await page.getByLabel(/^Overlap/).fill("2h");
    await dialog().getByRole("button", { name: "Make a new secret" }).click();
    await dialog().getByText("This secret is shown once.").waitFor();
    const secret = await dialog().locator("pre").innerText();
    expect((await busy.gateway.chat({ model: "qwen3-32b" }, bearer(secret))).status).toBe(200);
    await dialog().getByRole("button", { name: "Done" }).click();
    await dialog().waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(secret);
    await page.getByRole("row", { name: /^night.*old one valid until/ }).waitFor();
    await button("End old secret of night").click();
    await dialog().getByRole("button", { name: "End it" }).click();
    await page.getByText("old one valid until").waitFor({ state: "detached" });
    expect(await keyOf("night")).toMatchObject({ previous_until: null });
  });

  test("is disabled, duplicated and removed", async () => {
    await button("Disable night").click();
    await dialog().getByRole("button", { name: "Disable" }).click();
    await page.getByRole("row", { name: /^night disabled/ }).waitFor();
    await page.getByRole("link", { name: "Duplicate night" }).click();
    await waitFor("an id is proposed", async () => (await field("ID").inputValue()) === "night-copy");
    await field("Key").fill("sekret-night-copy");
    await accepted();
    expect(await command()).not.toContain("sekret");
    await button("Add the key").click();
    await page.getByRole("row", { name: /^night-copy disabled/ }).waitFor();
    await button("Remove night-copy").click();
    await dialog().getByRole("button", { name: "Remove the key" }).click();
    await page.getByRole("row", { name: /^night-copy/ }).waitFor({ state: "detached" });
    expect(await keyOf("night-copy")).toBeUndefined();
  });
});

test("a fallback chain is added, edited, duplicated and removed", async () => {
  const chains = async () =>
    (await told<{ config: { fallback_chains: Record<string, string[]> } }>("/admin/config/fallback")).config
      .fallback_chains;
  await goTo("fallback", "Fallback chains");
  await page.getByRole("link", { name: "Add a fallback chain" }).click();
  await field("Model").fill("llama-3.3-70b");
  await faulty("Model", /already/);
  await field("Model").fill("mixtral-8x7b");
  await field("Models").fill("qwen3-32b");
  await accepted();
  await button("Add the fallback chain").click();
  await page.getByRole("row", { name: /^mixtral-8x7b qwen3-32b on/ }).waitFor();
  await page.getByRole("link", { name: "Edit mixtral-8x7b" }).click();
  await field("Models").fill("qwen3-32b, mixtral-8x7b");
  await faulty("Models", /circle/);
  await field("Models").fill("qwen3-32b, gpt-5-mini");
  await accepted();
  await button("Save").click();
  await page.getByRole("row", { name: /^mixtral-8x7b qwen3-32b → gpt-5-mini/ }).waitFor();
  await page.getByRole("link", { name: "Duplicate mixtral-8x7b" }).click();
  await field("Model").fill("small");
  await accepted();
  await button("Add the fallback chain").click();
  await page.getByRole("row", { name: /^small qwen3-32b → gpt-5-mini/ }).waitFor();
  await button("Remove small").click();
  await dialog().getByRole("button", { name: "Remove the fallback chain" }).click();
  await page.getByRole("row", { name: /^small/ }).waitFor({ state: "detached" });
  expect(await chains()).toEqual({
    "llama-3.3-70b": ["qwen3-32b", "gpt-5-mini"],
    "mixtral-8x7b": ["qwen3-32b", "gpt-5-mini"],
  });
});

test("a prompt file is added, edited, duplicated and removed", async () => {
  const content = async (path: string) => (await told<{ content?: string }>(`/admin/config/prompts/${path}`)).content;
  await goTo("prompts", "Prompts");
  await page.getByRole("link", { name: "Add a prompt file" }).click();
  await field("Path").fill("support/terse.md");
  await field("Content").fill("You are terse.\n");
  await button("Add the prompt file").click();
  await page.getByRole("row", { name: /^support\/terse\.md No setting names it/ }).waitFor();
  await page.getByRole("link", { name: "Edit support/terse.md" }).click();
  await waitFor("its text is there", async () => (await field("Content").inputValue()) === "You are terse.\n");
  await field("Content").fill("You are very terse.\n");
  await button("Save").click();
  await page.getByRole("row", { name: /^support\/terse\.md.* 20 B/ }).waitFor();
  await page.getByRole("link", { name: "Duplicate support/terse.md" }).click();
  await waitFor("a path is proposed", async () => (await field("Path").inputValue()) === "support/terse-copy.md");
  await button("Add the prompt file").click();
  await page.getByRole("row", { name: /^support\/terse-copy\.md/ }).waitFor();
  expect(await content("support/terse-copy.md")).toBe("You are very terse.\n");
  await button("Remove support/terse-copy.md").click();
  await dialog().getByRole("button", { name: "Remove the prompt file" }).click();
  await page.getByRole("row", { name: /^support\/terse-copy\.md/ }).waitFor({ state: "detached" });
  expect(await content("support/terse-copy.md")).toBeUndefined();
});

test("another user's change is a conflict that says so; what was typed stays over the present state", async () => {
  await goTo("backends/gpu-2?do=edit", "Edit gpu-2");
  await field("Weight").fill("5");
  await accepted();
  await send("PUT", "/admin/backends/gpu-2", { models: ["qwen3-32b"] });
  await button("Save").click();
  await page
    .getByText(/The change was made for version \d+ of the configuration; the current version is \d+/)
    .waitFor();
  expect(await field("Weight").inputValue()).toBe("5");
  await button("Load the present state").click();
  await waitFor("the present models are shown", async () => (await field("Models").inputValue()) === "qwen3-32b");
  expect(await field("Weight").inputValue()).toBe("5");
  await accepted();
  await button("Save").click();
  await page.getByRole("heading", { name: "Backends", exact: true }).waitFor();
  expect(await entry("gpu-2")).toMatchObject({ weight: 5, models: ["qwen3-32b"] });
});

test("a form goes on where it was when its gateway was stopped", async () => {
  await goTo("backends/gpu-1?do=edit", "Edit gpu-1");
  await busy.gateway.stop("SIGTERM");
  await field("Weight").fill("8");
  await page.locator(".entry-check").getByText("The gateway cannot be reached.").waitFor();
  await button("Save").click();
  expect(await field("Weight").inputValue()).toBe("8");
  await busy.gateway.restart({ awaitHealth: false });
  await accepted();
  expect(await field("Weight").inputValue()).toBe("8");
  await button("Save").click();
  await page.getByRole("heading", { name: "Backends", exact: true }).waitFor();
  expect(await entry("gpu-1")).toMatchObject({ weight: 8 });
});

test("nothing of it broke the policy of the page, or went elsewhere", async () => {
  const unexpected = watched.offences.filter((offence) => !/Failed to load resource|ERR_|EventSource/.test(offence));
  expect(unexpected).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
});

function bearer(secret: string): RequestInit {
  return { headers: { Authorization: `Bearer ${secret}` } };
}
