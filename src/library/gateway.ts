// A gateway for programs on Bun: requests by fetch, or in neutral words, and no listener.

import type { ConfigDocument } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { Collector } from "../generation/collect.ts";
import type { Message, TextPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import { type GenerationRequest, NO_CLIENT } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import { systemClock } from "../lib/clock.ts";
import { loggerTo } from "../logging/logger.ts";
import { createGateway as composeGateway } from "../runtime/gateway.ts";
import { openObjectConfiguration } from "../runtime/object-configuration.ts";
import { withoutListener } from "../server/later-request.ts";
import type { Server } from "../server/listener.ts";
import { routePaths } from "../server/path-router.ts";
import { serveTargets } from "../server/request-target.ts";

export interface GatewayOptions {
  /**
   * The configuration, with the names and the checks of a configuration file (docs/configuration.md). `server.bind_address` and
   * `server.workers` have no effect here, which the log says. Without `server.data_dir`, what the gateway keeps lies in a temporary folder until close().
   */
  config: ConfigDocument;
  /** Where relative paths of the configuration begin. Default: the working directory. */
  baseDir?: string;
  /** Variables that the configuration may name, and `SIGNALBOX_…` settings. Default: `process.env`. */
  env?: Record<string, string | undefined>;
  /** Gets each line of the log, as JSON with its line end. Default: no log. */
  log?: (line: string) => void;
}

/** A request in the words of no wire format. What is left out is left to the backend. */
export interface GenerateRequest
  extends Partial<Omit<GenerationRequest, keyof ModelQuestion | keyof OfClients>>,
    ModelQuestion {}

/** What belongs to the wire format of a client. */
type OfClients = Pick<GenerationRequest, "origin" | "stream" | "extensions">;

interface ModelQuestion {
  /** A model, an alias, a route, or `backend/model`. */
  model: string;
  messages: Message[];
  /** Instructions before the conversation. */
  system?: string | TextPart[];
}

export interface GenerateOptions {
  /** The key whose models, limits and budgets hold. Default: none, and the request is the program's own, which nothing limits. */
  apiKey?: string;
  /** Aborts when the answer is no longer wanted. */
  signal?: AbortSignal;
}

/** An answer: its events as they come, or the whole of it. It is asked for once, by either. */
export interface Generation extends AsyncIterable<GenerationEvent> {
  /** Throws GatewayError, also where the backend has failed. */
  result(): Promise<GenerationResult>;
}

export interface LibraryGateway {
  /**
   * Answers a request to any path of the gateway, without a network: the `fetch` of an SDK, for instance. Never rejects for what a
   * client does.
   */
  fetch(input: Request | string | URL, init?: RequestInit): Promise<Response>;
  /**
   * The same for a request from elsewhere: `Bun.serve({ fetch: gateway.handler })`, `app.mount("/", gateway.handler)` of hono,
   * `fromWebHandler(gateway.handler)` of h3. Where the second argument is a server of Bun, it tells the address of the client.
   */
  handler(request: Request, server?: unknown): Promise<Response>;
  /**
   * Asks a model. Trouble with backends is an event `failure`; what is refused before a backend is asked throws GatewayError.
   * A reader that stops frees the backend.
   */
  generate(request: GenerateRequest, options?: GenerateOptions): Generation;
  /** Puts another configuration in force, as an edit of the file does. Throws ConfigurationError, and nothing has changed. */
  update(config: ConfigDocument): Promise<void>;
  /** Ends health checks, timers and connections, and writes what waits. Requests under way are cut off. */
  close(): Promise<void>;
}

/** No address of a client: the admin API must not take a stranger for a client of this machine. */
const UNKNOWN_ADDRESS = "0.0.0.0";

const LISTENER_FIELDS = ["bind_address", "unix_socket_mode", "workers"] as const;

/** Throws ConfigurationError. */
export async function createGateway(options: GatewayOptions): Promise<LibraryGateway> {
  const { config, baseDir = process.cwd(), env = process.env, log: write = () => {} } = options;
  const log = loggerTo({ write });
  const configuration = await openObjectConfiguration(config, { env, baseDir, log });
  const { store, hash } = configuration;
  const unused = LISTENER_FIELDS.filter((name) => config.server?.[name] !== undefined);
  if (unused.length > 0) log.warn({ fields: unused.map((name) => `server.${name}`) }, "no effect without a listener");
  const gateway = composeGateway({ store, fileHash: hash, env, clock: systemClock, log });
  await gateway.start();
  const route = routePaths(serveTargets(gateway.api, gateway.admin));
  const nowhere = withoutListener(UNKNOWN_ADDRESS);
  const handler: LibraryGateway["handler"] = (request, server) => route(request, isServer(server) ? server : nowhere);

  return {
    fetch: (input, init) => handler(new Request(input as Request, init)),
    handler,
    generate: (request, { apiKey, signal } = {}) =>
      generation(gateway.generate(neutralRequest(request), { signal: signal ?? new AbortController().signal, apiKey })),
    update: configuration.update,
    async close() {
      gateway.closing();
      await gateway.stop();
      configuration.close();
    },
  };
}

function isServer(server: unknown): server is Server {
  return typeof (server as Partial<Server> | undefined)?.requestIP === "function";
}

function neutralRequest({ system = [], ...request }: GenerateRequest): GenerationRequest {
  return {
    tools: [],
    sampling: {},
    reasoning: {},
    ...request,
    system: typeof system === "string" ? [{ type: "text", text: system }] : system,
    stream: true,
    origin: NO_CLIENT,
    extensions: {},
  };
}

function generation(events: AsyncGenerator<GenerationEvent, void>): Generation {
  return {
    [Symbol.asyncIterator]: () => events,
    async result() {
      const collector = new Collector();
      for await (const event of events) collector.push(event);
      const result = collector.result();
      if (result !== undefined) return result;
      const { message, status } = collector.failure ?? { message: "The answer ended early.", status: 502 };
      throw new GatewayError({ ...ERRORS.backendError, status }, message);
    },
  };
}
