// What lets requests in at a backend where a fixed key is not enough: an access token that expires, or a signature.

import type { BackendSettings } from "../../config/sections/registry.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../logging/logger.ts";

/** Of one backend, from the configuration that names it until another one does not. */
export interface BackendCredential {
  /**
   * The headers with which the backend takes this request. A promise where they have to be waited for; it rejects with
   * CredentialError.
   */
  authorize(request: UnauthorizedRequest): CredentialHeaders | Promise<CredentialHeaders>;
  /** The backend did not accept what was authorized: it may have been revoked. */
  refused?(): void;
  /** Ends timers and requests of its own. */
  stop(): void;
}

/** Names in lower case. All values are secret: none is shown when the backend repeats it. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/** A request as it goes out, complete but for the headers of its credential. */
export interface UnauthorizedRequest {
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array | string | undefined;
}

/** How the backends of a kind get their credentials: a member of the row of the kind. */
export interface CredentialScheme<Options = unknown> {
  /** What the credential is made of; undefined: the backend needs none. It is made again when these have changed. */
  optionsOf(settings: BackendSettings): Options | undefined;
  make(options: Options, tools: CredentialTools): BackendCredential;
}

export interface CredentialTools {
  /** Name of the backend, for log lines. */
  backend: string;
  env: Record<string, string | undefined>;
  /** The absolute path of a file that the configuration names. */
  resolve(path: string): string;
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
}

/** There is no credential to ask the backend with. The message says why, for operators, and holds no secret. */
export class CredentialError extends Error {
  override readonly name = "CredentialError";
}
