// The way to a backend, as its users see it: a request goes out as a call, and its answer is pushed to its reader. What
// leads there, sockets or fetch, is upstream's business (upstream/transport.ts).

import type { Backend } from "./backend.ts";
import type { CredentialHeaders } from "./credentials/credential.ts";

/** A request to a backend: headers are complete, credentials included, with names in lower case. */
export interface TransportRequest {
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array | string | undefined;
}

/** Begins a call; it never throws. Redirects are answers, never followed, because credentials would follow with them. */
export type Transport = (backend: Backend, pathAndQuery: string, request: TransportRequest) => BackendCall;

/** A request under way to a backend. */
export interface BackendCall {
  /** Once the head of the answer is there. Rejects with an Error whose `code` says why there is none. */
  readonly answer: Promise<BackendAnswer>;
  /**
   * Closes the connection: whatever waits for the answer or for its body fails. Does nothing when the answer is over. Safe
   * to call at any time, also from within a receiver.
   */
  abort(): void;
  /** True if a connection is open or can be made within this time. Used only when an answer is late. */
  connects(withinMs: number): Promise<boolean>;
  /** What the backend's credential has added to the request, where it has one. */
  readonly credential?: CredentialHeaders | undefined;
}

/** The head of an answer, and its body. */
export interface BackendAnswer {
  readonly status: number;
  /** A header by its name in lower case; several of one name are joined with ", ". */
  header(name: string): string | null;
  /**
   * The receiver gets the body from here on, perhaps within this call. Called again, it puts another receiver in the place
   * of the former, which hears nothing more. Nothing is lost before the first call, nor between two of them while the body
   * is paused; every receiver learns of a body that has broken off meanwhile.
   */
  read(receiver: BodyReceiver): void;
  /** Holds the backend back: until resume() the receiver hears of nothing but that the body was aborted. */
  pause(): void;
  resume(): void;
}

/** Gets `received` any number of times, and then either of the others once. None of them may throw. */
export interface BodyReceiver {
  /** The receiver owns the memory of the piece. */
  received(piece: Uint8Array): void;
  /** The body is complete, as its head has announced it. */
  ended(): void;
  failed(error: unknown): void;
}

/** An HTTP server inside this process. */
export type EmbeddedBackend = (request: Request) => Promise<Response>;
