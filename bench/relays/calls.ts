// What a relay asks of its way to the upstream: of the gateway's own (src/backends/transport.ts) no more than it needs.

export interface CallRequest {
  method: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}

export type Calls = (pathAndQuery: string, request: CallRequest) => Call;

export interface Call {
  readonly answer: Promise<CallAnswer>;
  abort(): void;
}

export interface CallAnswer {
  readonly status: number;
  header(name: string): string | null;
  read(receiver: BodyReceiver): void;
  pause(): void;
  resume(): void;
}

export interface BodyReceiver {
  received(piece: Uint8Array): void;
  ended(): void;
  failed(error: unknown): void;
}

export function isStream(answer: CallAnswer): boolean {
  return answer.header("content-type")?.startsWith("text/event-stream") === true;
}

/** The whole body. Most answers are one piece, which is given as it is. */
export function readWhole(answer: CallAnswer): Promise<Uint8Array> {
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
  answer: CallAnswer,
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
