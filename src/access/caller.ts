// Who calls, and what it may do.

import type { SCOPES } from "../config/sections/api-keys.ts";

export type Scope = (typeof SCOPES)[number];

export interface Caller {
  /** By which the key is known, see key-identity.ts. */
  keyId: string;
  userId: string | undefined;
  organizationId: string | undefined;
  scopes: ReadonlySet<Scope>;
  /** Undefined: every model. */
  allowsModel?: (model: string) => boolean;
  /** Of its requests in the queue, and the highest that they may ask for; undefined: that of the route, or default. */
  queueClass?: string | undefined;
  highestQueueClass?: string | undefined;
  /** Of a caller with a token: its issuer, and the models that it names. */
  token?: { issuer: string; models: readonly string[] | undefined };
  /** A budget or a limit of tokens of its own. */
  carriesBudget?: boolean;
  /** Of its own; undefined: the one for all keys. */
  requestsPerMinute: number | undefined;
  /** Milliseconds since the Unix epoch; infinite for what has no end. */
  expiresAtMs: number;
}
