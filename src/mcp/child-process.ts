// An MCP server as a child process: newline JSON on its standard input and output. Nothing of its process group is left
// when it has ended or this process has (guarded-command.ts).

import { accessSync, closeSync, constants, statSync, writeSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { inTime, orAborted } from "../lib/abortable-delay.ts";
import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { LineReader } from "../lib/line-reader.ts";
import { groupVanished, signalGroup } from "../lib/process-group.ts";
import { guardedCommand } from "./guarded-command.ts";
import { type Masking, oneLine } from "./masked.ts";
import { boundedLog, logStream } from "./server-log.ts";

export interface ProcessSpec {
  name: string;
  command: string;
  args: readonly string[];
  /** All that it gets beside PATH, HOME and LANG. */
  env: Readonly<Record<string, string>>;
  /** Absolute. */
  cwd: string;
}

export interface ProcessParts {
  /** A promise: nothing more is read from the server until it has resolved. */
  receive(message: JsonObject): void | Promise<void>;
  mask: Masking;
  log(level: "info" | "warn", message: string): void;
  /** Time between SIGTERM and SIGKILL. */
  killAfterMs?: number;
}

export interface ServerProcess {
  readonly pid: number;
  /** It has ended itself; of its group something may be left. Never rejects. */
  readonly exited: Promise<unknown>;
  /**
   * How it ended, for people. By then its group is gone, and all that it said has been received, unless it was closed.
   * Never rejects.
   */
  readonly ended: Promise<string>;
  /** Resolves when the server's pipe has taken it. Rejects with ServerEnded, or when the server has not read for too long. */
  send(message: object): Promise<void>;
  /** End of its input and SIGTERM, some time, SIGKILL; resolves when its group is gone. Never throws. */
  close(): Promise<void>;
}

/** It cannot be written to any more; `ended` tells how it ended, or will at once. */
export class ServerEnded extends Error {
  override readonly name = "ServerEnded";

  constructor(cause?: unknown) {
    super("the server has ended", { cause });
  }
}

const INHERITED = ["PATH", "HOME", "LANG"];
const MAX_LINE_BYTES = 32 * 1024 * 1024;
/** Bytes that may wait for a server that does not read. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const KILL_AFTER_MS = 5_000;

/** Throws an Error that names the server and what is wrong. */
export function startServerProcess(spec: ProcessSpec, parts: ProcessParts): ServerProcess {
  const child = spawn(spec);
  const log = boundedLog(
    (line) => parts.log("warn", `MCP server ${spec.name}: ${line}`),
    () => performance.now(),
  );
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  const output = readMessages(child.stdout, {
    receive(message) {
      if (closed !== undefined) return undefined;
      const taken = parts.receive(message);
      // A server that is being closed must not wait for a receiver that no longer listens.
      return taken === undefined ? undefined : orAborted(taken, closing.signal);
    },
    refuse: (reason, line) => log(`${reason}, skipped: ${oneLine(parts.mask(line), 200)}`),
  });
  const outputsOver = Promise.all([output, logStream(child.stderr, parts.mask, log)]);
  const gone = (async () => {
    await child.exited;
    // Its children have until then what is left of the time; without a leader that was asked to end, they have none.
    if (closed !== undefined) await inTime(outputsOver, parts.killAfterMs ?? KILL_AFTER_MS).catch(() => undefined);
    killGroup();
    await groupVanished(child.pid);
  })();
  const ended = (async () => {
    await gone;
    await orAborted(outputsOver, closing.signal);
    return child.signalCode === null ? `exited with code ${child.exitCode}` : `was ended by ${child.signalCode}`;
  })();
  const input = createWriter(child.stdin, gone);
  let isGroupKilled = false;

  function killGroup(): void {
    if (isGroupKilled) return;
    isGroupKilled = true;
    const guard = child.stdio[3] as number;
    try {
      writeSync(guard, "kill\n");
    } catch {
      // The guard was ended from outside; then the number of the group is known to be ours only as long as the leader lives.
      signalGroup(child.pid, "SIGKILL");
    }
    closeSync(guard);
  }

  async function end(): Promise<void> {
    input.end();
    signalGroup(child.pid, "SIGTERM");
    await inTime(gone, parts.killAfterMs ?? KILL_AFTER_MS);
    killGroup();
    await gone;
  }

  return {
    pid: child.pid,
    exited: child.exited,
    ended,
    send: (message) => input.write(`${JSON.stringify(message)}\n`),
    close() {
      closed ??= end();
      closing.abort();
      return closed;
    },
  };
}

function spawn({ name, command, args, env, cwd }: ProcessSpec) {
  const environment: Record<string, string> = {};
  for (const key of INHERITED) if (process.env[key] !== undefined) environment[key] = process.env[key];
  Object.assign(environment, env);
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`MCP server ${name} cannot start: its folder ${cwd} does not exist`);
  const program = findProgram(command, cwd, environment.PATH ?? "");
  if (program === undefined)
    throw new Error(
      `MCP server ${name} cannot start: the command ${oneLine(command, 200)} was not found${command.includes("/") ? "" : " in PATH"}, or may not be run`,
    );
  try {
    return Bun.spawn(guardedCommand(program, args, Object.keys(environment)), {
      cwd,
      env: environment,
      // A session and a process group of its own, without a terminal.
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    });
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    throw new Error(`MCP server ${name} cannot start: ${typeof code === "string" ? code : "the system refused"}`, {
      cause: error,
    });
  }
}

function findProgram(command: string, cwd: string, path: string): string | undefined {
  if (!command.includes("/")) {
    const found = command === "" ? null : Bun.which(command, { PATH: path, cwd });
    return found === null ? undefined : resolve(cwd, found);
  }
  const file = isAbsolute(command) ? command : resolve(cwd, command);
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}

interface MessageReader {
  receive(message: JsonObject): Promise<unknown> | undefined;
  refuse(reason: string, line: string): void;
}

async function readMessages(stream: ReadableStream<Uint8Array>, reading: MessageReader): Promise<void> {
  const lines = new LineReader(MAX_LINE_BYTES);
  const decoder = new TextDecoder();
  try {
    for await (const bytes of stream) {
      for (const line of lines.read(bytes)) {
        if (line === "too-long") reading.refuse(`a line of more than ${MAX_LINE_BYTES} bytes`, "");
        else await readLine(decoder.decode(line), reading);
      }
    }
  } catch {
    // The pipe broke with the process, whose end shows in its exit code.
  }
}

async function readLine(line: string, { receive, refuse }: MessageReader): Promise<void> {
  const value = parseJson(line);
  for (const message of Array.isArray(value) ? value : [value]) {
    if (!isObject(message) || message.jsonrpc !== "2.0") refuse("a line that is no JSON-RPC message", line);
    else {
      try {
        await receive(message);
      } catch {
        refuse("a message that could not be taken", line);
      }
    }
  }
}

/** Writes one after the other, and never waits for a server that is gone. */
function createWriter(sink: Bun.FileSink, gone: Promise<void>) {
  let last: Promise<unknown> = Promise.resolve();
  let waitingBytes = 0;
  let isOver = false;
  const breaking = new AbortController();
  void gone.then(() => {
    isOver = true;
    breaking.abort();
  });

  return {
    async write(line: string): Promise<void> {
      if (isOver) throw new ServerEnded();
      const bytes = new TextEncoder().encode(line);
      if (waitingBytes + bytes.length > MAX_WAITING_BYTES) throw new Error("the server does not read its input");
      waitingBytes += bytes.length;
      const written = last.then(async () => {
        try {
          await orAborted(Promise.resolve(sink.write(bytes)), breaking.signal);
          await orAborted(Promise.resolve(sink.flush()), breaking.signal);
        } catch (error) {
          throw new ServerEnded(error);
        }
        if (isOver) throw new ServerEnded();
      });
      last = written.catch(() => undefined);
      try {
        await written;
      } finally {
        waitingBytes -= bytes.length;
      }
    },
    end(): void {
      isOver = true;
      void (async () => {
        // A write under way fails with the process if that does not read any more.
        await sink.end();
      })().catch(() => undefined);
    },
  };
}
