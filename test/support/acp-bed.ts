// An agent in the process of the test, with a client that speaks in raw messages. What both say is recorded and checked.

import { afterEach, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AcpOptions, AcpParts, AcpServer, OfferedModel, SessionRecord } from "../../src/acp/parts.ts";
import { createAcpServer } from "../../src/acp/server.ts";
import type { AcpWorkings } from "../../src/acp/workings.ts";
import type { TurnEnd, TurnParts } from "../../src/agent/agent.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { isObject, type JsonObject } from "../../src/lib/json.ts";
import { loggerTo } from "../../src/logging/logger.ts";
import { complaintsOf, type Said } from "./acp-validator.ts";
import { within } from "./wait-for.ts";

export interface Answer {
  id: unknown;
  result?: JsonObject;
  error?: { code: number; message: string; data: JsonObject };
}

export interface AcpBedOptions extends AcpWorkings {
  options?: Partial<AcpOptions>;
  offered?: OfferedModel[];
  models?: Partial<AcpParts["models"]>;
  write?: AcpParts["write"];
}

/** By method; what it gives is the result, and an Error that it throws is the error. */
type ClientHandlers = Record<string, (params: JsonObject) => unknown>;

export const MODELS: OfferedModel[] = [
  { id: "first", name: "First", efforts: ["low", "high"], images: true, audio: true },
  { id: "second", name: "Second", description: "The other one", efforts: [], images: false, audio: false },
];

/** A turn that says one text and remembers it. */
export async function plainTurn(parts: TurnParts, text = "Hello"): Promise<TurnEnd> {
  add(parts, { role: "user", parts: parts.prompt });
  parts.editor.tell({ type: "text", text });
  add(parts, { role: "assistant", parts: [{ type: "text", text }] });
  return { stopReason: "end_turn", usage: { input: 10, output: 2 } };
}

export function add(parts: TurnParts, message: TurnParts["history"][number]): void {
  parts.history.push(message);
  parts.appended(message);
}

export class AcpBed {
  readonly traffic: Said[] = [];
  readonly logged: string[] = [];
  readonly told: (readonly SessionRecord[])[] = [];
  readonly server: AcpServer;
  readonly client: ClientHandlers = {};
  readonly settings: AcpOptions;
  #lastId = 0;
  readonly #waiting = new Map<string, (answer: Answer) => void>();

  constructor({ options, offered = MODELS, models, write, ...workings }: AcpBedOptions = {}) {
    this.settings = { ...defaults(), ...options };
    this.server = createAcpServer(
      {
        options: () => this.settings,
        models: {
          offered: async () => offered,
          contextWindow: () => undefined,
          generate: async function* () {},
          ...models,
        },
        clock: systemClock,
        log: loggerTo({ write: (line) => void this.logged.push(line) }, "info"),
        cwd: "/project",
        write: (line) => {
          this.#read(line);
          return write?.(line);
        },
        sessionsChanged: (sessions) => void this.told.push(sessions),
      },
      { runTurn: (parts) => plainTurn(parts), openMcpServers: noServers, createMcpBridge: noBridge, ...workings },
    );
  }

  /** Raw bytes of the client. */
  raw(text: string | Uint8Array): void | Promise<void> {
    return this.server.receive(typeof text === "string" ? new TextEncoder().encode(text) : text);
  }

  send(message: unknown): void {
    this.traffic.push({ from: "client", message });
    void this.raw(`${JSON.stringify(message)}\n`);
  }

  async call(method: string, params?: object): Promise<Answer> {
    const id = ++this.#lastId;
    return await within(`the answer of ${method}`, this.begin(id, method, params));
  }

  /** The result, or the error thrown. */
  async result(method: string, params?: object): Promise<JsonObject> {
    const { result, error } = await this.call(method, params);
    if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async refusal(method: string, params?: object): Promise<NonNullable<Answer["error"]>> {
    const { error } = await this.call(method, params);
    if (error === undefined) throw new Error(`${method} was not refused`);
    return error;
  }

  begin(id: unknown, method: string, params?: object): Promise<Answer> {
    const answer = new Promise<Answer>((resolve) => this.#waiting.set(JSON.stringify(id), resolve));
    this.send({ jsonrpc: "2.0", id, method, ...(params && { params }) });
    return answer;
  }

  notify(method: string, params?: object): void {
    this.send({ jsonrpc: "2.0", method, ...(params && { params }) });
  }

  async initialize(clientCapabilities: object = {}): Promise<JsonObject> {
    return await this.result("initialize", { protocolVersion: 1, clientCapabilities });
  }

  async newSession(params: object = {}): Promise<string> {
    return (await this.result("session/new", { cwd: "/project", mcpServers: [], ...params })).sessionId as string;
  }

  async prompt(sessionId: string, text = "Hi"): Promise<Answer> {
    return await this.call("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  /** Of a session, or of all: what was told with session/update. */
  updates(sessionId?: string): { update: JsonObject; content: JsonObject[]; sessionId: string }[] {
    return this.traffic.flatMap(({ from, message }) => {
      if (from !== "agent" || !isObject(message) || message.method !== "session/update") return [];
      const params = message.params as { update: JsonObject; content: JsonObject[]; sessionId: string };
      return sessionId === undefined || params.sessionId === sessionId ? [params] : [];
    });
  }

  kinds(sessionId?: string): unknown[] {
    return this.updates(sessionId).map(({ update }) => update.sessionUpdate);
  }

  /** All that the agent said that was no answer to a request with an id of its own. */
  answersTo(id: unknown): Answer[] {
    return this.traffic.flatMap(({ from, message }) =>
      from === "agent" && isObject(message) && message.method === undefined && message.id === id
        ? [message as unknown as Answer]
        : [],
    );
  }

  complaints(): string[] {
    return complaintsOf(this.traffic);
  }

  #read(line: Uint8Array): void {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(line);
    if (!text.endsWith("\n") || text.indexOf("\n") !== text.length - 1) throw new Error("not one line");
    const message = JSON.parse(text) as JsonObject;
    this.traffic.push({ from: "agent", message });
    if (typeof message.method === "string" && "id" in message) void this.#serve(message);
    else if (message.method === undefined)
      this.#waiting.get(JSON.stringify(message.id))?.(message as unknown as Answer);
  }

  async #serve({ id, method, params }: JsonObject): Promise<void> {
    await Promise.resolve(); // an answer is never there before the question has been written
    const handler = this.client[method as string];
    try {
      if (handler === undefined) throw new Error("Method not found");
      this.send({ jsonrpc: "2.0", id, result: await handler(params as JsonObject) });
    } catch (error) {
      this.send({ jsonrpc: "2.0", id, error: { code: -32601, message: (error as Error).message } });
    }
  }
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "signalbox-acp-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Opens beds for the tests of a file: after each test they end, and all that was said in them is looked at. */
export function acpBeds(): (options?: AcpBedOptions) => AcpBed {
  const beds: AcpBed[] = [];
  afterEach(async () => {
    for (const bed of beds.splice(0)) {
      await bed.server.stop();
      expect(bed.complaints()).toEqual([]);
    }
  });
  return (options) => {
    const bed = new AcpBed(options);
    beds.push(bed);
    return bed;
  };
}

function defaults(): AcpOptions {
  return {
    maxConcurrent: 10,
    idleTimeoutMs: 3_600_000,
    storagePath: undefined,
    maxTurns: 50,
    permission: () => "ask",
    mcp: { maxConnections: 5, allowedServers: [], spawnTimeoutMs: 10_000, servers: {} },
  };
}

function noServers(): never {
  throw new Error("no MCP servers in this test");
}

function noBridge(): never {
  throw new Error("no bridge in this test");
}
