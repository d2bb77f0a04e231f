// Child processes of the benchmark: starting, ending, and what /proc says about their CPU time and memory.

import { readdirSync, readFileSync } from "node:fs";
import type { Subprocess } from "bun";

const CLOCK_TICK_NANOSECONDS = 10_000_000;

/** Where setpriv exists, the kernel ends our children even if the benchmark itself is killed. It keeps the pid. */
const DIES_WITH_US = Bun.which("setpriv") ? ["setpriv", "--pdeathsig", "TERM"] : [];

const started = new Set<Subprocess>();

export interface StartOptions {
  directory?: string;
  environment?: Record<string, string | undefined>;
  /** Give the child a pipe as standard input; our helpers end when it closes. */
  holdInput?: boolean;
  /** Read standard output; otherwise both outputs go to /dev/null. */
  readOutput?: boolean;
}

/** Starts a command that will be ended with the benchmark at the latest. */
export function startProcess(command: readonly string[], options: StartOptions = {}): Subprocess {
  const child = Bun.spawn([...DIES_WITH_US, ...command], {
    ...(options.directory !== undefined && { cwd: options.directory }),
    env: options.environment ?? process.env,
    stdin: options.holdInput ? "pipe" : "ignore",
    stdout: options.readOutput ? "pipe" : "ignore",
    stderr: options.holdInput ? "inherit" : "ignore",
  });
  started.add(child);
  child.exited.then(() => started.delete(child)).catch(() => started.delete(child));
  return child;
}

/** Ends one process that we started: politely, then for good. */
export async function endProcess(child: Subprocess, graceMs = 2000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  if ((await within(graceMs, child.exited)) === undefined) {
    child.kill("SIGKILL");
    await child.exited;
  }
}

/** What a promise gives within a limit, else undefined; no timer stays behind to hold the process. */
export async function within<Value>(limitMs: number, promise: Promise<Value>): Promise<Value | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), limitMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Ends everything that still runs; also called on Ctrl-C. */
export async function endAllProcesses(): Promise<void> {
  await Promise.all([...started].map((child) => endProcess(child, 1000)));
}

/** The first line a helper prints. */
export async function readFirstLine(child: Subprocess, limitMs = 10_000): Promise<string> {
  const reader = (child.stdout as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes("\n")) {
    const part = await within(limitMs, reader.read());
    if (part === undefined || part.done) throw new Error("a helper process of the benchmark did not start");
    text += decoder.decode(part.value, { stream: true });
  }
  reader.releaseLock();
  return text.slice(0, text.indexOf("\n"));
}

/** A port that is free now; the next process that wants it takes it at once. */
export function findFreePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** Processes whose parent is this one. */
export function childrenOf(pid: number): number[] {
  const children: number[] = [];
  for (const entry of readdirSync("/proc")) {
    if (/^\d+$/.test(entry) && readStat(Number(entry))?.[1] === String(pid)) children.push(Number(entry));
  }
  return children;
}

/** The fields of /proc/<pid>/stat after the command's name, which may hold spaces: state, parent, … */
function readStat(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined; // It ended meanwhile.
  }
}

export interface CpuSample {
  /** Of the threads that live now, by their ids; exact to the nanosecond. */
  threads: Map<number, { name: string; ns: number }>;
  /** The whole process, ended threads included, in steps of 10 ms. */
  processNs: number;
  /** Of it, what was not spent in the kernel. */
  userNs: number;
}

/** CPU time in nanoseconds. */
export interface CpuTime {
  ns: number;
  /** By the names of threads; `main` is the one that a process began with. */
  nsByThread: Record<string, number>;
  /** Part of the time that was not spent in the kernel, from 0 to 1; from counts in steps of 10 ms. */
  userShare: number;
}

export function sampleCpu(pids: readonly number[]): CpuSample {
  const sample: CpuSample = { threads: new Map(), processNs: 0, userNs: 0 };
  for (const pid of pids) {
    const stat = readStat(pid);
    if (!stat) throw new Error(`process ${pid} ended during the measurement`);
    for (const thread of readdirSync(`/proc/${pid}/task`).map(Number)) {
      try {
        const name = thread === pid ? "main" : readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim();
        const ns = Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]);
        sample.threads.set(thread, { name, ns });
      } catch {} // A thread that ended between the listing and the reading: the process's own count still has it.
    }
    sample.processNs += (Number(stat[11]) + Number(stat[12])) * CLOCK_TICK_NANOSECONDS;
    sample.userNs += Number(stat[11]) * CLOCK_TICK_NANOSECONDS;
  }
  return sample;
}

/** CPU time between two samples; the coarse count steps in where threads ended and took their exact count with them. */
export function cpuBetween(before: CpuSample, after: CpuSample): CpuTime {
  const nsByThread: Record<string, number> = {};
  let exact = 0;
  for (const [thread, { name, ns }] of after.threads) {
    const spent = ns - (before.threads.get(thread)?.ns ?? 0);
    exact += spent;
    nsByThread[name] = (nsByThread[name] ?? 0) + spent;
  }
  const coarse = after.processNs - before.processNs;
  const userShare = coarse === 0 ? 0 : (after.userNs - before.userNs) / coarse;
  const mayDiffer = Math.max(5 * CLOCK_TICK_NANOSECONDS, exact * 0.05);
  if (coarse - exact <= mayDiffer) return { ns: exact, nsByThread, userShare };
  return { ns: coarse, nsByThread: { ...nsByThread, ended: coarse - exact }, userShare };
}

/** Resident memory (VmRSS). Pages of the executable count too, as in what an operator sees in top. */
export function residentBytes(pids: readonly number[]): number {
  let sum = 0;
  for (const pid of pids) {
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
    if (kilobytes === undefined) throw new Error(`process ${pid} ended during the measurement`);
    sum += Number(kilobytes) * 1024;
  }
  return sum;
}
