// Runs the real command as an agent over standard input and output, keeps what both sides wrote, and has it checked.

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { complaintsOf } from "./acp-validator.ts";
import { AgentProcess } from "./agent-process.ts";
import { SECRET_MARK } from "./printed.ts";
import { waitFor } from "./wait-for.ts";

const COMMAND = join(import.meta.dir, "..", "..", "bin", "signalbox");

/** A message of JSON-RPC. */
export interface Message {
  id?: unknown;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: unknown;
  [member: string]: unknown;
}

interface Traffic {
  from: "client" | "agent";
  message: Message;
}

interface WatchedAgentParts {
  config: ConfigDocument;
  environment?: Record<string, string>;
  /** Of an earlier process: its files are taken as they are. */
  folder?: string;
}

/** An editor's agent, as the editor sees it: lines in, lines out. */
export class WatchedAgent {
  readonly traffic: Traffic[] = [];
  readonly #process: AgentProcess;
  readonly #listeners = new Set<(message: Message) => void>();
  /** Behind the last end of a line. */
  #rest = "";
  #nextId = 1;

  constructor({ config, environment = {}, folder }: WatchedAgentParts) {
    this.#process = new AgentProcess({
      command: [COMMAND],
      args: ["--mode", "stdio"],
      config,
      environment,
      heard: (text) => this.#hear(text),
      ...(folder !== undefined && { folder }),
    });
  }

  get folder(): string {
    return this.#process.folder;
  }

  get stderr(): string {
    return this.#process.stderr;
  }

  get pid(): number {
    return this.#process.pid;
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() as string;
    for (const line of lines) {
      // Anything else on standard output breaks the protocol, and the test.
      const message = JSON.parse(line) as Message;
      this.traffic.push({ from: "agent", message });
      for (const listener of this.#listeners) listener(message);
    }
  }

  /** Every message of the agent from now on. */
  listen(listener: (message: Message) => void): void {
    this.#listeners.add(listener);
  }

  send(message: Message): void {
    this.traffic.push({ from: "client", message });
    this.#process.send(message);
  }

  /** A request, and the whole answer to it. */
  async ask(method: string, params?: unknown, id: unknown = `t${this.#nextId++}`): Promise<Message> {
    const at = this.traffic.length;
    this.send({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) });
    const answer = () =>
      this.traffic
        .slice(at)
        .find(
          ({ from, message }) => from === "agent" && message.method === undefined && Bun.deepEquals(message.id, id),
        );
    await waitFor(`an answer to ${method}`, () => answer() !== undefined);
    return answer()?.message as Message;
  }

  /** What the agent said in updates of a session, in order. */
  updates(sessionId?: unknown): Record<string, unknown>[] {
    return this.traffic.flatMap(({ from, message }) => {
      if (from !== "agent" || message.method !== "session/update") return [];
      const params = message.params as { sessionId: string; update: Record<string, unknown> };
      return sessionId === undefined || params.sessionId === sessionId ? [params.update] : [];
    });
  }

  /** Checks what was said so far, between two turns, and lets go of it; sessions are new from here on. */
  forget(): void {
    const complaints = complaintsOf(this.traffic);
    if (complaints.length > 0) throw new Error(complaints.join("\n"));
    const opening = this.traffic.findIndex(({ from }) => from === "agent");
    this.traffic.splice(opening + 1);
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** The editor is gone. */
  closeInput(): void {
    this.#process.endInput();
  }

  async exited(): Promise<number> {
    const code = await this.#process.finished();
    if (this.#rest !== "") throw new Error(`the agent's last line has no end: ${this.#rest}`);
    return code;
  }

  /** Ends it as an editor does, and checks all that was said. */
  async close(): Promise<void> {
    if (!this.#process.hasExited) this.closeInput();
    const code = await this.exited();
    rmSync(this.folder, { recursive: true, force: true });
    // Above: a signal of the test's.
    if (code !== 0 && code < 128) throw new Error(`exit code ${code}: ${this.stderr}`);
    if (this.stderr.includes(SECRET_MARK)) throw new Error(`a secret was printed: ${this.stderr}`);
    const surprise = this.stderr.split("\n").find((line) => /unexpected error|unhandled|panic/i.test(line));
    if (surprise !== undefined) throw new Error(`the agent met something it does not understand: ${surprise}`);
    const complaints = complaintsOf(this.traffic);
    if (complaints.length > 0) throw new Error(complaints.join("\n"));
  }
}
