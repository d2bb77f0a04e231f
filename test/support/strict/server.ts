// The HTTP side of every strict backend: records what arrives, plays the script, renders refusals, cuts streams.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonObject, Script, ScriptEntry, ScriptedAnswer, ScriptedError } from "./script.ts";
import { isObject, Refused } from "./shape.ts";

export interface ReceivedRequest {
  method: string;
  /** Without the query. */
  path: string;
  /** The path with its query, as it came. */
  target: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  text: string;
  /** {} when the text is no JSON object. */
  body: JsonObject;
  /** Why it was refused. */
  refused?: Refused;
}

export type Reply =
  | { status?: number; headers?: Record<string, string> | undefined; json: unknown; cut?: boolean }
  | { headers?: Record<string, string>; frames: readonly Frame[]; cut?: boolean };

export type Frame = string | Uint8Array;

export interface Vendor {
  /** Answers GET requests; undefined gives 404. */
  read(request: ReceivedRequest): unknown;
  /** Throws Refused; otherwise says how the scripted answer is rendered. */
  accept(request: ReceivedRequest): (answer: ScriptedAnswer) => Reply;
  refusal(refused: Refused): unknown;
  failure(error: ScriptedError): unknown;
  /** The frame that tells of an error inside a stream. */
  failureFrame(error: ScriptedError): Frame;
  /** Headers of answers that are refusals or failures. */
  failureHeaders?(error: Refused | ScriptedError): Record<string, string>;
  /** POST requests that are answered without the script. */
  aside?(request: ReceivedRequest): unknown;
}

export interface StrictBackend extends Disposable {
  url: string;
  /** POST requests, the refused ones included. */
  requests: ReceivedRequest[];
  probes: ReceivedRequest[];
  /** The last request; throws when there was none. */
  readonly last: ReceivedRequest;
  /** Why requests were refused. */
  readonly refusals: string[];
  /** Puts further answers behind those of the script. */
  script(...entries: ScriptEntry[]): void;
  stop(): void;
}

const CUT_DELAY_MS = 20;

export async function startStrictServer(vendor: Vendor, script: Script): Promise<StrictBackend> {
  const requests: ReceivedRequest[] = [];
  const probes: ReceivedRequest[] = [];
  const queue: ScriptEntry[] = typeof script === "function" ? [] : [...script];

  const nextEntry = (body: JsonObject): ScriptEntry => {
    const entry = queue.shift() ?? (typeof script === "function" ? script(body) : undefined);
    return entry ?? { error: { status: 500, message: "the script has no answer left" } };
  };

  function reply(request: ReceivedRequest): Reply {
    if (request.method === "GET" || request.method === "HEAD") {
      probes.push(request);
      try {
        const json = vendor.read(request);
        return json === undefined ? { status: 404, json: vendor.refusal(notFound(request)) } : { json };
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return { status: error.status, json: vendor.refusal(error) };
      }
    }
    requests.push(request);
    try {
      const aside = vendor.aside?.(request);
      if (aside !== undefined) return { json: aside };
      const render = vendor.accept(request);
      const entry = nextEntry(request.body);
      if (!("error" in entry)) return broken(entry, render(entry), vendor);
      const headers = entry.error.retryAfter === undefined ? {} : { "retry-after": entry.error.retryAfter };
      Object.assign(headers, vendor.failureHeaders?.(entry.error));
      return { status: entry.error.status, headers, json: vendor.failure(entry.error) };
    } catch (error) {
      const refused = error instanceof Refused ? error : new Refused("invalid", "", String(error), 500);
      request.refused = refused;
      return { status: refused.status, headers: vendor.failureHeaders?.(refused), json: vendor.refusal(refused) };
    }
  }

  const server = createServer((incoming, outgoing) => {
    void receive(incoming).then((request) => send(outgoing, reply(request), request.method === "HEAD"));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    probes,
    get last() {
      const last = requests.at(-1);
      if (last === undefined) throw new Error("the backend received no request");
      return last;
    },
    get refusals() {
      return requests.flatMap(({ refused }) => (refused === undefined ? [] : [`${refused.field}: ${refused.message}`]));
    },
    script: (...entries) => void queue.push(...entries),
    stop,
    [Symbol.dispose]: stop,
  };
}

export function notFound(request: ReceivedRequest): Refused {
  return new Refused("invalid", "", `${request.method} ${request.path} does not exist`, 404);
}

/** The beginning of a whole reply, where the script wants it broken. */
function broken(answer: ScriptedAnswer, whole: Reply, vendor: Vendor): Reply {
  const { breakAfterFrames, breakWith } = answer;
  if (breakWith === undefined) return whole;
  if (!("frames" in whole)) return { ...whole, cut: true };
  const frames = whole.frames.slice(0, breakAfterFrames ?? 0);
  if (breakWith === "cut") return { ...whole, frames, cut: true };
  return { ...whole, frames: [...frames, vendor.failureFrame(breakWith)] };
}

async function receive(incoming: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const { pathname, searchParams } = new URL(incoming.url ?? "/", "http://backend");
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) headers[name] = String(value);
  const method = incoming.method ?? "";
  return {
    method,
    path: decodeURIComponent(pathname),
    target: incoming.url ?? "",
    query: searchParams,
    headers,
    text,
    body: parseObject(text),
  };
}

function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

async function send(outgoing: ServerResponse, reply: Reply, isHead: boolean): Promise<void> {
  if (!("frames" in reply)) {
    const body = JSON.stringify(reply.json);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...reply.headers };
    outgoing.writeHead(reply.status ?? 200, headers);
    if (!reply.cut) return void outgoing.end(isHead ? undefined : body);
    await write(outgoing, body.slice(0, body.length / 2));
    return void outgoing.socket?.destroy();
  }
  outgoing.writeHead(200, { "content-type": "text/event-stream", ...reply.headers });
  // Each frame is one write: clients and gateways must not rely on it, and do not here.
  for (const frame of reply.frames) await write(outgoing, frame);
  if (!reply.cut) return void outgoing.end();
  // A client that learns of the cut together with the bytes before it may drop them.
  await Bun.sleep(CUT_DELAY_MS);
  outgoing.socket?.destroy();
}

function write(outgoing: ServerResponse, text: Frame): Promise<void> {
  return new Promise((done) => void outgoing.write(text, () => done()));
}

/** The key of a bearer token; Refused 401 without one. */
export function requireBearer(request: ReceivedRequest, code: string): void {
  if (/^Bearer \S+$/.test(request.headers.authorization ?? "")) return;
  throw new Refused("missing", "authorization", "You didn't provide an API key.", 401, code);
}

export function requireJson(request: ReceivedRequest): void {
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("application/json"))
    throw new Refused("invalid", "content-type", "expected application/json", 415);
  if (Object.keys(request.body).length === 0) throw new Refused("invalid", "", "could not parse the JSON body");
}
