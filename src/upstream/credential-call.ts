// A call to a backend that needs more than a fixed key: it is sent once its credential has authorized it.

import type { Backend } from "../backends/backend.ts";
import type { BackendCredential, CredentialHeaders } from "../backends/credentials/credential.ts";
import type { BackendAnswer, BackendCall, Transport, TransportRequest } from "../backends/transport.ts";

export class CredentialCall implements BackendCall {
  readonly answer: Promise<BackendAnswer>;
  readonly #fail: (reason: unknown) => void;
  #credential: CredentialHeaders | undefined;
  #call: BackendCall | undefined;
  #isAborted = false;

  constructor(
    send: Transport,
    credential: BackendCredential,
    backend: Backend,
    pathAndQuery: string,
    request: TransportRequest,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<BackendAnswer>();
    this.answer = promise;
    this.#fail = reject;
    const url = backend.rootUrl + pathAndQuery;
    const begin = async () => {
      this.#credential = await credential.authorize({ ...request, url });
      if (this.#isAborted) return;
      // Headers that the operator has set are written over all others.
      const headers = { ...this.#credential, ...request.headers };
      this.#call = send(backend, pathAndQuery, { ...request, headers });
      const answer = await this.#call.answer;
      // AWS says 403 of keys that are no longer good.
      if (answer.status === 401 || answer.status === 403) credential.refused?.();
      resolve(answer);
    };
    begin().catch(reject);
  }

  get credential(): CredentialHeaders | undefined {
    return this.#credential;
  }

  abort(): void {
    this.#isAborted = true;
    this.#call?.abort();
    this.#fail(new DOMException("The call was aborted.", "AbortError"));
  }

  /** A call that waits for its credential is asked for later. */
  async connects(withinMs: number): Promise<boolean> {
    return this.#call === undefined || (await this.#call.connects(withinMs));
  }
}
