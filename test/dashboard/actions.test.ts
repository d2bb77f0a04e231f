// Everything that can be done in the dashboard, done in a real Chromium and looked for at the admin API.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  type Browser,
  type Context,
  launchBrowser,
  type Page,
  untilPage,
  type WatchedPage,
} from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

let busy: BusyGateway;
let browser: Browser;
let context: Context;
let watched: WatchedPage;
let page: Page;

beforeAll(async () => {
  [busy, browser] = await Promise.all([startBusyGateway(), launchBrowser()]);
  await busy.load(90);
  context = await browser.context({ permissions: ["clipboard-read", "clipboard-write"] });
  watched = await browser.open(context, `${busy.gateway.url}/dashboard`);
  page = watched.page;
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

async function told<Answer>(path: string): Promise<Answer> {
  return (await (await busy.gateway.fetch(path)).json()) as Answer;
}

async function goTo(path: string, heading: string | RegExp): Promise<void> {
  await page.evaluate(`location.hash = "#/${path}"`);
  await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
  await untilPage(page, "!document.querySelector('main').textContent.includes('Loading…')");
}

const dialog = () => page.locator("dialog");

/** What the dialog shows as the command line, once it is what it should be. */
async function commandLike(pattern: RegExp): Promise<string> {
  let shown = "";
  await waitFor(
    `the dialog shows ${pattern}`,
    async () => {
      shown = await dialog().locator("pre").innerText();
      return pattern.test(shown);
    },
    { explain: () => shown },
  );
  return shown;
}

/** The button does what the command line says. */
async function confirm(verb: string, command: RegExp): Promise<void> {
  await commandLike(command);
  await dialog().getByRole("button", { name: verb, exact: true }).click();
  await dialog().waitFor({ state: "detached" });
}

describe("backends", () => {
  test("one is drained and put back", async () => {
    await goTo("backends", "Backends");
    await page.getByRole("button", { name: "Drain gpu-2" }).click();
    await confirm("Drain", /^curl [\s\S]*-X PUT [\s\S]*\/admin\/backends\/gpu-2[\s\S]*"enabled":false/);
    await page.getByRole("button", { name: "Enable gpu-2" }).waitFor();
    expect((await busy.gateway.backend("gpu-2")).enabled).toBe(false);
    await page.getByRole("row", { name: /gpu-2.*(disabled|draining)/ }).waitFor();
    await page.getByRole("button", { name: "Enable gpu-2" }).click();
    await confirm("Enable", /"enabled":true/);
    await page.getByRole("row", { name: /gpu-2.*ready/ }).waitFor();
  });

  test("one gets another weight; what is no weight cannot be sent", async () => {
    await page.getByRole("button", { name: "Weight of gpu-1" }).click();
    const weight = page.getByLabel("Weight, 0 to 100");
    await weight.fill("1000");
    await waitFor("it cannot be sent", () => dialog().getByRole("button", { name: "Set the weight" }).isDisabled());
    await weight.fill("7");
    await confirm("Set the weight", /\/admin\/backends\/gpu-1\/weight[\s\S]*"weight":7/);
    expect((await busy.gateway.backend("gpu-1")).weight).toBe(7);
  });

  test("the command that the dialog shows does the same", async () => {
    await page.getByRole("button", { name: "Weight of gpu-1" }).click();
    await page.getByLabel("Weight, 0 to 100").fill("4");
    const command = await commandLike(/"weight":4/);
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    const shell = Bun.spawn(["sh", "-c", command], { stdout: "ignore", stderr: "ignore" });
    if ((await shell.exited) === 127) return; // there is no curl here
    expect((await busy.gateway.backend("gpu-1")).weight).toBe(4);
  });

  test("one that fails shows its open circuit and why", async () => {
    await page.getByRole("row", { name: /gpu-4.*(unhealthy|down).*refused/ }).waitFor();
    await page.getByRole("row", { name: /gpu-3.*100 % failed/ }).waitFor();
  });
});

describe("requests", () => {
  test("filters are in the address and are those of the API", async () => {
    await goTo("requests", "Requests");
    await page.getByText("More filters").click();
    await page.locator("#filter-backend").fill("gpu-3");
    await page.locator("#filter-status").fill("5xx");
    const { total } = await told<{ total: number }>("/admin/requests?backend=gpu-3&status=5xx");
    expect(total).toBeGreaterThan(0);
    await page.getByText(`${total} match`).waitFor();
    expect(page.url()).toEndWith("#/requests?backend=gpu-3&status=5xx");
    await page.reload();
    await page.getByText(`${total} match`).waitFor();
    await page.getByText("More filters").click();
    expect(await page.locator("#filter-backend").inputValue()).toBe("gpu-3");
    await page.locator("#filter-backend").fill("");
    await page.locator("#filter-status").fill("");
  });

  test("one is told in sentences, on a line of time, with everybody who could have been asked", async () => {
    const { requests } = await told<{
      requests: { id: string; request_id: string; attempts: number; outcome: string }[];
    }>("/admin/requests?backend=gpu-3&status=2xx");
    const { id, request_id } = requests.find(({ attempts }) => attempts > 1) as (typeof requests)[number];
    await goTo(`request/${id}`, "Request");
    const story = await told<{ summary: string; explanation: string[]; steps: { candidates?: { why: string }[] }[] }>(
      `/admin/requests/${id}`,
    );
    await page.getByText(story.summary, { exact: true }).waitFor();
    for (const sentence of story.explanation) await page.getByText(sentence, { exact: true }).first().waitFor();
    expect((await page.locator(".timeline .who").allInnerTexts()).map((text) => text.trim())).toEqual(
      expect.arrayContaining(["gpu-3", "end"]),
    );
    for (const { why } of story.steps.flatMap(({ candidates = [] }) => candidates)) {
      expect(await page.getByText(why, { exact: true }).count()).toBeGreaterThan(0);
    }
    await page.getByRole("button", { name: "Copy id" }).click();
    await page.getByText("Copied the id.").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(request_id);
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.getByText("Copied the command.").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(
      `curl ${busy.gateway.url}/admin/requests/${id}`,
    );
  });

  test("one that runs is followed to its end", async () => {
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    busy.backends.fast.queue({ headersAfter: held, body: "{}" });
    busy.backends.slow.queue({ headersAfter: held, body: "{}" });
    const asked = busy.gateway.chat({ model: "qwen3-32b" }, { headers: { "X-Request-ID": "held-back" } });
    await waitFor("it is known", async () => (await busy.gateway.fetch("/admin/requests/held-back")).status === 200);
    await goTo("request/held-back", "Request");
    await page.locator(".head").getByText("running").waitFor();
    letGo();
    await (await asked).arrayBuffer();
    await page
      .locator(".head")
      .getByText(/200 ok|502 failed/)
      .waitFor();
    busy.backends.fast.reset();
    busy.backends.slow.reset();
  });
});

describe("errors", () => {
  test("a test error is recorded, listed and counted", async () => {
    await goTo("errors", "Errors");
    await page.getByRole("button", { name: "Record a test error" }).click();
    await dialog().locator("#test-type").selectOption("status_429");
    await dialog().locator("#test-backend").selectOption("gpu-1");
    await confirm("Record it", /\/admin\/debug\/error[\s\S]*"type":"status_429","backend":"gpu-1"/);
    await waitFor("it is known", async () => {
      const { by_status } = await told<{ by_status: Record<string, number> }>("/admin/errors/stats");
      return by_status["429"] === 1;
    });
    await page.getByRole("row", { name: /429/ }).first().waitFor();
  });

  test("they are chosen by type", async () => {
    await page.getByRole("button", { name: /^Only model_not_found/ }).click();
    const rows = page.getByRole("region", { name: /^Errors/ }).locator("tbody tr");
    await waitFor("only those are left", async () => {
      const texts = await rows.allInnerTexts();
      return texts.length > 0 && texts.every((text) => text.includes("model not found"));
    });
  });
});

describe("usage", () => {
  test("rows are about what was chosen, and the CSV has the same", async () => {
    await goTo("usage", "Usage and cost");
    await page.getByRole("button", { name: "Model", exact: true }).click();
    await page.getByRole("button", { name: "Organization", exact: true }).click();
    await page.getByRole("columnheader", { name: "Organization" }).waitFor();
    expect(page.url()).toContain("by=key%2Corganization");
    const link = (await page.getByRole("link", { name: "CSV" }).getAttribute("href")) as string;
    const csv = await (await fetch(link)).text();
    expect(csv.split("\r\n")[0]).toStartWith("key_id,organization_id,requests");
    const rows = page.getByRole("region", { name: "Usage" }).locator("tbody tr");
    expect(csv.trim().split("\r\n").length - 1).toBe(await rows.count());
    await page.getByRole("row", { name: /assistant.*product/ }).waitFor();
  });
});

describe("configuration", () => {
  const editor = () => page.locator("#editor");
  const version = async () => (await told<{ version: number }>("/admin/config")).version;

  async function edit(from: RegExp, to: string): Promise<void> {
    await waitFor("the section is there", async () => from.test(await editor().inputValue()));
    await editor().fill((await editor().inputValue()).replace(from, to));
  }

  test("an edit is checked while it is written, told as a difference, and applied", async () => {
    await goTo("configuration/retry", "Configuration: retry");
    const before = await version();
    await edit(/max_attempts: \d+/, "max_attempts: many");
    await page.getByText(/1 problem/).waitFor();
    await page.locator(".problems", { hasText: "max_attempts" }).waitFor();
    await waitFor("it cannot be applied", () => page.getByRole("button", { name: "Apply…" }).isDisabled());
    await edit(/max_attempts: many/, "max_attempts: 5");
    await page.getByText("Would be accepted.").waitFor();
    expect(await page.locator(".diff ins").allInnerTexts()).toEqual([expect.stringContaining("max_attempts: 5")]);
    expect(await page.locator(".diff del").allInnerTexts()).toEqual([expect.stringContaining("max_attempts: 3")]);
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByText("Would be accepted.").waitFor();
    expect(await version()).toBe(before);
    await page.getByRole("button", { name: "Apply…" }).click();
    await confirm("Apply", /\/admin\/config\/import/);
    await page.getByText("In force", { exact: true }).waitFor();
    expect(await version()).toBe(before + 1);
    expect(await told("/admin/config/retry")).toMatchObject({ config: { max_attempts: 5 } });
  });

  test("as JSON, staged, and then applied", async () => {
    await page.getByRole("button", { name: "JSON" }).click();
    await edit(/"max_attempts": 5/, '"max_attempts": 6');
    await page.getByText("Would be accepted.").waitFor();
    await page.getByRole("button", { name: "Stage…" }).click();
    await confirm("Stage", /"apply":false/);
    await page.getByRole("heading", { name: "Staged" }).waitFor();
    expect(await told("/admin/config/retry")).toMatchObject({ config: { max_attempts: 5 } });
    await page.getByRole("button", { name: "Apply staged…" }).click();
    await confirm("Apply", /\/admin\/config\/apply/);
    await page.getByRole("heading", { name: "Staged" }).waitFor({ state: "detached" });
    expect(await told("/admin/config/retry")).toMatchObject({ config: { max_attempts: 6 } });
  });

  test("an earlier version is gone back to, after it is told what that changes", async () => {
    const now = await version();
    await page.getByRole("button", { name: `Go back to version ${now - 1}` }).click();
    await dialog().getByText("retry.max_attempts").first().waitFor();
    await confirm("Go back", new RegExp(`/admin/config/rollback/${now - 1}`));
    await page.getByRole("row", { name: new RegExp(`^${now + 1} .*in force`) }).waitFor();
    expect(await told("/admin/config/retry")).toMatchObject({ config: { max_attempts: 5 } });
  });

  test("of several sections that differ, only those that are chosen are taken back", async () => {
    const now = await version();
    for (const [section, body] of Object.entries({ retry: { max_attempts: 7 }, logging: { level: "debug" } })) {
      await busy.gateway.fetch(`/admin/config/${section}`, { method: "PATCH", body: JSON.stringify(body) });
    }
    await page.getByRole("button", { name: `Go back to version ${now}`, exact: true }).click();
    await dialog().getByRole("checkbox", { name: "retry" }).waitFor();
    expect(await dialog().getByRole("button", { name: "Go back" }).isDisabled()).toBe(true);
    await dialog().getByRole("checkbox", { name: "retry" }).click();
    await dialog().getByText("retry.max_attempts").first().waitFor();
    expect(await dialog().getByText("logging.level").count()).toBe(0);
    await confirm("Go back", /"sections":\["retry"\]/);
    await page.getByRole("row", { name: new RegExp(`^${now + 3} .*in force`) }).waitFor();
    expect(await told("/admin/config/retry")).toMatchObject({ config: { max_attempts: 5 } });
    expect(await told("/admin/config/logging")).toMatchObject({ config: { level: "debug" } });
  });

  test("what somebody else changes is told to whoever is editing, and nothing written is lost", async () => {
    await goTo("configuration/deduplication", "Configuration: deduplication");
    await page.getByText("Live", { exact: true }).waitFor();
    await waitFor("the section is there", async () => (await editor().inputValue()) !== "");
    await editor().fill(`${await editor().inputValue()}# mine\n`);
    await busy.gateway.fetch("/admin/config/retry", { method: "PATCH", body: '{"max_attempts": 2}' });
    await page.getByText("The configuration was changed meanwhile.").waitFor();
    expect(await editor().inputValue()).toContain("# mine");
    await page.getByRole("button", { name: "Load it again" }).click();
    await page.getByText("In force", { exact: true }).waitFor();
  });

  test("a backend and a key are added", async () => {
    await goTo("configuration/backends", "Configuration: backends");
    await edit(/\nbackends:\n|^backends:\n/, "backends:\n  - name: gpu-5\n    type: demo\n    models: [small]\n");
    await page.getByText("Would be accepted.").waitFor();
    await page.getByRole("button", { name: "Apply…" }).click();
    await confirm("Apply", /gpu-5/);
    await goTo("backends", "Backends");
    await page.getByRole("row", { name: /^gpu-5 demo · small ready/ }).waitFor();
    await goTo("configuration/api_keys", "Configuration: api_keys");
    await edit(/\n( *)keys:\n/, "\n  keys:\n    - id: night-shift\n      key: sekret-night\n");
    await page.getByText("Would be accepted.").waitFor();
    await page.getByRole("button", { name: "Apply…" }).click();
    await confirm("Apply", /night-shift/);
    await waitFor("its secret is masked", async () => {
      const text = await editor().inputValue();
      return text.includes("night-shift") && !text.includes("sekret");
    });
    await goTo("keys", "Keys");
    await page.getByRole("row", { name: /^night-shift/ }).waitFor();
    const headers = { Authorization: "Bearer sekret-night" };
    expect((await busy.gateway.chat({ model: "small" }, { headers })).status).toBe(200);
  });

  test("what is written and not applied is still there for whoever comes back, and in either format", async () => {
    await goTo("configuration/logging", "Configuration: logging");
    await edit(/$/, "# later\n");
    await page.getByRole("button", { name: "JSON" }).click();
    await edit(/"level": "\w+"/, '"level": "warn"');
    await goTo("backends", "Backends");
    await busy.gateway.fetch("/admin/config/retry", { method: "PATCH", body: '{"max_attempts": 4}' });
    await goTo("configuration/retry", "Configuration: retry");
    await page.getByRole("link", { name: "logging · edited" }).click();
    await waitFor("the text is there", async () => (await editor().inputValue()).includes("# later"));
    expect(
      await page.evaluate<boolean>(
        "!dispatchEvent(new Event('beforeunload', { cancelable: true }))", // the browser asks before it leaves
      ),
    ).toBe(true);
    // It was written before somebody else's change, which it must not undo unseen.
    await page.getByText("The configuration was changed meanwhile.").waitFor();
    await page.getByRole("button", { name: "JSON" }).click();
    await waitFor("the other one, too", async () => (await editor().inputValue()).includes('"warn"'));
    for (const format of ["JSON", "YAML"]) {
      await page.getByRole("button", { name: format }).click();
      await page.getByRole("button", { name: "Undo edits" }).click();
      await page.getByText("In force", { exact: true }).waitFor();
    }
    expect(await page.getByRole("link", { name: "logging", exact: true }).count()).toBe(1);
    expect(await page.evaluate<boolean>("dispatchEvent(new Event('beforeunload', { cancelable: true }))")).toBe(true);
  });

  test("secrets are masked, and stay when a section is applied", async () => {
    await goTo("configuration/api_keys", "Configuration: api_keys");
    await edit(/permissive/, "blocking");
    expect(await editor().inputValue()).not.toContain("sekret");
    await page.getByText("Would be accepted.").waitFor();
    await page.getByRole("button", { name: "Apply…" }).click();
    await confirm("Apply", /\/admin\/config\/import/);
    await waitFor("keys are required", async () => (await busy.gateway.chat({ model: "qwen3-32b" })).status === 401);
    const { status } = await busy.gateway.chat(
      { model: "qwen3-32b" },
      { headers: { Authorization: "Bearer sekret-batch" } },
    );
    expect(status).toBe(200);
  });
});

describe("playground", () => {
  test("a key that is missing is told, and an answer is streamed with it", async () => {
    await goTo("playground?model=qwen3-32b", "Playground");
    await page.locator("#prompt").fill("Is the line clear?");
    await page.locator("#prompt").press("Enter");
    await page.getByRole("alert").filter({ hasText: /key/i }).waitFor();
    await page.getByLabel("API key (optional)").fill("sekret-batch");
    await page.locator("#prompt").fill("Is the line clear?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator(".message.assistant", { hasText: "The signal stands at go" }).waitFor();
    await page.getByText(/from gpu-\d · .*first token after .* · done after .* tokens/).waitFor();
    await page.getByRole("link", { name: "what happened" }).click();
    await page.getByRole("heading", { name: "Request", exact: true }).waitFor();
  });

  test("its command line has no key of anybody", async () => {
    await goTo("playground", "Playground");
    expect(await page.content()).not.toContain("sekret");
    await page.getByText("This request with curl").click();
    expect(await page.locator("details pre").first().innerText()).toMatch(/\/v1\/chat\/completions/);
  });
});

describe("cache", () => {
  test("it is cleared, for a model and as a whole", async () => {
    await busy.load(60);
    await goTo("limits", "Limits and cache");
    const entries = async () => (await told<{ entries: number }>("/admin/response-cache")).entries;
    const before = await entries();
    expect(before).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Clear cached answers of qwen3-32b" }).click();
    await confirm("Clear", /-X DELETE [\s\S]*model=qwen3-32b/);
    expect(await entries()).toBeLessThan(before);
    await page.getByRole("button", { name: "Clear the response cache" }).click();
    await confirm("Clear", /-X DELETE/);
    expect(await entries()).toBe(0);
  });
});

test("a refused change says why, and stays on the screen", async () => {
  await goTo("backends", "Backends");
  await page.getByRole("button", { name: "Weight of gpu-4" }).click();
  await page.getByLabel("Weight, 0 to 100").fill("9");
  await busy.gateway.fetch("/admin/backends/gpu-4", { method: "DELETE" });
  await dialog().getByRole("button", { name: "Set the weight" }).click();
  await dialog().getByRole("alert").filter({ hasText: "gpu-4" }).waitFor();
  await page.keyboard.press("Escape");
});

test("nothing of it broke the policy of the page, or went elsewhere", async () => {
  // Refusals that were meant to happen: a key that was missing, a backend that was gone, versions that were looked for.
  const unexpected = watched.offences.filter((offence) => !/Failed to load resource/.test(offence));
  expect(unexpected).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
});
