// The load generator: one job, given as JSON in the first argument, over raw sockets; prints one JSON result.
// Any answer that is not a whole 200 ends the job with an error, because figures with errors in them mean nothing.

import type { Socket } from "bun";
import { CLIENT_FORMATS, type ClientFormatName, expectedMarks } from "./formats.ts";
import { MarkerCount } from "./marker-count.ts";
import { type CpuSample, cpuBetween, residentBytes, sampleCpu } from "./processes.ts";
import { ResponseReader } from "./response-reader.ts";
import { type Answer, modelFor } from "./wire.ts";

/** closed: every connection sends its next request at once. paced: requests start at a fixed rate, whatever happens. */
export type Pattern =
  | { kind: "closed"; connections: number }
  | { kind: "paced"; perSecond: number; connections: number; total?: number };

export interface LoadJob {
  pattern: Pattern;
  /** The client's format; default chat. */
  client?: ClientFormatName;
  answer: Answer;
  promptBytes: number;
  warmUpMs: number;
  measureMs: number;
}

export interface AimedLoadJob extends LoadJob {
  port: number;
  headers?: Readonly<Record<string, string>>;
  /** Processes whose CPU time and memory are read while the load runs. */
  pids: number[];
}

export interface Percentiles {
  p50: number;
  p99: number;
  p999: number;
  highest: number;
}

export interface LoadResult {
  /** Requests that ended inside the measured time, and the chunks that arrived in it. */
  requests: number;
  chunks: number;
  seconds: number;
  cpuMicroseconds: number;
  cpuMicrosecondsByThread: Record<string, number>;
  /** Part of the CPU time outside of the kernel, from 0 to 1. */
  userShare: number;
  latencyMs: Percentiles;
  firstChunkMs: Percentiles;
  residentBytes: { median: number; highest: number };
  /** Fewest requests that were open at one time while measuring. */
  fewestOpen: number;
}

export type LoadOutput = { result: LoadResult } | { error: string };

interface Connection {
  reader: ResponseReader;
  /** Pieces of text, or the text of a whole answer; ends of streams. */
  texts: MarkerCount;
  ends: MarkerCount | undefined;
  unsent: Buffer | undefined;
  busy: boolean;
  wantedAt: number;
  firstChunkSeen: boolean;
}

/** Stands at the end of every prompt, and is counted up, so that no request is like another. */
const COUNTER = "0000000000";
const SAMPLE_EVERY_MS = 100;
const DRAIN_LIMIT_MS = 15_000;

async function run(job: AimedLoadJob): Promise<LoadResult> {
  const request = requestBytes(job);
  const counterAt = request.lastIndexOf(COUNTER);
  const expected = expectedMarks(job.answer, job.client ?? "chat");
  const { pattern } = job;
  const limit = pattern.kind === "paced" ? (pattern.total ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  const idle: Socket<Connection>[] = [];
  const waitingSince: number[] = [];
  const latencies: number[] = [];
  const firstChunks: number[] = [];
  const memory: number[] = [];
  const state = { measuring: false, stopped: false, begun: 0, open: 0, requests: 0, texts: 0, fewestOpen: 0 };
  /** Answers of one job differ in their ids only, which are all as long. */
  let answerBytes: number | undefined;
  let sent = 0;
  let windowFrom = 0;
  let windowTo = Number.POSITIVE_INFINITY;
  const failed = Promise.withResolvers<never>();

  function begin(socket: Socket<Connection>, wantedAt: number): void {
    const connection = socket.data;
    connection.busy = true;
    connection.wantedAt = wantedAt;
    connection.firstChunkSeen = false;
    connection.reader.reset();
    connection.texts.reset();
    connection.ends?.reset();
    state.open++;
    request.write(String(++sent).padStart(COUNTER.length, "0"), counterAt, "latin1");
    write(socket, request);
  }

  function write(socket: Socket<Connection>, bytes: Buffer): void {
    const written = Math.max(0, socket.write(bytes));
    // A copy: the counter of the next request is written into the same bytes.
    socket.data.unsent = written < bytes.length ? Buffer.from(bytes.subarray(written)) : undefined;
  }

  function want(): void {
    if (state.begun >= limit) return;
    state.begun++;
    const now = performance.now();
    const socket = idle.pop();
    if (socket) begin(socket, now);
    else waitingSince.push(now);
  }

  function receive(socket: Socket<Connection>, data: Buffer): void {
    const connection = socket.data;
    if (!connection.busy) throw new Error("bytes without a request");
    const { reader, texts, ends } = connection;
    const before = texts.count;
    reader.push(data);
    const now = performance.now();
    if (state.measuring) state.texts += texts.count - before;
    const measured = connection.wantedAt >= windowFrom && connection.wantedAt < windowTo;
    if (!connection.firstChunkSeen && texts.count > 0) {
      connection.firstChunkSeen = true;
      if (measured) firstChunks.push(now - connection.wantedAt);
    }
    if (!reader.complete) return;
    if (texts.count !== expected.times && job.answer.kind === "stream") {
      throw new Error(`an answer has ${texts.count} pieces of text instead of ${expected.times}`);
    }
    if (texts.count === 0) throw new Error("an answer has not its text");
    if (ends !== undefined && ends.count !== 1) throw new Error(`an answer has ${ends.count} ends`);
    answerBytes ??= reader.payload;
    if (reader.payload !== answerBytes) {
      throw new Error(`an answer has ${reader.payload} bytes, the first one has ${answerBytes}`);
    }
    if (measured) latencies.push(now - connection.wantedAt);
    if (state.measuring) state.requests++;
    state.open--;
    connection.busy = false;
    const waiting = waitingSince.shift();
    if (waiting !== undefined) begin(socket, waiting);
    else if (pattern.kind === "closed" && !state.stopped) begin(socket, now);
    else idle.push(socket);
  }

  const connect = () =>
    Bun.connect<Connection>({
      hostname: "127.0.0.1",
      port: job.port,
      socket: {
        open(socket) {
          const texts = new MarkerCount(expected.text);
          const ends = expected.end === undefined ? undefined : new MarkerCount(expected.end);
          socket.data = {
            reader: new ResponseReader((payload) => {
              texts.push(payload);
              ends?.push(payload);
            }),
            texts,
            ends,
            unsent: undefined,
            busy: false,
            wantedAt: 0,
            firstChunkSeen: false,
          };
        },
        data(socket, data) {
          try {
            receive(socket, data);
          } catch (error) {
            failed.reject(error);
          }
        },
        drain(socket) {
          if (socket.data.unsent) write(socket, socket.data.unsent);
        },
        close(socket) {
          if (socket.data.busy) failed.reject(new Error("the connection was closed before the answer ended"));
          else if (!state.stopped) failed.reject(new Error("a kept connection was closed"));
        },
        error(_socket, error) {
          failed.reject(error);
        },
      },
    });

  async function drive(): Promise<LoadResult> {
    for (let index = 0; index < pattern.connections; index++) idle.push(await connect());
    if (pattern.kind === "closed") {
      for (const socket of idle.splice(0)) begin(socket, performance.now());
    }
    const pacer = pattern.kind === "paced" ? startPacer(pattern.perSecond, want) : undefined;
    await Bun.sleep(job.warmUpMs);

    state.measuring = true;
    state.fewestOpen = state.open;
    const sampler = setInterval(() => {
      memory.push(residentBytes(job.pids));
      state.fewestOpen = Math.min(state.fewestOpen, state.open);
    }, SAMPLE_EVERY_MS);
    windowFrom = performance.now();
    const cpuBefore: CpuSample = sampleCpu(job.pids);
    await Bun.sleep(job.measureMs);
    const cpuAfter = sampleCpu(job.pids);
    windowTo = performance.now();
    const cpu = cpuBetween(cpuBefore, cpuAfter);
    const { requests, texts } = state;
    clearInterval(sampler);
    clearInterval(pacer);
    state.measuring = false;
    state.stopped = true;

    // Everything that was begun must also end well; nothing is cut off.
    while (state.open > 0 || waitingSince.length > 0) {
      if (performance.now() - windowTo > DRAIN_LIMIT_MS) throw new Error(`${state.open} answers never ended`);
      await Bun.sleep(5);
    }
    return {
      requests,
      chunks: job.answer.kind === "stream" ? texts : 0,
      seconds: (windowTo - windowFrom) / 1000,
      cpuMicroseconds: cpu.ns / 1000,
      cpuMicrosecondsByThread: Object.fromEntries(
        Object.entries(cpu.nsByThread).map(([name, ns]) => [name, ns / 1000]),
      ),
      userShare: cpu.userShare,
      latencyMs: percentiles(latencies),
      firstChunkMs: percentiles(firstChunks),
      residentBytes: { median: percentiles(memory).p50, highest: percentiles(memory).highest },
      fewestOpen: state.fewestOpen,
    };
  }

  return Promise.race([drive(), failed.promise]);
}

/** Calls `start` so often that the rate holds, also where the timer was late. */
function startPacer(perSecond: number, start: () => void): ReturnType<typeof setInterval> {
  const from = performance.now();
  let begun = 0;
  return setInterval(() => {
    const due = ((performance.now() - from) * perSecond) / 1000;
    for (; begun < due; begun++) start();
  }, 1);
}

function requestBytes(job: AimedLoadJob): Buffer {
  const more = Object.entries(job.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  const { path, body: bodyFor } = CLIENT_FORMATS[job.client ?? "chat"];
  const body = JSON.stringify({
    model: modelFor(job.answer),
    ...(job.answer.kind === "stream" && { stream: true }),
    ...bodyFor(`${"The quick brown fox. ".repeat(Math.ceil(job.promptBytes / 21))}${COUNTER}`),
  });
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${job.port}\r\nuser-agent: bench\r\naccept: */*\r\n` +
      `authorization: Bearer sk-bench-client\r\ncontent-type: application/json\r\n` +
      `${more.join("")}content-length: ${body.length}\r\n\r\n${body}`,
  );
}

function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), highest: at(1) };
}

process.stdin.on("end", () => process.exit(1)).resume();
let output: LoadOutput;
try {
  output = { result: await run(JSON.parse(process.argv[2]!) as AimedLoadJob) };
} catch (error) {
  output = { error: error instanceof Error ? error.message : String(error) };
}
process.stdout.write(`${JSON.stringify(output)}\n`, () => process.exit("error" in output ? 1 : 0));
