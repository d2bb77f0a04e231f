// What an installed command must do in an empty folder: tell its version, serve a chat and the dashboard without
// configuration, take a health check, and end in order.

import { expect } from "bun:test";
import packageJson from "../../package.json";
import { within } from "../support/wait-for.ts";

export interface InstalledCommand {
  command: readonly string[];
  /** Empty, and the working folder of all. */
  folder: string;
  /** All that it sees. */
  environment: Record<string, string>;
  /** Ended as a terminal ends it, with SIGINT for all of its processes: npm does not hand SIGTERM on to what npx runs. */
  byTerminal?: boolean;
}

const START_MS = 30_000;
const END_MS = 15_000;

export async function smoke(installed: InstalledCommand): Promise<void> {
  const version = await run(installed, "--version");
  expect(version).toEqual({ exitCode: 0, output: `signalbox ${packageJson.version}\n` });
  const gateway = spawn(installed, [], { SIGNALBOX_SERVER__BIND_ADDRESS: "127.0.0.1:0" });
  const log = new Response(gateway.stderr).text();
  try {
    const url = await within("the banner names the address", addressIn(gateway.stdout), START_MS);
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "demo", messages: [{ role: "user", content: "Hello!" }] }),
    });
    expect(answer.status).toBe(200);
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    expect(choices[0]?.message.content).toContain("Signalbox");
    for (const path of ["/healthz", "/readyz", "/v1/models", "/openapi.json", "/metrics"]) {
      expect({ path, status: (await fetch(`${url}${path}`)).status }).toEqual({ path, status: 200 });
    }
    await holdsWhatItReads(url);
    const check = await run(installed, "--health-check-url", `${url}/health`);
    expect(check.exitCode).toBe(0);
  } finally {
    if (installed.byTerminal) process.kill(-gateway.pid, "SIGINT");
    else gateway.kill("SIGTERM");
  }
  const exitCode = await within("the gateway ends", gateway.exited, END_MS);
  expect(installed.byTerminal ? [0, 130] : [0]).toContain(exitCode);
  expect(await within("its log ends", log, END_MS)).toContain("stopped");
}

/** The files of the dashboard, and the facts about models: neither lies beside an executable. */
async function holdsWhatItReads(url: string): Promise<void> {
  const page = await (await fetch(`${url}/dashboard`)).text();
  const files = [...page.matchAll(/(?:src|href)="(dashboard\/[^"]+)"/g)].map(([, path = ""]) => `/${path}`);
  expect(files.map((path) => path.slice(path.lastIndexOf(".")))).toEqual([".css", ".js", ".js"]);
  for (const path of files) expect({ path, status: (await fetch(url + path)).status }).toEqual({ path, status: 200 });
  const model = (await (await fetch(`${url}/v1/models/demo-image`)).json()) as { metadata?: object };
  expect(model.metadata).toMatchObject({ display_name: expect.any(String) });
}

async function run(installed: InstalledCommand, ...words: string[]) {
  const child = spawn(installed, words);
  const [output, exitCode] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  return { exitCode, output };
}

function spawn(
  { command, folder, environment }: InstalledCommand,
  words: readonly string[],
  more: Record<string, string> = {},
) {
  const env = { ...environment, HOME: folder, ...more };
  return Bun.spawn([...command, ...words], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
}

/** The address that the banner of the start names. */
async function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of output) {
    text += decoder.decode(chunk, { stream: true });
    const url = /listens on (http:\S+)/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`there is no address in: ${text}`);
}
