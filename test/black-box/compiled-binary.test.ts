// The self-contained executable that npm run build makes: it starts, answers and stops like the command from source.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RUNTIME_OPTIONS } from "../../src/runtime/runtime-options.ts";
import { copyExecutable } from "../support/executable.ts";

let folder: string;
let binary: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-binary-"));
  binary = join(folder, "signalbox");
  await copyExecutable(binary);
}, 60_000);

afterAll(() => rm(folder, { recursive: true }));

/** Without the variable that bin/signalbox sets, so that the binary has to raise the limit itself. */
function start(words: readonly string[] = [], more: Record<string, string> = {}) {
  const own = { SIGNALBOX_SERVER__BIND_ADDRESS: "127.0.0.1:0", SIGNALBOX_DISCOVERY_PORTS: "none" };
  const env = { PATH: process.env.PATH, HOME: folder, ...own, ...more };
  return Bun.spawn([binary, ...words], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
}

async function addressOf({ stdout }: { stdout: ReadableStream<Uint8Array> }): Promise<string | undefined> {
  let banner = "";
  const decoder = new TextDecoder();
  for await (const chunk of stdout) {
    banner += decoder.decode(chunk);
    if (banner.includes("curl ")) break;
  }
  return /http:\/\/127\.0\.0\.1:\d+/.exec(banner)?.[0];
}

test("options reach the program", async () => {
  const child = start(["--version"]);
  expect(await new Response(child.stdout).text()).toMatch(/^signalbox \d+\.\d+\.\d+\n$/);
  expect(await child.exited).toBe(0);
});

test("it serves chat from files it carries in itself, with the limit of exchanges raised, and drains on SIGTERM", async () => {
  const child = start();
  const address = await addressOf(child);
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "demo", messages: [{ role: "user", content: "Hello!" }] }),
  });
  expect(response.status).toBe(200);
  const page = await (await fetch(`${address}/dashboard`)).text();
  const script = /"(dashboard\/main-\w+\.js)"/.exec(page)?.[1];
  const file = await fetch(`${address}/${script}`);
  expect({ status: file.status, type: file.headers.get("content-type") }).toEqual({
    status: 200,
    type: "text/javascript; charset=utf-8",
  });
  expect((await file.text()).length).toBeGreaterThan(10_000);
  const environment = await Bun.file(`/proc/${child.pid}/environ`)
    .text()
    .catch(() => undefined); // only Linux shows it
  if (environment !== undefined) {
    for (const name of Object.keys(RUNTIME_OPTIONS)) expect(environment).toContain(`${name}=`);
  }
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test("its workers are itself, started again", async () => {
  const child = start([], { SIGNALBOX_SERVER__WORKERS: "2" });
  const address = await addressOf(child);
  const response = await fetch(`${address}/admin/workers`);
  const { workers } = (await response.json()) as { workers: { pid: number; state: string }[] };
  expect(workers.map(({ state }) => state)).toEqual(["running", "running"]);
  expect((await fetch(`${address}/v1/models`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
}, 30_000);
