// The gateway's duties in their leanest form, over any way to the upstream: what no gateway can leave out.

import type { BackendAnswer } from "../../src/backends/transport.ts";
import { createDeadlines, type Deadline } from "../../src/lib/deadlines.ts";
import { type Call, type Calls, isStream, readWhole, streamBody } from "./calls.ts";

const FORWARDED = ["idempotency-key", "user-agent"] as const;
const ANSWER_LIMIT_MS = 300_000;
const decoder = new TextDecoder();
const EVENT_END = Buffer.from("\n\n");
const STREAM_END = Buffer.from("data: [DONE]\n\n");

interface Backend {
  inFlight: number;
  answered: number;
  failed: number;
  totalMs: number;
  headers: Readonly<Record<string, string>>;
}

export function relayWithDuties(port: number, calls: Calls): void {
  const headers = { "content-type": "application/json", authorization: "Bearer sk-bench-upstream" };
  const newBackend = (): Backend => ({ inFlight: 0, answered: 0, failed: 0, totalMs: 0, headers });
  const backends = [newBackend(), newBackend()];
  const deadlines = createDeadlines();
  let turn = 0;

  Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.bytes();
      const { model, stream } = JSON.parse(decoder.decode(body)) as { model?: unknown; stream?: unknown };
      if (typeof model !== "string") return new Response("no model", { status: 400 });
      const backend = backends[turn++ % backends.length]!;
      const exchange = new Exchange(
        calls(new URL(request.url).pathname, { method: "POST", headers: outgoing(backend, request.headers), body }),
        backend,
      );
      deadlines.add(exchange);
      const settled = (error?: unknown) => {
        deadlines.remove(exchange);
        exchange.settle(error === undefined || exchange.isOver);
      };
      request.signal.addEventListener("abort", () => exchange.call.abort());
      try {
        const answer = await exchange.call.answer;
        const head = { status: answer.status, headers: incoming(answer, request.headers) };
        if (stream === true && isStream(answer)) {
          return new Response(streamBody(exchange.call, answer, wholeEvents(exchange), settled), head);
        }
        const whole = await readWhole(answer);
        settled();
        return new Response(whole, head);
      } catch (error) {
        settled(error);
        return new Response("no answer", { status: 502 });
      }
    },
  });
}

class Exchange implements Deadline {
  readonly call: Call;
  deadlineMs: number;
  /** The end of the answer was seen, whatever the connection does. */
  isOver = false;
  private readonly backend: Backend;
  private readonly startedAtMs = performance.now();

  constructor(call: Call, backend: Backend) {
    this.call = call;
    this.backend = backend;
    this.deadlineMs = this.startedAtMs + ANSWER_LIMIT_MS;
    backend.inFlight++;
  }

  expire(): void {
    this.call.abort();
  }

  settle(isGood: boolean): void {
    const { backend } = this;
    backend.inFlight--;
    backend.totalMs += performance.now() - this.startedAtMs;
    if (isGood) backend.answered++;
    else backend.failed++;
  }
}

function outgoing({ headers }: Backend, client: Headers): Record<string, string> {
  const copy: Record<string, string> = { ...headers };
  for (const name of FORWARDED) {
    const value = client.get(name);
    if (value !== null) copy[name] = value;
  }
  return copy;
}

function incoming(answer: BackendAnswer, client: Headers): Record<string, string> {
  return {
    "content-type": answer.header("content-type") ?? "application/json",
    "x-request-id": client.get("x-request-id") ?? crypto.randomUUID(),
  };
}

/** Whole events only, with an eye on the end of the stream and on the deadline. */
function wholeEvents(exchange: Exchange): (piece: Uint8Array) => Uint8Array | undefined {
  let held: Buffer | undefined;
  return (piece) => {
    exchange.deadlineMs = performance.now() + ANSWER_LIMIT_MS;
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    const seen = held === undefined ? bytes : Buffer.concat([held, bytes]);
    const lastEnd = seen.lastIndexOf(EVENT_END);
    const events = seen.subarray(0, lastEnd < 0 ? 0 : lastEnd + EVENT_END.length);
    held = events.length === seen.length ? undefined : seen.subarray(events.length);
    if (events.includes(STREAM_END)) exchange.isOver = true;
    return events.length === 0 ? undefined : events;
  };
}
