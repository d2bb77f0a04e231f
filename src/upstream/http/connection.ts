// One socket to a backend, from the first attempt to connect until it is closed, and the one exchange it has at a time.

import type { LookupFunction } from "node:net";
import type { AnswerHead } from "./answer-head.ts";
import { AnswerParser, type AnswerSink, part } from "./answer-parser.ts";
import { connect, type GiveUp, type Socket, type SocketUser } from "./connect.ts";
import { connectionReset } from "./http-error.ts";
import { Inbox } from "./inbox.ts";
import { RequestOutbox } from "./outbox.ts";
import type { OutgoingRequest } from "./request-head.ts";
import type { Address } from "./target.ts";

/** The sender of a request over a connection. */
export interface Exchange {
  /** The connection is paused now: nothing of the body comes before `resume()`. @throws HttpError to refuse the answer */
  headRead(head: AnswerHead): void;
  pieceRead(piece: Uint8Array): void;
  /** The answer is complete, and the connection is no longer the exchange's. */
  answerRead(): void;
  /** There is no more to come. @param isUntouched - not a byte of an answer had come */
  broke(error: unknown, isUntouched: boolean): void;
}

/** Who keeps the connection while it has no exchange. */
export interface ConnectionOwner {
  /** Requests are put together in it, if they fit. */
  readonly scratch: Buffer;
  /** Where hosts are. */
  readonly lookup: LookupFunction;
  /** The connection stands, and has no exchange. */
  idle(connection: HttpConnection): void;
  /** The connection is closed. @param isUnreachable - it never stood */
  closed(connection: HttpConnection, isUnreachable: boolean): void;
}

/** Silence after which the other side is asked whether it is still there. */
const PROBE_AFTER_MS = 15_000;
const NOTHING = new Uint8Array(0);

export class HttpConnection implements AnswerSink, SocketUser {
  /** When it became idle, in milliseconds of its owner's clock; written by the owner alone. */
  idleSinceMs = 0;
  #state: "connecting" | "busy" | "idle" | "closed" = "connecting";
  readonly #owner: ConnectionOwner;
  readonly #parser = new AnswerParser(this);
  readonly #outbox = new RequestOutbox();
  readonly #inbox = new Inbox();
  readonly #giveUp: GiveUp;
  /** Undefined while it is connected. */
  #socket: Socket | undefined;
  #settled: PromiseWithResolvers<void> | undefined;
  #exchange: Exchange | undefined;
  /** Waits for the connection to stand. */
  #request: OutgoingRequest | undefined;
  /** The parser is at work: what it tells may lead back here. */
  #isReading = false;
  /** Nothing has come in this exchange. */
  #isUntouched = true;
  /** The backend has closed its side in order. */
  #hasEnded = false;
  /** How the socket was closed while the parser was paused. */
  #closing: { error: Error | undefined } | undefined;

  constructor(address: Address, owner: ConnectionOwner) {
    this.#owner = owner;
    this.#giveUp = connect(address, owner.lookup, this);
  }

  get isConnecting(): boolean {
    return this.#state === "connecting";
  }

  /** Resolves when the connection stands or could not be made; never, if it is closed by its owner before. */
  settled(): Promise<void> {
    if (!this.isConnecting) return Promise.resolve();
    this.#settled ??= Promise.withResolvers();
    return this.#settled.promise;
  }

  /** Sends a request as soon as the connection stands. It must not have an exchange. */
  begin(exchange: Exchange, request: OutgoingRequest): void {
    this.#exchange = exchange;
    this.#request = request;
    this.#isUntouched = true;
    this.#parser.begin(request.isHead);
    if (this.#state !== "idle") return;
    this.#socket?.ref();
    this.#send();
  }

  /** The exchange hears nothing until `resume()`; the backend is held back once enough has come. */
  pause(): void {
    this.#parser.paused = true;
  }

  resume(): void {
    if (this.#state !== "busy") return;
    this.#parser.paused = false;
    if (!this.#isReading) this.#readWaiting();
  }

  /** Gives the exchange up, which gets nothing more: a reset tells the backend to stop its work. */
  abort(): void {
    if (this.#state === "closed") return;
    this.#leave();
    if (this.#socket === undefined) this.#giveUp();
    else this.#socket.terminate();
    this.#owner.closed(this, false);
  }

  /** Closes the connection in order. */
  close(): void {
    if (this.#state === "closed") return;
    this.#leave();
    if (this.#socket === undefined) this.#giveUp();
    else this.#socket.close(); // end() would leave a TLS socket open until the backend closes it too
    this.#owner.closed(this, false);
  }

  headRead(head: AnswerHead): void {
    this.#parser.paused = true;
    this.#exchange?.headRead(head);
  }

  pieceRead(piece: Uint8Array): void {
    this.#exchange?.pieceRead(piece);
  }

  opened(socket: Socket): void {
    this.#socket = socket;
    if (this.#state === "closed") {
      socket.terminate(); // given up meanwhile
      return;
    }
    socket.setNoDelay(true);
    socket.setKeepAlive(true, PROBE_AFTER_MS);
    this.#settled?.resolve();
    if (this.#request === undefined) this.#rest();
    else this.#send();
  }

  received(bytes: Uint8Array): void {
    if (this.#state !== "busy")
      this.close(); // nothing was asked
    else if (this.#parser.paused) this.#inbox.add(bytes, this.#socket as Socket);
    else this.#read(bytes);
  }

  drained(socket: Socket): void {
    this.#outbox.flush(socket);
  }

  ended(): void {
    this.#hasEnded = true;
  }

  closed(error: Error | undefined): void {
    if (this.#state === "busy" && this.#parser.paused) this.#closing = { error };
    else this.#finish(error);
  }

  /** The connection is of no use any more. */
  broke(error: unknown): void {
    if (this.#state === "closed") return;
    const isUnreachable = this.isConnecting;
    const exchange = this.#exchange;
    this.#leave();
    this.#socket?.terminate();
    this.#settled?.resolve();
    exchange?.broke(error, this.#isUntouched); // before its owner hears of it, so that its place can be taken
    this.#owner.closed(this, isUnreachable);
  }

  #send(): void {
    this.#state = "busy";
    this.#outbox.send(this.#request as OutgoingRequest, this.#socket as Socket, this.#owner.scratch);
    this.#request = undefined;
  }

  /** Without an exchange, a connection keeps no process from its end. */
  #rest(): void {
    this.#state = "idle";
    this.#socket?.unref();
    this.#owner.idle(this);
  }

  #readWaiting(): void {
    this.#read(NOTHING); // the answer may have been read already but for its end
    while (this.#mayRead) {
      const bytes = this.#inbox.take();
      if (bytes === undefined) break;
      this.#read(bytes);
    }
    if (!this.#mayRead) return;
    if (this.#closing !== undefined) this.#finish(this.#closing.error);
    else this.#inbox.resume(this.#socket as Socket);
  }

  get #mayRead(): boolean {
    return this.#state === "busy" && !this.#parser.paused;
  }

  #read(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#isUntouched = false;
    this.#isReading = true;
    let taken: number;
    try {
      taken = this.#parser.push(bytes);
    } catch (error) {
      this.broke(error);
      return;
    } finally {
      this.#isReading = false;
    }
    if (this.#state !== "busy") return;
    if (this.#parser.isOver && !this.#parser.paused) {
      this.#complete(taken < bytes.length);
    } else if (taken < bytes.length) {
      this.#inbox.putBack(part(bytes, taken, bytes.length));
    }
  }

  /** The whole answer was read. @param isMore - unexpected bytes follow, so the connection is not reused */
  #complete(isMore: boolean): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    const isClean = !isMore && this.#inbox.isEmpty && this.#outbox.isEmpty && this.#closing === undefined;
    if (isClean && this.#parser.keepsAlive) {
      this.#inbox.resume(this.#socket as Socket);
      this.#rest();
    } else {
      this.close();
    }
    exchange?.answerRead();
  }

  /** The socket is closed, and everything that had come before was read. */
  #finish(error: Error | undefined): void {
    try {
      if (error !== undefined || !this.#hasEnded || this.#state !== "busy") throw error ?? connectionReset();
      this.#parser.finish();
    } catch (failure) {
      this.broke(failure);
      return;
    }
    this.#complete(false);
  }

  /** Nothing that still comes matters. */
  #leave(): void {
    this.#state = "closed";
    this.#parser.paused = true; // also for the rest of a piece that is being read
    this.#exchange = undefined;
    this.#request = undefined;
    this.#outbox.clear();
    this.#inbox.clear();
  }
}
