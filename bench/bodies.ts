// sh bin/bun bench/bodies.ts: what large bodies cost in memory, and how long other requests wait while they are read.
// For each kind of body a new Signalbox gets five at once, sent by a process of its own, beside small requests one after
// another. Prints one line per kind: growth of resident memory, the slowest small request, and how the large ones ended. The
// first line, without large bodies, is what the machine itself adds.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endAllProcesses, endProcess, findFreePort, startProcess } from "./processes.ts";

const MEGABYTE = 1_000_000;
const BODIES_AT_ONCE = 5;
const READY_LIMIT_MS = 10_000;

const chat = (rest: string) => `{"model":"demo","messages":[{"role":"user","content":"hello"}],"metadata":${rest}}`;
const filled = (part: string, size: number) => part.repeat(Math.ceil(size / part.length));

const KINDS: Readonly<Record<string, () => string>> = {
  "small bodies alone": () => chat("{}"),
  "20 MB of {},{}": () => chat(`[${filled("{},", 20 * MEGABYTE)}{}]`),
  "2.9 MB of {},{}": () => chat(`[${filled("{},", 2.9 * MEGABYTE)}{}]`),
  "20 MB of distinct names": () =>
    chat(`{${Array.from({ length: 1_600_000 }, (_, index) => `"k${index}":1`).join(",")}}`),
  "20 MB of [[[[": () => chat("[".repeat(10 * MEGABYTE) + "]".repeat(10 * MEGABYTE)),
  "20 MB of text": () => chat(`"${filled("hello world, hello text. ", 20 * MEGABYTE)}"`),
  "20 MB of text with escapes": () => chat(`"${filled('a line of \\"code\\"\\n', 20 * MEGABYTE)}"`),
  "20 MB of messages": () =>
    `{"model":"demo","messages":[${filled(`{"role":"user","content":"${"hello text ".repeat(200)}"},`, 20 * MEGABYTE)}{"role":"user","content":"x"}]}`,
};

function post(port: number, body: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: "POST", body });
}

/** The sending process: prints the statuses. It lives for a moment also where it has little to send. */
async function send(port: number, kind: string): Promise<void> {
  const body = (KINDS[kind] as () => string)();
  await Bun.sleep(500);
  const statuses = await Promise.all(
    Array.from({ length: BODIES_AT_ONCE }, async () => {
      const response = await post(port, body);
      await response.text();
      return response.status;
    }),
  );
  console.log(statuses.join(" "));
}

/** The backend's process: takes everything, and answers a few bytes. */
function serveBackend(port: number): void {
  const answer = { choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }] };
  Bun.serve({
    port,
    hostname: "127.0.0.1",
    maxRequestBodySize: 64 * MEGABYTE,
    async fetch(request) {
      if (request.method === "GET") return Response.json({ data: [{ id: "demo" }] });
      await request.bytes();
      return Response.json(answer);
    },
  });
}

function residentMegabytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) / 1000;
}

async function measure(kind: string, folder: string, command: readonly string[]): Promise<string> {
  const port = findFreePort();
  const backendPort = findFreePort();
  const backend = startProcess([process.execPath, import.meta.path, "backend", String(backendPort)]);
  const configuration = join(folder, `${port}.json`);
  writeFileSync(
    configuration,
    JSON.stringify({
      server: { bind_address: `127.0.0.1:${port}`, data_dir: join(folder, `data-${port}`) },
      backends: [{ name: "demo", type: "vllm", url: `http://127.0.0.1:${backendPort}`, models: ["demo"] }],
    }),
  );
  const gateway = startProcess([...command, "--config", configuration], { directory: folder });
  const small = JSON.stringify({ model: "demo", messages: [{ role: "user", content: "hello" }], max_tokens: 1 });
  const readyBy = performance.now() + READY_LIMIT_MS;
  while (
    !(await post(port, small).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() > readyBy) throw new Error("Signalbox does not answer");
    await Bun.sleep(50);
  }
  for (let count = 0; count < 200; count++) await (await post(port, small)).text();
  const before = residentMegabytes(gateway.pid);

  const sender = startProcess([process.execPath, import.meta.path, "send", String(port), kind], { readOutput: true });
  let isOver = false;
  const statuses = new Response(sender.stdout as ReadableStream).text().finally(() => {
    isOver = true;
  });
  let highest = before;
  let slowestMs = 0;
  while (!isOver) {
    const startedAtMs = performance.now();
    await (await post(port, small)).text();
    slowestMs = Math.max(slowestMs, performance.now() - startedAtMs);
    highest = Math.max(highest, residentMegabytes(gateway.pid));
    await Bun.sleep(1);
  }
  const line = `${kind.padEnd(28)} +${(highest - before).toFixed(0)} MB, slowest ${slowestMs.toFixed(0)} ms, ${(await statuses).trim()}`;
  await endProcess(gateway);
  await endProcess(backend);
  return line;
}

if (process.argv[2] === "send") await send(Number(process.argv[3]), process.argv[4] as string);
else if (process.argv[2] === "backend") serveBackend(Number(process.argv[3]));
else {
  const command = ["sh", join(import.meta.dir, "../bin/signalbox")];
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bodies-"));
  try {
    for (const kind of Object.keys(KINDS)) console.log(await measure(kind, folder, command));
  } finally {
    await endAllProcesses();
    rmSync(folder, { recursive: true, force: true });
  }
}
