// A request on its way: as the pipeline asks one model, and as one backend gets it.

import type { Backend } from "../backends/backend.ts";
import type { Operation } from "../backends/operations.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Dropped } from "../generation/dropped.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import type { RequestBody } from "../lib/request-body.ts";
import type { ModelRoute, RouteTarget } from "../model-routes/routes.ts";
import { resolveAlias } from "../models/aliases.ts";
import type { AnswerContext, ClientProtocol } from "../protocols/protocol.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import type { CachedAnswer } from "../response-cache/cache.ts";
import type { OutgoingRequest } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";

/** What a backend is asked, and what becomes of its answer. */
type Asking =
  /** The client's body: it passes where the backend speaks its format, and is translated there and back elsewhere. */
  | typeof ASKING_BODY
  /** A neutral request, translated for every backend; `client` takes the answer. */
  | { kind: "neutral"; neutral: GenerationRequest; client: ClientProtocol }
  /** What is missing of an answer that another backend has begun; without `neutral` the body asks for it. */
  | { kind: "rest"; neutral: GenerationRequest | undefined; client: ClientProtocol };

export const ASKING_BODY = { kind: "body", neutral: undefined, client: undefined } as const;

/** How a request goes on for each target of its route. */
interface Routed {
  target: RouteTarget;
  others: readonly RouteTarget[];
  /** As it is before a target changes it. */
  body: RequestBody;
  /** The same of what is asked for in place of the body. */
  neutral?: GenerationRequest;
  route: ModelRoute;
}

export interface ModelRequest extends RequestSummary {
  /** What the client asked for, in the format it speaks. */
  operation: Operation;
  /** In the client's format. */
  body: RequestBody;
  /** The model's name as the client wrote it; `model` is the one that is asked now. */
  askedModel: string;
  asking: Asking;
  /** The backend that holds what the request refers to; asked first while it is available. */
  prefer?: string | undefined;
  /** The only backends that may be asked; undefined: every one that serves the model. */
  onlyAt?: readonly string[] | undefined;
  /** The model was found by a route, whose other targets may answer in its place. */
  routed?: Routed | undefined;
  /** The name of the model in answers, also in those that pass; undefined: as the backend calls it. */
  namedAs?: string | undefined;
  /** Called with a complete answer that was translated. */
  answered?: ((result: GenerationResult, context: AnswerContext) => void) | undefined;
  /** It names what a vendor keeps and the gateway does not, which may be gone or another one tomorrow. */
  namesVendorState?: boolean;
  /** Whether an answer that was kept can be given again to this client; left out: any can. */
  mayReplay?(answer: Pick<CachedAnswer, "form" | "body">): boolean | Promise<boolean>;
  /**
   * The last turn is the beginning of the answer: only backends are asked that go on exactly behind it
   * (exact-continuation.ts).
   */
  goesOn?: boolean;
  /**
   * The field with the id of a file that is not known here: only backends are asked that may hold it (kinds.ts,
   * keepsFiles).
   */
  foreignFile?: string | undefined;
  /** What of the client's own body was left out when it was put into the words of the operation. */
  lost?: readonly string[];
  /** What the contents of files that were put into the body take in memory. */
  injectedBytes?: number;
  /** Factor of all timeouts; 1 for the model that was asked for. */
  patience: number;
  /** Backends that are asked only when no other is left, because this request has failed there already. */
  avoid: ReadonlySet<string>;
  /** It goes on for a stream that broke off, and is not made to wait behind others. */
  takesOver?: boolean;
  /** As in RoutedRequest. */
  refusedBy?: ReadonlySet<string>;
}

/** As it comes in: no backend has been asked yet. */
export function firstRequest(summary: RequestSummary, operation: Operation, body: RequestBody): ModelRequest {
  return {
    ...summary,
    askedModel: summary.model,
    operation,
    body,
    asking: ASKING_BODY,
    patience: 1,
    avoid: NO_BACKENDS,
  };
}

export const NO_BACKENDS: ReadonlySet<string> = new Set();

/** A request as one backend gets it: what depends on the backend's format. */
export type Prepared = Pick<
  OutgoingRequest,
  "operation" | "body" | "path" | "headers" | "translation" | "hidesUsage" | "edits" | "answers"
> & {
  /** Set where the backend does once what the client asks for several times. */
  sideBySide?: SideBySide;
};

/** One attempt that is several exchanges, each with a plain answer. */
export interface SideBySide {
  times: number;
  /** What their answers are together, as the client gets it. */
  join(answers: readonly Uint8Array[]): { body: Uint8Array; contentType: string; usage: Usage | undefined };
}

/** Notes what of a request is lost that is not translated by way of the neutral model. */
export type NoteDropped = (
  context: RequestContext,
  backend: Backend,
  operation: Operation,
  dropped: readonly Dropped[],
) => void;

/** Puts a request into the format of a backend. */
export interface Bridge {
  /** Throws GatewayError 400 for what the backend's format cannot say. */
  prepare(context: RequestContext, request: ModelRequest, backend: Backend): Prepared | Promise<Prepared>;
}

/** The request under the model that an alias leads to (models/aliases.ts); its body says so too. */
export function withAlias(asked: ModelRequest, aliases: Settings["model_aliases"], isKnown: boolean): ModelRequest {
  const model = resolveAlias(aliases, asked.model, isKnown);
  return model === asked.model ? asked : { ...asked, model, body: asked.body.with({ model }) };
}

/** A value of `onlyAt` for the backend that a target or a mirror names; undefined: every one that serves the model. */
export function onlyBackend(name: string | undefined): readonly string[] | undefined {
  return name === undefined ? undefined : [name];
}
