// What hostile hooks cost the requests of others: p99 of requests without a hook at a fixed rate, alone and while requests with a
// hook of each kind are under way, in turns on one process.  sh bin/bun bench/hostile-hooks.ts

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { median } from "./figures.ts";
import type { LoadJob } from "./load.ts";
import { runLoad, warmUp } from "./measure.ts";
import { runBenchmark } from "./program.ts";
import { awaitFirstAnswer, type Subject, startSubject, startUpstream, stopSubject } from "./subjects.ts";
import { modelFor } from "./wire.ts";

const ROUNDS = 5;
const SLICE_MS = 4_000;
const PER_SECOND = 200;
const WARM_UP_UNITS = 20_000;
/** Requests with a hostile hook that are under way at a time. */
const HOSTILE_AT_ONCE = 4;
/** So many milliseconds may p99 be later. */
const LIMIT_MS = 5;

const MEBIBYTE = 1024 * 1024;

/** What a module does with each request. */
const MODULES: Readonly<Record<string, string>> = {
  "loops without an end": "for (;;);",
  "takes 2 GB": "const held = []; for (let at = 0; at < 2048; at++) held.push(new Uint8Array(2 ** 20).fill(1));",
  throws: "throw new Error('thrown');",
  "never answers": "return new Promise(() => {});",
  "ends its process": "process.exit(1);",
  "returns nonsense": "return change({ body: { nonsense: true } });",
  "returns 3 MB": "return change({ body: { ...event.body, more: 'x'.repeat(3 * 2 ** 20) } });",
  "returns 100,000 levels":
    "let deep = []; for (let at = 0; at < 1e5; at++) deep = [deep]; return change({ body: { deep } });",
};

const BOMB = Bun.gzipSync(new Uint8Array(256 * MEBIBYTE));
const LARGE = JSON.stringify({ verdict: "change", body: { more: "x".repeat(3 * MEBIBYTE) } });

/** As much as is taken of it. */
function endless(mebibytes: number): ReadableStream<Uint8Array> {
  const piece = new Uint8Array(MEBIBYTE).fill(32);
  let left = mebibytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
}

/** What a server of a hook answers. */
const SERVERS: Readonly<Record<string, () => Response | Promise<Response>>> = {
  "server: never answers": () => new Promise(() => {}),
  "server: 2 GB": () => new Response(endless(2048)),
  "server: a bomb in gzip": () => new Response(BOMB, { headers: { "Content-Encoding": "gzip" } }),
  "server: 100,000 levels": () => new Response(`{"verdict":"pass","x":${"[".repeat(1e5)}${"]".repeat(1e5)}}`),
  "server: 3 MB": () => new Response(LARGE),
};

const OTHERS = modelFor({ kind: "plain", bytes: 1024 });
/** A model of its own for each hook. */
const modelOf = (index: number) => modelFor({ kind: "plain", bytes: 2048 + index });

const JOB: LoadJob = {
  pattern: { kind: "paced", perSecond: PER_SECOND, connections: 32 },
  answer: { kind: "plain", bytes: 1024 },
  promptBytes: 1000,
  warmUpMs: 0,
  measureMs: SLICE_MS,
};

function hooksIn(folder: string, serverUrl: string): object[] {
  const common = (index: number) => ({ name: `hostile-${index}`, match: { model: modelOf(index) } });
  const modules = Object.values(MODULES).map((code, index) => {
    const module = join(folder, `hostile-${index}.ts`);
    writeFileSync(
      module,
      `import { change, defineHook } from "signalbox/hooks";\nexport default defineHook({ request(event) { ${code} } });\n`,
    );
    return { ...common(index), module };
  });
  const servers = Object.keys(SERVERS).map((name, index) => ({
    ...common(modules.length + index),
    url: `${serverUrl}/${encodeURIComponent(name)}`,
    events: ["request"],
  }));
  return [...modules, ...servers];
}

/** Requests with a hook, one after the other on each of several connections, until they are stopped. */
function attack({ port }: Subject, model: string) {
  let isOver = false;
  let count = 0;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello!" }] });
  const headers = { "Content-Type": "application/json" };
  const asking = Array.from({ length: HOSTILE_AT_ONCE }, async () => {
    while (!isOver) {
      const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: "POST", headers, body });
      await response.bytes();
      count++;
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(asking);
    return count;
  };
}

async function measure(_options: undefined, folder: string): Promise<void> {
  const names = [...Object.keys(MODULES), ...Object.keys(SERVERS)];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => SERVERS[decodeURIComponent(new URL(request.url).pathname.slice(1))]?.() ?? new Response("{}"),
  });
  const upstream = await startUpstream();
  const models = [OTHERS, ...names.map((_, index) => modelOf(index))];
  const surroundings = { upstreamPort: upstream.port, temporaryFolder: folder, models };
  const hooks = hooksIn(folder, server.url.origin);
  const subject = startSubject("signalbox", surroundings, { settings: { hooks } });
  await awaitFirstAnswer(subject, OTHERS);
  await warmUp(subject, JOB, WARM_UP_UNITS);
  const pids = subject.running === undefined ? [] : [subject.running.child.pid];
  const p99 = async () => (await runLoad(JOB, subject, pids)).latencyMs.p99;
  let worst = 0;
  for (const [index, name] of names.entries()) {
    const later: number[] = [];
    let count = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const alone = await p99();
      const stop = attack(subject, modelOf(index));
      const beside = await p99();
      count += await stop();
      later.push(beside - alone);
    }
    const [least, most] = [Math.min(...later), Math.max(...later)];
    worst = Math.max(worst, median(later));
    const figures = `${median(later).toFixed(1)} ms (${least.toFixed(1)} to ${most.toFixed(1)})`;
    console.log(`${name.padEnd(24)} p99 of others is ${figures} later, beside ${count} requests`);
  }
  await stopSubject(subject);
  await upstream.stop();
  await server.stop(true);
  console.log(`the most is ${worst.toFixed(1)} ms; the aim is less than ${LIMIT_MS}`);
  if (worst >= LIMIT_MS) process.exitCode = 1;
}

await runBenchmark(
  () => undefined,
  () => 20 * 60_000,
  measure,
);
