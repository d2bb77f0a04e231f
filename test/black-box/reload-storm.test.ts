// A hundred edits in ten seconds under a hundred streams: none is cut, no request fails, and nothing piles up.

import { expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { chat, chatEvents, eventStream } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const EDITS = 100;
const STREAMS = 100;
const PACE_MS = 100;
const KEPT_VERSIONS = 100;
/** What a process may grow by that has seen a hundred configurations and dropped them again. */
const MOST_GROWTH_MIB = 100;

const textsOf = (index: number): string[] =>
  Array.from({ length: EDITS }, (_, part) => `stream ${index} part ${part} `);

/** Two backends that serve the same model; every stream goes on by one event with every edit. */
function startBackends(editsDone: Promise<void>[]) {
  const answer = (request: { json: <Shape>() => Shape }) => {
    const { position, stream } = request.json<{ position?: number; stream?: boolean }>();
    if (stream !== true) return chat("hello");
    return eventStream(chatEvents(textsOf(position ?? 0)), { beforeChunk: (chunk) => editsDone[chunk - 2] });
  };
  return [bed.backend({ answer }), bed.backend({ answer })] as const;
}

/** Something else in every section that requests meet, and every second time one backend fewer. */
function configAfter(edit: number, [stays, comesAndGoes]: readonly { url: string }[]): ConfigDocument {
  const backends = [{ name: "stays", url: stays?.url, models: ["m", "n"], weight: 1 + (edit % 7) }];
  if (edit % 2 === 0) backends.push({ name: "comes-and-goes", url: comesAndGoes?.url, models: ["m"], weight: 3 });
  return {
    backends: backends as NonNullable<ConfigDocument["backends"]>,
    logging: { access_log: false },
    routing: { selection_strategy: edit % 3 === 0 ? "RoundRobin" : "WeightedRoundRobin" },
    retry: { max_attempts: 2 + (edit % 5) },
    rate_limiting: { enabled: edit % 4 === 0, limits: { per_client: { requests_per_second: 100_000 + edit } } },
    timeouts: { request: `${300 + edit}s` },
    health_checks: { interval: `${30 + (edit % 3)}s` },
    global_prompts: { default: `prompt ${edit}` },
    fallback: { enabled: edit % 2 === 1, fallback_chains: { n: ["m"] } },
    api_keys: { keys: [{ key: `sk-sekret-${edit}` }] },
    response_cache: { enabled: edit % 5 === 0 },
    model_aliases: { [`alias-${edit}`]: "m" },
  };
}

function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Versions that are kept, newest first. */
async function keptVersions(gateway: ProcessGateway): Promise<number[]> {
  const response = await gateway.fetch("/admin/config/history?limit=100");
  const { history } = (await response.json()) as { history: { version: number }[] };
  return history.map(({ version }) => version);
}

async function newestVersion(gateway: ProcessGateway): Promise<number> {
  return (await keptVersions(gateway))[0] ?? 0;
}

test(`${EDITS} edits under ${STREAMS} running streams`, async () => {
  const edits = Array.from({ length: EDITS }, () => Promise.withResolvers<void>());
  const backends = startBackends(edits.map(({ promise }) => promise));
  await using gateway = await startGatewayProcess({ config: configAfter(0, backends) });
  const edit = (number: number) => {
    const text = gateway.configText(configAfter(number, backends));
    if (number % 3 === 0) return writeFileSync(gateway.configPath, text);
    writeFileSync(`${gateway.configPath}.new`, text);
    renameSync(`${gateway.configPath}.new`, gateway.configPath);
  };

  const streams = await Promise.all(Array.from({ length: STREAMS }, () => RawConnection.open(gateway.port)));
  for (const [position, stream] of streams.entries()) {
    const body = { model: "m", stream: true, messages: [{ role: "user", content: "hi" }], position };
    stream.write(postBytes("/v1/chat/completions", JSON.stringify(body)));
  }
  await waitFor("every stream has begun", () => streams.every((stream) => stream.partialBody().body.length > 0));
  for (const backend of backends) expect(backend.busyConnections).toBeGreaterThan(0);
  const before = { mib: residentMib(gateway.pid), files: openFiles(gateway.pid) };

  const statuses: number[] = [];
  const startedMs = performance.now();
  for (const [index, { resolve }] of edits.entries()) {
    edit(index + 1);
    resolve();
    const response = await gateway.chat({ temperature: 0 });
    await response.text();
    statuses.push(response.status);
    await Bun.sleep(Math.max(0, startedMs + (index + 1) * PACE_MS - performance.now())); // the pace is the test
  }
  const tookMs = performance.now() - startedMs;

  const isDone = (stream: RawConnection): boolean => stream.isClosed || stream.partialBody().complete;
  await waitFor("every stream has ended", () => streams.every(isDone), { intervalMs: 20 });
  const cut = streams.flatMap((stream, index) => {
    const { body, complete } = stream.partialBody();
    return complete && body.toString() === chatEvents(textsOf(index)).join("") ? [] : [index];
  });
  expect(cut).toEqual([]);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  for (const stream of streams) stream.close();

  // The last edit is in force, and the backend that came and went is not left behind.
  await waitFor("the last edit is in force", async () => {
    const rows = await gateway.backends();
    return rows.find(({ name }) => name === "stays")?.weight === 1 + (EDITS % 7) && rows.length === 2;
  });
  await gateway.waitUntilIdle();
  const applied = (await newestVersion(gateway)) - 1;
  expect(applied).toBeGreaterThan(EDITS / 5); // edits that follow each other closely are one version
  expect(applied).toBeLessThanOrEqual(EDITS);
  // A refused edit would be one: each is whole in the end, also those that a stalled machine shows half written.
  const problems = gateway.printed.logEntries.filter(({ level }) => level === "warn" || level === "error");
  expect(problems).toEqual([]);

  // A few more, one by one, until old versions have to go.
  const last = KEPT_VERSIONS + 5;
  for (let version = applied + 2; version <= last; version++) {
    edit(EDITS + version);
    await waitFor("a version of this edit", async () => (await newestVersion(gateway)) === version);
  }
  expect(await keptVersions(gateway)).toEqual(Array.from({ length: KEPT_VERSIONS }, (_, index) => last - index));
  await waitFor("no more open files than before", () => openFiles(gateway.pid) <= before.files);
  const after = { mib: residentMib(gateway.pid), files: openFiles(gateway.pid) };
  console.log(
    `${EDITS} edits in ${(tookMs / 1000).toFixed(1)} s made ${applied} versions; ` +
      `memory ${before.mib.toFixed(0)} -> ${after.mib.toFixed(0)} MiB, open files ${before.files} -> ${after.files}`,
  );
  expect(after.mib - before.mib).toBeLessThan(MOST_GROWTH_MIB);
}, 60_000);
