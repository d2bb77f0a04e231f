// An editor over a real folder, with the official client library: files, terminals, and a person who answers questions.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import {
  type ClientConnection,
  client,
  ndJsonStream,
  type RequestPermissionRequest,
  type SessionNotification,
} from "@agentclientprotocol/sdk";
import type { WatchedAgent } from "./watched-agent.ts";

interface Running {
  process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  output: string;
  read: Promise<unknown>;
}

export interface EditorOptions {
  /** Which option the person takes; left out: allow_once. A promise that never resolves: nobody answers. */
  permit?(request: RequestPermissionRequest): string | Promise<string>;
  terminal?: boolean;
  files?: boolean;
}

export interface TestEditor {
  connection: ClientConnection;
  updates: SessionNotification[];
  asked: RequestPermissionRequest[];
  /** Commands that ran in terminals, as they were asked for. */
  commands: { command: string; args?: string[] }[];
  /** Terminals that were not released. */
  terminals: Map<string, unknown>;
}

export function connectEditor(agent: WatchedAgent, { permit }: EditorOptions = {}): TestEditor {
  const terminals = new Map<string, Running>();
  const editor = {
    updates: [] as SessionNotification[],
    asked: [] as RequestPermissionRequest[],
    commands: [] as { command: string; args?: string[] }[],
  };
  let nextTerminal = 1;
  const running = (id: string) => {
    const found = terminals.get(id);
    if (found === undefined) throw new Error(`no terminal ${id}`);
    return found;
  };
  const exitOf = ({ process }: Running) => ({
    exitCode: process.exitCode,
    signal: process.signalCode === null ? null : String(process.signalCode),
  });

  const app = client({ name: "test editor" })
    .onNotification("session/update", ({ params }) => void editor.updates.push(params))
    .onRequest("session/request_permission", async ({ params }) => {
      editor.asked.push(params);
      const optionId = (await permit?.(params)) ?? "allow_once";
      return { outcome: { outcome: "selected" as const, optionId } };
    })
    .onRequest("fs/read_text_file", ({ params: { path, line, limit } }) => {
      const lines = readFileSync(path, "utf8").split("\n");
      const from = (line ?? 1) - 1;
      return { content: lines.slice(from, limit == null ? undefined : from + limit).join("\n") };
    })
    .onRequest("fs/write_text_file", ({ params: { path, content } }) => {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
      return {};
    })
    .onRequest("terminal/create", ({ params: { command, args, cwd, env } }) => {
      editor.commands.push({ command, ...(args && { args }) });
      const named = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
      const child = Bun.spawn([command, ...(args ?? [])], {
        ...(cwd != null && { cwd }),
        env: { PATH: process.env.PATH ?? "", ...named },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const entry: Running = { process: child, output: "", read: Promise.resolve() };
      const read = async (stream: ReadableStream<Uint8Array>) => {
        const decoder = new TextDecoder();
        for await (const bytes of stream) entry.output += decoder.decode(bytes, { stream: true });
      };
      entry.read = Promise.all([read(child.stdout), read(child.stderr)]);
      const terminalId = `term-${nextTerminal++}`;
      terminals.set(terminalId, entry);
      return { terminalId };
    })
    .onRequest("terminal/output", ({ params: { terminalId } }) => {
      const entry = running(terminalId);
      const isOver = entry.process.exitCode !== null || entry.process.signalCode !== null;
      return { output: entry.output, truncated: false, ...(isOver && { exitStatus: exitOf(entry) }) };
    })
    .onRequest("terminal/wait_for_exit", async ({ params: { terminalId } }) => {
      const entry = running(terminalId);
      await entry.process.exited;
      await entry.read;
      return exitOf(entry);
    })
    .onRequest("terminal/kill", ({ params: { terminalId } }) => {
      running(terminalId).process.kill();
      return {};
    })
    .onRequest("terminal/release", ({ params: { terminalId } }) => {
      running(terminalId).process.kill();
      terminals.delete(terminalId);
      return {};
    });

  const decoder = new TextDecoder();
  let rest = "";
  const output = new WritableStream<Uint8Array>({
    write(bytes) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) agent.send(JSON.parse(line));
    },
  });
  const encoder = new TextEncoder();
  const input = new ReadableStream<Uint8Array>({
    start(controller) {
      agent.listen((message) => controller.enqueue(encoder.encode(`${JSON.stringify(message)}\n`)));
    },
  });
  const connection = app.connect(ndJsonStream(output, input));
  return { ...editor, connection, terminals };
}

/** What it says it can do. */
export function initializeParams({ terminal = true, files = true }: EditorOptions = {}) {
  return {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: files, writeTextFile: files }, terminal },
    clientInfo: { name: "test editor", version: "1.0.0" },
  };
}
