// Recordings as files, and files as recordings: OpenAI's shapes, out and in.

import { beforeAll, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { answerWell } from "../support/all-formats.ts";
import { CLIENT_FORMATS, requestOf } from "../support/format-readings.ts";
import type { Gateway } from "../support/gateway.ts";
import { found, ownIdOf, recordingConfig, recordingOf } from "../support/recordings.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: answerWell, models: ["m"] });
let gateway: Gateway;
let admin: AdminClient;

beforeAll(async () => {
  gateway = await bed.gateway({ config: recordingConfig(backend, { retention: "1h" }) });
  admin = new AdminClient(gateway);
});

const linesOf = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("conversations of every client format are exported in both shapes", async () => {
  for (const format of CLIENT_FORMATS) {
    for (const stream of [false, true]) {
      const [path, body] = requestOf(format, "m", `Export ${format}?`, stream);
      const response = await gateway.post(path, body);
      await response.text();
      await recordingOf(admin, ownIdOf(response));
    }
  }
  const failed = await gateway.post("/v1/chat/completions", {
    model: "none",
    messages: [{ role: "user", content: "Export?" }],
  });
  await failed.text();
  const tuning = await gateway.fetch("/admin/recordings/export?shape=finetuning&text=export");
  expect(tuning.headers.get("content-type")).toStartWith("application/jsonl");
  const examples = linesOf(await tuning.text());
  expect(examples).toHaveLength(2 * CLIENT_FORMATS.length);
  for (const { messages } of examples) {
    expect(messages).toHaveLength(2);
    expect(messages[0]).toMatchObject({ role: "user", content: expect.stringMatching(/^Export [a-z-]+\?/) });
    expect(messages[1]).toEqual({ role: "assistant", content: "hello" });
  }
  const evals = linesOf(await (await gateway.fetch("/admin/recordings/export?shape=evals&text=export&limit=1")).text());
  expect(evals).toHaveLength(1);
  expect(evals[0]).toMatchObject({ item: { model: "m" }, sample: { output_text: "hello" } });
  await admin.refused(400, "GET", "/admin/recordings/export?shape=odd");
});

test("a file is imported as a data set, which replays use, and age does not remove", async () => {
  const lines = [
    {
      messages: [
        { role: "user", content: "What is 2+2?" },
        { role: "assistant", content: "4" },
      ],
    },
    { item: { input: "What is 3+3?", ideal: "6" } },
  ].map((line) => JSON.stringify(line));
  const body = [...lines, "no JSON", '{"messages": []}', ""].join("\n");
  const imported = await admin.ok("POST", "/admin/datasets?name=sums", body, {
    headers: { "Content-Type": "application/jsonl" },
  });
  expect(imported).toMatchObject({ name: "sums", imported: 2, refused: 2, problems: [{ line: 3 }, { line: 4 }] });
  expect(await admin.get("/admin/datasets")).toMatchObject({ datasets: [{ name: "sums", recordings: 2 }] });
  await admin.ok("PATCH", "/admin/config/recording", { retention: "1ms" });
  await waitFor("the others are removed", async () => (await found(admin, "limit=500")).length === 2);
  const { id } = await admin.ok("POST", "/admin/replays", { recordings: { dataset: "sums" }, model: "m" });
  const replay = await waitFor("the replay is over", async () => {
    const told = await admin.get(`/admin/replays/${id}`);
    return told.status === "completed" && told;
  });
  const items = replay.items as { recorded: { text: string }; replayed: { text: string } }[];
  expect(items.map(({ recorded }) => recorded.text).toSorted()).toEqual(["4", "6"]);
  expect(items.map(({ replayed }) => replayed.text)).toEqual(["hello", "hello"]);
  await admin.refused(400, "POST", "/admin/datasets?name=a/b", "{}");
  expect(await admin.ok("DELETE", "/admin/recordings?dataset=sums")).toMatchObject({ deleted: 2 });
});
