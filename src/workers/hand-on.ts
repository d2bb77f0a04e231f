// Requests for the control plane that arrive at a worker: handed on to the primary, and answered with what it says.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { errorResponse } from "../server/error-response.ts";
import type { Server } from "../server/listener.ts";
import type { RequestTarget, Surface, TargetHandler } from "../server/request-target.ts";

/** The secret, and where the request came from: clients may not set either. */
const SECRET_HEADER = "x-signalbox-primary";
const ORIGIN_HEADER = "x-signalbox-origin";

interface RequestOrigin {
  target: RequestTarget;
  /** Undefined for a peer on a unix socket. */
  peer: string | undefined;
}

/** They concern a connection, and the body is sent on in pieces. */
const OF_A_CONNECTION = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"];
/** The type of the answer that goes on as long as its client reads. */
const EVENTS = "text/event-stream";
/** A worker hears of the death of its primary within this time. */
const DEATH_MS = 250;
/** An answer up to this size is read whole. */
const MAX_WHOLE_BYTES = 1024 * 1024;

interface HandOn {
  handle: TargetHandler;
  /** Answers that would never end are over. */
  closing(): void;
}

export function createHandOn(socket: string, secret: string): HandOn {
  const endless = new Set<{ cancel(): Promise<void> }>();

  /** Ends with what it is made of, or when this process goes. */
  function untilClosing(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    endless.add(reader);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        endless.delete(reader);
        controller.close();
      },
      async cancel(reason) {
        endless.delete(reader);
        await reader.cancel(reason);
      },
    });
  }

  async function handle(request: Request, server: Server, target: RequestTarget): Promise<Response> {
    // The primary has its own limits of time.
    server.timeout(request, 0);
    const headers = withoutConnection(request.headers);
    const origin: RequestOrigin = { target, peer: server.requestIP(request)?.address };
    headers.set(SECRET_HEADER, secret);
    headers.set(ORIGIN_HEADER, encodeURIComponent(JSON.stringify(origin)));
    if (!headers.has("accept-encoding")) headers.set("accept-encoding", "identity");
    const { method, url, signal } = request;
    const query = url.indexOf("?");
    const hasBody = method !== "GET" && method !== "HEAD" && request.body !== null;
    try {
      const answer = await fetch(`http://primary/${query < 0 ? "" : url.slice(query)}`, {
        unix: socket,
        method,
        headers,
        signal,
        redirect: "manual",
        decompress: false,
        ...(hasBody && { body: request.body }),
      } as RequestInit);
      const answerHeaders = withoutConnection(answer.headers, "date");
      const { status } = answer;
      const isWhole = Number(answer.headers.get("content-length") ?? Number.POSITIVE_INFINITY) <= MAX_WHOLE_BYTES;
      if (!isWhole) {
        const isEndless = answer.body !== null && answer.headers.get("content-type")?.startsWith(EVENTS);
        const body = isEndless ? untilClosing(answer.body as ReadableStream<Uint8Array>) : answer.body;
        return new Response(body, { status, headers: answerHeaders });
      }
      const body = await answer.arrayBuffer();
      return new Response(body.byteLength === 0 ? null : body, { status, headers: answerHeaders });
    } catch {
      // Where the primary has died, so does this process, and its clients see that: a refusal would say too much.
      await Bun.sleep(DEATH_MS);
      const message = "The control plane did not answer; it is not known whether it has done what was asked.";
      const error = new GatewayError(ERRORS.controlPlaneUnavailable, message);
      return errorResponse(error, crypto.randomUUID(), {}, undefined);
    }
  }

  return {
    handle,
    closing() {
      for (const reader of endless) void reader.cancel();
    },
  };
}

/** In the primary: what answers requests that a worker hands on; a request without the secret is refused. */
export function createHandedOn(
  surfaces: readonly Surface[],
  secret: string,
  around: (answer: () => Promise<Response>) => Promise<Response>,
): (request: Request, server: Server) => Promise<Response> {
  const expected = digest(secret);
  return async (request, server) => {
    const { headers } = request;
    const presented = digest(headers.get(SECRET_HEADER) ?? "");
    if (!crypto.timingSafeEqual(presented, expected)) return new Response(null, { status: 403 });
    const { target, peer } = JSON.parse(decodeURIComponent(headers.get(ORIGIN_HEADER) ?? "")) as RequestOrigin;
    headers.delete(SECRET_HEADER);
    headers.delete(ORIGIN_HEADER);
    const { route } = target;
    const surface = surfaces.find(({ paths }) => route !== undefined && paths.includes(route));
    if (surface === undefined) return new Response(null, { status: 404 });
    return await around(() => surface.handle(request, seenFrom(peer, server), target));
  };
}

/** The server, for code that asks it for the address of the client. */
function seenFrom(peer: string | undefined, server: Server): Server {
  return {
    requestIP: () => (peer === undefined ? null : { address: peer, port: 0, family: "IPv4" }),
    timeout: (request: Request, seconds: number) => server.timeout(request, seconds),
  } as unknown as Server;
}

function withoutConnection(from: Headers, ...more: string[]): Headers {
  const headers = new Headers(from);
  for (const name of [...OF_A_CONNECTION, ...more]) headers.delete(name);
  return headers;
}

function digest(text: string): Buffer {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}
