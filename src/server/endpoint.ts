// What an endpoint is to the server: which requests are for it, who may make them, and what answers them.

import type { Scope } from "../access/caller.ts";
import type { Operation } from "../backends/operations.ts";
import type { FieldChange } from "../config/change/diff.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Role } from "../config/values/roles.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { AnsweredError } from "../stats/request-record.ts";
import type { ErrorFormat } from "./error-response.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Callers allowed to use an endpoint: all, those with a key, those whose key has a scope, or, for "admin", those that the
 * admin door admits.
 */
export type Access = "open" | "any_key" | Scope;

/** A caller of the admin API. */
export interface Administrator {
  /** As the history of changes names them; undefined where no sign-in is required. */
  name: string | undefined;
  role: Role;
  /** admin.auth.method, by which they came in. */
  method: Settings["admin"]["auth"]["method"];
  /** The sign-in of their browser; undefined where they came with the credentials themselves, or need none. */
  session?: { endsInMs: number; idleEndsInMs: number } | undefined;
  /** False once they would no longer be admitted; asked by answers that run for long. */
  isStillIn(): boolean;
}

/** The credential of a sign-in, as admin.auth.method wants it. */
export interface PresentedCredentials {
  token?: string | undefined;
  username?: string | undefined;
  password?: string | undefined;
  key?: string | undefined;
}

/** A browser that is signing in. */
export interface Guest {
  /** Throws 401, 403 or 429. The cookie is undefined where no sign-in is required. */
  signIn(presented: PresentedCredentials): { administrator: Administrator; cookie: string | undefined };
  /** A person whom the OpenID provider has named; returns the cookie. Throws 403. */
  enter(person: { name: string; role: Role }): string;
}

export interface AdminDoor {
  /**
   * Throws 401, 403 or 429. Addresses are undefined for peers on a unix socket; `client` is the one that trusted proxies
   * name.
   * @param visitor - gets its administrator, also one whose role is refused
   * @param needed - the lowest role that may do it
   */
  admit(
    visitor: { readonly request: Request; administrator: Administrator | undefined },
    addresses: PeerAddresses,
    needed: Role,
  ): void;
  /** A browser that has yet to sign in; throws 403. */
  receive(request: Request, addresses: PeerAddresses): Guest;
  /** Ends the sign-in that a request brings; returns the cookie that makes the browser forget it. */
  signOut(request: Request): string;
}

/** Secrets are for administrators with credentials: method none admits every program of the machine. */
export function maySeeSecrets(administrator: Administrator | undefined): boolean {
  return administrator?.role === "admin" && administrator.method !== "none";
}

export interface PeerAddresses {
  peer: string | undefined;
  client: string | undefined;
}

/** One request as an endpoint sees it. */
export interface Call<Name extends string = string> {
  request: Request;
  context: RequestContext;
  /** Values of the parameters of the path, decoded. */
  parameters: Readonly<Record<Name, string>>;
  /** The caller that the admin door admitted; undefined for endpoints with any other access. */
  administrator: Administrator | undefined;
  /** At an endpoint where browsers sign in. */
  guest: Guest | undefined;
  /** What an endpoint of the admin API has done, for the audit. */
  deed?: Deed | undefined;
  /** Headers that every answer to this request carries. */
  headers: Record<string, string>;
  /** The body as it came; throws 413, 408 and 503. */
  readBody(maxBytes: number): Promise<Uint8Array>;
  /** To be called when an answer goes on after its handler returned: the access log line waits for `done`. */
  deferLog(): (broken: BrokenStream | undefined) => void;
}

export interface Deed {
  /** The name or id that it was about, where the path has none. */
  subject?: string | undefined;
  /** Secrets are masked. */
  changes?: readonly Pick<FieldChange, "section" | "field" | "from" | "to">[];
}

/** How a stream ended whose status 200 had been sent. */
export interface BrokenStream {
  failure: string;
  /** The status that a plain answer would have had. */
  status: number;
  error: AnsweredError;
}

export interface Endpoint extends Answering {
  method: Method;
  /** With {name} for a segment, and {name...} for one or several. */
  path: string;
}

/** The shape of errors, where it is not the standard one. */
export interface ErrorWords {
  errorFormat?: ErrorFormat;
  /** The name of its schema in the OpenAPI document. */
  errorSchema?: string;
  /** A further header for the id of the request, where the clients of the format look for one. */
  idHeader?: string;
}

/** The access rule of an endpoint and its handler, at any path. */
export interface Answering extends ErrorWords {
  access: Access;
  /** Own credentials of an endpoint whose access is "open". */
  credentials?: {
    areWanted(): boolean;
    /** Throws 401 for wrong credentials. */
    check(headers: Headers): void;
  };
  /** For clients without credentials yet: with the access "admin", the door lets every permitted address come this far. */
  isForGuests?: boolean;
  /** The lowest role that may use it, with the access "admin"; left out: admin. */
  role?: Role;
  /** Its clients may send their key in the query, as ?key=. */
  takesKeyInQuery?: boolean;
  /** Asked all the time by probes: its lines in the access log have the level debug while all is well. */
  isWatched?: boolean;
  /** Its bodies are files, of any size: more of them is taken from clients that are refused (drain-body.ts). */
  takesUploads?: boolean;
  /** The operation that a model is asked for; undefined if the endpoint asks no model. */
  operation?: Operation;
  handle(call: Call): Response | Promise<Response>;
}
