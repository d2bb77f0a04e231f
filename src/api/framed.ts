// A stream on its way to a client that reads another form than Server-Sent Events.

import { EventRewriter, type Framing } from "../protocols/framing.ts";

/** Takes a piece only when the client has taken the one before, and gives up the stream when the client leaves. */
export function framed(body: ReadableStream<Uint8Array>, framing: Framing): ReadableStream {
  const reader = body.getReader();
  const rewriter = new EventRewriter(framing);
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(client) {
      try {
        for (;;) {
          const { done, value } = await reader.read();
          const written = done ? rewriter.end() : rewriter.push(value);
          if (written !== undefined) {
            const taken = client.write(written);
            if (typeof taken !== "number") await taken;
            void client.flush();
          }
          if (done) break;
        }
        client.close();
      } catch (error) {
        reader.cancel().catch(() => {}); // a stream that broke off rejects with its own error
        client.close(error as Error);
      }
    },
    cancel: () => void reader.cancel(),
  };
  return new ReadableStream(source);
}
