// The same calls through the runtime's fetch: the other implementation, to compare with.

import type { BackendAnswer, BackendCall, BodyReceiver, Transport } from "../../src/backends/transport.ts";

/** Over kept connections, as anybody uses it. */
export const fetchTransport: Transport = fetchWith({});

/** Each call over a connection of its own, so that none suffers from what another has left behind. */
export const lonelyFetchTransport: Transport = fetchWith({ keepalive: false });

function fetchWith(more: RequestInit): Transport {
  return (backend, pathAndQuery, request) => call(backend, pathAndQuery, request, more);
}

function call(...[backend, pathAndQuery, request, more]: [...Parameters<Transport>, RequestInit]): BackendCall {
  const { method, headers, body } = request;
  const controller = new AbortController();
  const { signal } = controller;
  const init = { method, headers, body, signal, redirect: "manual", timeout: false, unix: backend.socketPath, ...more };
  const answer = fetch(backend.rootUrl + pathAndQuery, init as RequestInit).then(toAnswer, (error: unknown) => {
    throw withCode(error);
  });
  answer.catch(() => {}); // whoever waits for it is told
  return { answer, abort: () => controller.abort(), connects: async () => true };
}

/** An abort has a number, or none at all. */
function withCode(error: unknown): Error {
  const { code, name } = error as { code?: unknown; name: string };
  return Object.assign(new Error(name, { cause: error }), { code: typeof code === "string" ? code : name });
}

function toAnswer(response: Response): BackendAnswer {
  let receiver: BodyReceiver | undefined;
  let gate: PromiseWithResolvers<void> | undefined = Promise.withResolvers<void>();
  let isPumping = false;
  async function pump(): Promise<void> {
    try {
      const reader = response.body?.getReader();
      while (reader !== undefined) {
        const { done, value } = await reader.read();
        await gate?.promise;
        if (done) break;
        receiver?.received(value);
      }
    } catch (error) {
      receiver?.failed(withCode(error));
      return;
    }
    receiver?.ended();
  }
  function resume(): void {
    gate?.resolve();
    gate = undefined;
  }
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    read(newReceiver) {
      receiver = newReceiver;
      resume();
      if (isPumping) return;
      isPumping = true;
      void pump();
    },
    pause() {
      gate ??= Promise.withResolvers();
    },
    resume,
  };
}
