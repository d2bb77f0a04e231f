// What open dashboards cost: the gateway's CPU time for each request of a full load, with no client at /admin/events and with
// 200 listeners there, in turns on one process.  sh bin/bun bench/dashboard-listeners.ts

import type { Socket } from "bun";
import { median } from "./figures.ts";
import type { LoadJob } from "./load.ts";
import { runLoad, warmUp } from "./measure.ts";
import { runBenchmark } from "./program.ts";
import { ALL_MODELS, LOAD_SCENARIOS } from "./scenarios.ts";
import { awaitFirstAnswer, type Subject, startSubject, startUpstream, stopSubject } from "./subjects.ts";

const LISTENERS = 200;
const ROUNDS = 12;
const SLICE_MS = 2_000;
const PACED_PER_SECOND = 500;
const WARM_UP_UNITS = 100_000;
/** The aim: so much of the load's CPU time. */
const LIMIT = 0.05;

interface Listeners {
  bytes(): number;
  close(): Promise<void>;
}

/** Sockets that read what comes and do nothing with it. */
async function listen({ port }: Subject, count: number): Promise<Listeners> {
  let bytes = 0;
  let closed = 0;
  const begun: Promise<void>[] = [];
  const sockets: Socket[] = [];
  for (let opened = 0; opened < count; opened++) {
    const first = Promise.withResolvers<void>();
    begun.push(first.promise);
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data(_socket, piece) {
          bytes += piece.length;
          first.resolve();
        },
        close() {
          closed++;
          first.reject(new Error("a listener was dropped"));
        },
      },
    });
    socket.write("GET /admin/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    sockets.push(socket);
  }
  await Promise.all(begun);
  return {
    bytes: () => bytes,
    async close() {
      if (closed > 0) throw new Error(`${closed} listeners were dropped`);
      for (const socket of sockets) socket.end();
      await Bun.sleep(200);
    },
  };
}

async function measure(_options: undefined, temporaryFolder: string): Promise<void> {
  const scenario = LOAD_SCENARIOS.find(({ name }) => name === "plain");
  if (scenario === undefined) throw new Error("there is no scenario plain");
  const upstream = await startUpstream();
  const subject = startSubject("signalbox", { upstreamPort: upstream.port, temporaryFolder, models: ALL_MODELS });
  const slice: LoadJob = { ...scenario.job, measureMs: SLICE_MS };
  const paced: LoadJob = { ...slice, pattern: { kind: "paced", perSecond: PACED_PER_SECOND, connections: 64 } };
  await awaitFirstAnswer(subject);
  await warmUp(subject, scenario.job, WARM_UP_UNITS);
  const figures: Record<number, { perRequest: number; perSecond: number }[]> = { 0: [], [LISTENERS]: [] };
  let heard = 0;

  async function loadWith(count: number, job: LoadJob) {
    const listeners = count === 0 ? undefined : await listen(subject, count);
    const { cpuMicroseconds, requests, seconds } = await runLoad(job, subject);
    heard += listeners?.bytes() ?? 0;
    await listeners?.close();
    return {
      perRequest: cpuMicroseconds / requests,
      perSecond: requests / seconds,
      cpuShare: cpuMicroseconds / 1e6 / seconds,
    };
  }

  async function load(count: number): Promise<void> {
    figures[count]?.push(await loadWith(count, slice));
  }

  /** What listeners take does not grow with the load, so that a small one, which others disturb less, shows it, too. */
  async function tellPaced(): Promise<void> {
    const shares: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const without = await loadWith(0, paced);
      const listening = await loadWith(LISTENERS, paced);
      shares.push(listening.cpuShare - without.cpuShare);
    }
    const [least, most] = [Math.min(...shares), Math.max(...shares)];
    console.log(
      `at ${PACED_PER_SECOND} requests per second: ${(median(shares) * 100).toFixed(1)} % of a core for ${LISTENERS} listeners (${(least * 100).toFixed(1)} to ${(most * 100).toFixed(1)}), which a full load takes whole`,
    );
  }

  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const order = round % 2 === 0 ? [0, LISTENERS] : [LISTENERS, 0];
    for (const count of order) await load(count);
    const [without, listening] = [figures[0]?.at(-1), figures[LISTENERS]?.at(-1)];
    ratios.push((listening?.perRequest ?? 0) / (without?.perRequest ?? 1));
    console.log(
      `round ${round + 1}: ${without?.perRequest.toFixed(1)} and ${listening?.perRequest.toFixed(1)} us of CPU per request`,
    );
  }
  if (heard < LISTENERS * ROUNDS * 1_000) throw new Error("the listeners heard next to nothing");
  const rate = median((figures[0] ?? []).map(({ perSecond }) => perSecond));
  const ratio = median(ratios);
  console.log(`${Math.round(rate)} requests per second without listeners; ${Math.round(heard / 1e6)} MB were heard`);
  console.log(
    `${LISTENERS} listeners: ${ratio.toFixed(3)} times the CPU per request (${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)}); the aim is less than ${1 + LIMIT}`,
  );
  const best = (count: number) => Math.min(...(figures[count] ?? []).map(({ perRequest }) => perRequest));
  console.log(`best to best: ${(best(LISTENERS) / best(0)).toFixed(3)}`);
  await tellPaced();
  await stopSubject(subject);
  await upstream.stop();
}

await runBenchmark(
  () => undefined,
  () => 10 * 60_000,
  measure,
);
