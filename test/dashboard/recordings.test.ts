// What was recorded, in a real Chromium: a request as a conversation, for those who may read it, and a replay side by side.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { type Browser, launchBrowser, type WatchedPage } from "../support/browser.ts";
import { BUSY_KEYS, type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { freePort } from "../support/free-port.ts";
import { recordingOf } from "../support/recordings.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const OPERATOR = "sekret-operator-token";
const VIEWER = "sekret-viewer-token";
const PICTURE =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let busy: BusyGateway;
let browser: Browser;
let admin: AdminClient;
let id: string;

beforeAll(async () => {
  const auth = {
    method: "bearer_token" as const,
    tokens: [
      { name: "olga", token: OPERATOR, role: "operator" as const },
      { name: "vera", token: VIEWER, role: "viewer" as const },
    ],
  };
  const config = { recording: { enabled: true } };
  [busy, browser] = await Promise.all([startBusyGateway({ port: await freePort(), auth, config }), launchBrowser()]);
  admin = new AdminClient(busy.gateway, { Authorization: `Bearer ${OPERATOR}` });
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${BUSY_KEYS[0]}` };
  const call = { id: "c1", type: "function", function: { name: "look_up", arguments: '{"bird":"heron"}' } };
  const response = await busy.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers,
    body: JSON.stringify({
      model: "gpt-5-mini",
      messages: [
        { role: "system", content: "You know birds." },
        { role: "user", content: "Shall we shoot it?" },
        { role: "assistant", content: null, refusal: "I shoot no birds." },
        {
          role: "user",
          content: [
            { type: "text", text: "Which bird is it?" },
            { type: "image_url", image_url: { url: PICTURE } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "c1", content: "grey, long legs" },
      ],
    }),
  });
  expect(response.status).toBe(200);
  id = response.headers.get("x-signalbox-request-id") as string;
  await recordingOf(admin, id);
  const other = await busy.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers,
    body: JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "And the other one?" }] }),
  });
  await recordingOf(admin, other.headers.get("x-signalbox-request-id") as string);
  const rated = await busy.gateway.fetch("/v1/feedback", {
    method: "POST",
    headers,
    body: JSON.stringify({ request_id: id, score: 0.5, comment: "It was a stork." }),
  });
  expect(rated.status).toBe(201);
});

afterAll(async () => {
  await browser?.close();
  await busy?.close();
});

async function signedIn(token: string, at: string, heading: string): Promise<WatchedPage> {
  const watched = await browser.open(await browser.context(), `${busy.gateway.url}/dashboard#/${at}`);
  await watched.page.getByLabel("Token").fill(token);
  await watched.page.getByRole("button", { name: "Sign in", exact: true }).click();
  await watched.page.getByRole("heading", { name: heading, exact: true }).waitFor();
  return watched;
}

async function expectClean({ page, offences }: WatchedPage): Promise<void> {
  expect(offences.filter((offence) => !/status of 40[013]/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

test("the page of a request shows it as a conversation, with pictures, tools and feedback", async () => {
  const watched = await signedIn(OPERATOR, `request/${id}`, "Conversation");
  const { page } = watched;
  const talk = page.getByRole("log", { name: "Conversation" });
  const text = await talk.innerText();
  for (const part of [
    "You know birds.",
    "I shoot no birds.",
    "Which bird is it?",
    "tool call look_up",
    '{"bird":"heron"}',
    "tool result",
  ]) {
    expect(text).toContain(part);
  }
  await talk.getByRole("img", { name: "Sent as image/png" }).waitFor();
  expect(await page.evaluate<number>("document.querySelector('img.said').naturalWidth")).toBe(1);
  expect(await page.getByText("It was a stork.").innerText()).toBe("It was a stork.");
  expect(await watched.barriers()).toEqual([]);
  await expectClean(watched);
});

test("viewers see the request, and nothing of what was said", async () => {
  const watched = await signedIn(VIEWER, `request/${id}`, "What happened");
  const text = await watched.page.locator("body").innerText();
  expect(text).not.toContain("Which bird is it?");
  expect(text).not.toContain("stork");
  expect(text).not.toContain("Replays");
  await expectClean(watched);
});

test("recordings are found by what was said, and those that are shown are replayed with another prompt and a judge", async () => {
  const watched = await signedIn(OPERATOR, "recordings", "Recordings");
  const { page } = watched;
  const list = page.getByRole("table", { name: "Recordings, the newest first" });
  await list.getByRole("link").nth(1).waitFor(); // there are others
  await page.getByLabel("Words in it").fill("legs");
  await waitFor("one is left", async () => (await list.getByRole("link").count()) === 1);
  expect(await list.getByRole("link").getAttribute("href")).toContain(id);
  expect(await watched.barriers()).toEqual([]);
  await page.getByRole("link", { name: "Replay these" }).click();
  await page.getByRole("heading", { name: "Replays", exact: true }).waitFor();
  expect(await page.getByLabel("Words in it").inputValue()).toBe("legs");
  await page.getByLabel("Asked model").fill("gpt-5-mini");
  await page.getByLabel("As key").fill("search");
  await page.getByLabel("Or instructions").fill("You know herons.");
  await page.getByLabel("Judging model").fill("gpt-5-mini");
  await page.getByRole("button", { name: "Start…" }).click();
  const dialog = page.getByRole("dialog");
  // What is missing is said at its field.
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  await dialog.getByText("judge.rubric", { exact: true }).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("Rubric of the judge").fill("The shorter one is better.");
  await page.getByRole("button", { name: "Start…" }).click();
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("heading", { name: "Replay", exact: true }).waitFor();
  await page.getByText("completed", { exact: true }).waitFor();
  const text = await page.locator("main").innerText();
  for (const part of ["1 of 1", "You know herons.", "gpt-5-mini: The shorter one is better.", "no verdict"]) {
    expect(text).toContain(part);
  }
  expect(await page.getByRole("table", { name: "Both sides together" }).getByRole("row").count()).toBe(3);
  expect(await watched.barriers()).toEqual([]);
  await expectClean(watched);
});

test("a replay of one recording is started on its page, shows both answers side by side, and is deleted", async () => {
  const watched = await signedIn(OPERATOR, `replays?id=${id}`, "Replays");
  const { page } = watched;
  expect(await page.getByLabel("Id of a recording").inputValue()).toBe(id);
  await page.getByLabel("Asked model").fill("gpt-5-mini");
  await page.getByLabel("As key").fill("search");
  await page.getByRole("button", { name: "Start…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("completed", { exact: true }).waitFor();
  const row = page.getByRole("row", { name: new RegExp(`^${id}`) });
  await row.waitFor();
  expect((await row.innerText()).match(/tokens in/g)).toHaveLength(2);
  const [replay] = ((await admin.get("/admin/replays")) as { replays: { id: string }[] }).replays;
  await page.getByRole("link", { name: "All replays" }).click();
  await page.getByRole("button", { name: `Delete ${replay?.id}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText(`${replay?.id} is deleted.`).waitFor();
  await admin.refused(404, "GET", `/admin/replays/${replay?.id}`);
  await expectClean(watched);
});
