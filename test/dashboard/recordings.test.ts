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
  expect(offences.filter((offence) => !/status of 40[13]/.test(offence))).toEqual([]);
  expect(await page.evaluate<string[]>("violations")).toEqual([]);
}

test("the page of a request shows it as a conversation, with pictures, tools and feedback", async () => {
  const watched = await signedIn(OPERATOR, `request/${id}`, "Conversation");
  const { page } = watched;
  const talk = page.getByRole("log", { name: "Conversation" });
  const text = await talk.innerText();
  for (const part of ["You know birds.", "Which bird is it?", "tool call look_up", '{"bird":"heron"}', "tool result"]) {
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

test("a replay is started on its page, and shows both answers side by side", async () => {
  const watched = await signedIn(OPERATOR, `replays?ask=${id}`, "Replays");
  const { page } = watched;
  expect(await page.getByLabel("Id of a recording").inputValue()).toBe(id);
  await page.getByLabel("Model", { exact: true }).fill("gpt-5-mini");
  await page.getByLabel("Key id").fill("search");
  await page.getByRole("button", { name: "Start…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click();
  const replay = await waitFor("the replay is over", async () => {
    const { replays } = (await admin.get("/admin/replays")) as { replays: { id: string; status: string }[] };
    return replays[0]?.status === "completed" && replays[0];
  });
  await page.getByRole("link", { name: replay.id }).click();
  const row = page.getByRole("row", { name: new RegExp(`^${id}`) });
  await row.waitFor();
  expect((await row.innerText()).match(/tokens/g)).toHaveLength(2);
  expect(await watched.barriers()).toEqual([]);
  await expectClean(watched);
});
