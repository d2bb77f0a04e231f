// Calls over fetch, as lean as they can be: a whole answer is read at once, a stream piece by piece.

import type { BackendAnswer, BodyReceiver } from "../../src/backends/transport.ts";
import type { Calls } from "./calls.ts";

export function callByFetch(upstreamPort: number): Calls {
  const upstream = `http://127.0.0.1:${upstreamPort}`;
  return (path, request) => {
    const controller = new AbortController();
    const { signal } = controller;
    return {
      answer: fetch(upstream + path, { ...request, signal }).then(answerOf),
      abort: () => controller.abort(),
    };
  };
}

function answerOf(response: Response): BackendAnswer {
  let resumed: PromiseWithResolvers<void> | undefined;

  async function pump(receiver: BodyReceiver): Promise<void> {
    const reader = response.body!.getReader();
    for (;;) {
      await resumed?.promise;
      const { done, value } = await reader.read();
      if (done) return;
      receiver.received(value);
    }
  }

  async function readWhole(receiver: BodyReceiver): Promise<void> {
    receiver.received(await response.bytes());
  }

  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    read(receiver) {
      const read = response.headers.has("content-length") ? readWhole : pump;
      read(receiver).then(receiver.ended, receiver.failed);
    },
    pause() {
      resumed ??= Promise.withResolvers();
    },
    resume() {
      resumed?.resolve();
      resumed = undefined;
    },
  };
}
