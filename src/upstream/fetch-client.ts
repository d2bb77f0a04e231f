// Calls whose answers are Responses: of fetch, and of the backend inside this process.

import type { Backend } from "../backends/backend.ts";
import type {
  BackendAnswer,
  BackendCall,
  BodyReceiver,
  EmbeddedBackend,
  Transport,
  TransportRequest,
} from "../backends/transport.ts";
import type { TlsOf } from "./backend-tls.ts";
import type { Reachability } from "./reachability.ts";

/** Through fetch, which honours the forward proxies of the environment. */
export function createFetchClient(isReachable: Reachability, tlsOf: TlsOf): Transport {
  return (backend, pathAndQuery, { method, headers, body }) => {
    const url = backend.rootUrl + pathAndQuery;
    // Said again for every call, because the environment can turn the check off (NODE_TLS_REJECT_UNAUTHORIZED).
    const tls = url.startsWith("https:") ? { ...tlsOf(backend), rejectUnauthorized: true } : undefined;
    return new ResponseCall(
      // Signalbox has deadlines of its own; the timer inside fetch would cut long silences after five minutes.
      (signal) =>
        fetch(url, {
          method,
          headers,
          body,
          signal,
          redirect: "manual",
          timeout: false,
          unix: backend.socketPath,
          tls,
        } as RequestInit),
      (withinMs) => isReachable(backend, withinMs),
    );
  };
}

export function callEmbedded(
  embedded: EmbeddedBackend,
  { rootUrl }: Backend,
  pathAndQuery: string,
  { method, headers, body }: TransportRequest,
): BackendCall {
  const url = rootUrl + pathAndQuery;
  return new ResponseCall(
    (signal) => embedded(new Request(url, { method, headers, body, signal } as RequestInit)),
    async () => true,
  );
}

class ResponseCall implements BackendCall {
  readonly answer: Promise<BackendAnswer>;
  readonly connects: BackendCall["connects"];
  readonly #controller = new AbortController();

  constructor(ask: (signal: AbortSignal) => Promise<Response>, connects: BackendCall["connects"]) {
    const { signal } = this.#controller;
    this.connects = connects;
    this.answer = ask(signal).then((response) => new ResponseAnswer(response, signal));
  }

  abort(): void {
    this.#controller.abort();
  }
}

type BodyPiece = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

class ResponseAnswer implements BackendAnswer {
  readonly #response: Response;
  #pieces: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #receiver: BodyReceiver | undefined;
  #isPaused = false;
  #isPulling = false;
  /** Came while the body was paused. */
  #held: BodyPiece | undefined;
  #isOver = false;
  #failure: unknown;

  constructor(response: Response, signal: AbortSignal) {
    this.#response = response;
    // A body that is paused is not read, and would not hear of it.
    signal.addEventListener("abort", () => this.#fail(signal.reason));
  }

  get status(): number {
    return this.#response.status;
  }

  header(name: string): string | null {
    return this.#response.headers.get(name);
  }

  read(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (this.#failure !== undefined) {
      receiver.failed(this.#failure);
      return;
    }
    this.#pieces ??= this.#response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
    this.#begin();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#begin();
  }

  #begin(): void {
    if (!this.#isPaused && !this.#isPulling) void this.#pull();
  }

  async #pull(): Promise<void> {
    this.#isPulling = true;
    try {
      while (!this.#isPaused && !this.#isOver) {
        const piece: BodyPiece = this.#held ?? (await this.#pieces?.read()) ?? { done: true, value: undefined };
        this.#held = undefined;
        if (this.#isOver) break;
        if (this.#isPaused) this.#held = piece;
        else if (piece.done) this.#end();
        else this.#receiver?.received(piece.value);
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#isPulling = false;
  }

  #end(): void {
    this.#isOver = true;
    this.#receiver?.ended();
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = error;
    this.#receiver?.failed(error);
  }
}
