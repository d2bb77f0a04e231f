// What the relays share: calls to the upstream, and what becomes of their answers.

import type { BackendAnswer, BackendCall, TransportRequest } from "../../src/backends/transport.ts";

export type Call = Pick<BackendCall, "answer" | "abort">;

export type Calls = (pathAndQuery: string, request: TransportRequest) => Call;

export function isStream(answer: BackendAnswer): boolean {
  return answer.header("content-type")?.startsWith("text/event-stream") === true;
}

/** The whole body. Most answers are one piece, which is given as it is. */
export function readWhole(answer: BackendAnswer): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = [];
    answer.read({
      received: (piece) => pieces.push(piece),
      ended: () => resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)),
      failed: reject,
    });
  });
}

/** Pieces of the body for a client: what `reshape` makes of each goes on, and nothing waits for more. */
export function streamBody(
  call: Call,
  answer: BackendAnswer,
  reshape: ((piece: Uint8Array) => Uint8Array | undefined) | undefined,
  settled?: (error: unknown) => void,
): ReadableStream {
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull: (client) =>
      new Promise<void>((resolve) => {
        const end = (error?: unknown) => {
          settled?.(error);
          if (error === undefined) client.close();
          else client.close(error instanceof Error ? error : new Error(String(error)));
          resolve();
        };
        answer.read({
          received(piece) {
            const bytes = reshape === undefined ? piece : reshape(piece);
            if (bytes === undefined) return;
            const written: number | Promise<unknown> = client.write(bytes);
            client.flush();
            if (typeof written === "number") return;
            answer.pause();
            void written.then(() => answer.resume());
          },
          ended: end,
          failed: end,
        });
      }),
    cancel: () => call.abort(),
  };
  return new ReadableStream(source);
}
