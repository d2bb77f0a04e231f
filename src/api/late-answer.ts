// A stream that begins before its request has had its turn in the queue: comments keep the connection alive, and the answer follows.

import { GatewayError } from "../errors/gateway-error.ts";
import type { ClientWords } from "../protocols/protocol.ts";
import type { BrokenStream, Call } from "../server/endpoint.ts";
import { clientError, toGatewayError } from "../server/error-response.ts";
import { EVENT_STREAM } from "../upstream/send.ts";

/** https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes: a comment line, which readers leave out. */
const WAITING = new TextEncoder().encode(": waiting\n\n");

/**
 * The answer, or, where its request still waits in the queue after `streaming.keepalive`, a stream that begins with comments.
 * An error comes as an event then, because the status has been sent.
 */
export async function answerOrWait(
  call: Call,
  client: Pick<ClientWords, "errorEvent">,
  answer: () => Promise<Response>,
): Promise<Response> {
  const { context, headers } = call;
  const keepaliveMs = context.settings.streaming.keepalive;
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  let timer: Timer | undefined;
  context.queue = {
    entered() {
      timer ??= setTimeout(() => resolve("late"), keepaliveMs);
    },
    left() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
  const answering = answer();
  const first = await Promise.race([answering, late]);
  if (first !== "late") return first;
  answering.catch(() => {}); // the client may leave before it is read
  const conclude = call.deferLog();
  return new Response(waitingStream(call, client, answering, keepaliveMs, conclude), {
    headers: { ...headers, "Content-Type": EVENT_STREAM, "Cache-Control": "no-cache", "X-Accel-Buffering": "no" },
  });
}

function waitingStream(
  { context }: Call,
  client: Pick<ClientWords, "errorEvent">,
  answering: Promise<Response>,
  keepaliveMs: number,
  conclude: (broken: BrokenStream | undefined) => void,
): ReadableStream {
  let timer: Timer | undefined;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  function fail(sink: { write(text: string): unknown }, error: GatewayError): void {
    const { type, code, message, status } = error;
    void sink.write(client.errorEvent(clientError(error, context.id), undefined));
    conclude({ failure: type, status, error: { type, code, message } });
  }

  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(sink) {
      const tell = () => {
        void sink.write(WAITING);
        void sink.flush();
      };
      tell();
      timer = setInterval(tell, keepaliveMs);
      try {
        const response = await answering;
        clearInterval(timer);
        const { error } = context.record;
        if (!response.ok && error !== undefined) {
          const { type, code, message } = error;
          fail(sink, new GatewayError({ status: response.status, type, code: code ?? response.status }, message));
        } else {
          reader = (response.body as ReadableStream<Uint8Array>).getReader() as typeof reader;
          for (;;) {
            const { done, value } = await (reader as NonNullable<typeof reader>).read();
            if (done) break;
            const taken = sink.write(value);
            if (typeof taken !== "number") await taken;
            void sink.flush();
          }
          conclude(undefined);
        }
      } catch (thrown) {
        clearInterval(timer);
        // An answer that broke off has told its client, and was concluded.
        if (reader === undefined) fail(sink, toGatewayError(thrown));
      }
      sink.close();
    },
    cancel() {
      clearInterval(timer);
      void reader?.cancel();
    },
  };
  return new ReadableStream(source);
}
