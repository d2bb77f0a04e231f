// Where a coding agent runs in a test: empty folders of its own, a small environment, and a guard in front of the rest of
// the network that lets nothing through and notes what was tried.

import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BoundedRun, runBounded } from "../../scripts/run-bounded.ts";
import { answer, type JsonObject, type ScriptEntry, type ScriptedPart, text } from "./strict/script.ts";
import type { StrictBackend } from "./strict/server.ts";

/** Longer than an agent needs, shorter than the tests may take. */
const AGENT_TIMEOUT_MS = 60_000;

export class AgentWorkplace {
  /** The project that the agent works on. */
  readonly project: string;
  readonly home: string;
  /** Hosts outside of this machine that the agent asked for. */
  readonly outsiders: string[] = [];
  readonly #folder = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-agent-")));
  readonly #guard = createServer((request, response) => {
    this.outsiders.push(request.url ?? "");
    response.writeHead(403).end();
  });

  constructor() {
    this.project = join(this.#folder, "project");
    this.home = join(this.#folder, "home");
    for (const folder of [this.project, this.home, join(this.#folder, "tmp")]) mkdirSync(folder);
    this.#guard.on("connect", (request, socket) => {
      this.outsiders.push(request.url ?? "");
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    });
  }

  async run(command: readonly string[], environment: Record<string, string>): Promise<BoundedRun> {
    if (!this.#guard.listening) {
      await new Promise<void>((listening) => this.#guard.listen(0, "127.0.0.1", listening));
    }
    const guard = `http://127.0.0.1:${(this.#guard.address() as AddressInfo).port}`;
    return await runBounded(command, {
      cwd: this.project,
      timeoutMs: AGENT_TIMEOUT_MS,
      environment: {
        PATH: process.env.PATH ?? "",
        HOME: this.home,
        TMPDIR: join(this.#folder, "tmp"),
        HTTP_PROXY: guard,
        HTTPS_PROXY: guard,
        NO_PROXY: "127.0.0.1,localhost",
        ...environment,
      },
    });
  }

  close(): void {
    this.#guard.close();
    this.#guard.closeAllConnections();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A script for any format: calls the tool until its output stands in the conversation, then says the final text. */
export function oneTool(final: string, tool: ScriptedPart, output: string): (body: JsonObject) => ScriptEntry {
  return (body) => answer(JSON.stringify(body).includes(output) ? text(final) : tool);
}

/** What a backend refused, without the probes, whose body is empty. */
export function refusals({ requests }: StrictBackend): string[] {
  return requests.flatMap(({ body, refused }) =>
    refused === undefined || Object.keys(body).length === 0 ? [] : [`${refused.field}: ${refused.message}`],
  );
}
