// A backend's stream read by the gateway itself: in neutral events, whatever the backend speaks, with the relay's own care
// for broken streams and slow readers.

import type { GenerationEvent } from "../generation/events.ts";
import type { ClientProtocol } from "../protocols/protocol.ts";
import { readEvents } from "../protocols/sse.ts";
import { type ByteSink, clientFailure, type LiveStream, relayInto } from "../upstream/relay.ts";

/** A client that reads neutral events. */
export function createEventClient(client: ClientProtocol): ClientProtocol {
  return {
    ...client,
    encodeResponse: () => {
      throw new Error("turns of an answer with searches are streams");
    },
    streamEncoder: () => ({
      push: (event) => `data: ${JSON.stringify(event)}\n\n`,
      end: () => "",
    }),
  };
}

/** Events that wait to be read before the backend has to wait too. */
const MAX_WAITING = 1_000;

/** The events of a stream that was opened for such a client, as they come. */
export async function* readTurn(live: LiveStream): AsyncGenerator<GenerationEvent, void> {
  const decoder = new TextDecoder();
  let waiting: GenerationEvent[] = [];
  let isOver = false;
  let arrived = Promise.withResolvers<void>();
  let drained: PromiseWithResolvers<void> | undefined;

  function add(bytes: Uint8Array): void {
    for (const { data } of readEvents(decoder.decode(bytes))) waiting.push(JSON.parse(data) as GenerationEvent);
    arrived.resolve();
  }
  function end(): void {
    isOver = true;
    arrived.resolve();
  }
  const sink: ByteSink = {
    write(bytes) {
      add(bytes);
      if (waiting.length <= MAX_WAITING) return bytes.length;
      drained ??= Promise.withResolvers<void>();
      return drained.promise;
    },
    flush() {},
    close: end,
    fail(failure, words) {
      if (words === undefined) waiting.push({ type: "failure", failure: clientFailure(failure) });
      else add(words);
      end();
    },
  };
  const relay = relayInto(live, sink, { takeover: undefined, tap: undefined, finished: () => {} });
  try {
    for (;;) {
      const batch = waiting;
      waiting = [];
      drained?.resolve();
      drained = undefined;
      yield* batch;
      if (waiting.length > 0) continue;
      if (isOver) return;
      await arrived.promise;
      arrived = Promise.withResolvers<void>();
    }
  } finally {
    if (!isOver) relay.cancel();
  }
}
