// The embedded backend: an OpenAI-style server inside the process, without network or weights, for a first try and demos.

import type { EmbeddedBackend } from "../backends/transport.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import type { DemoContext } from "./answer.ts";
import { answerChat } from "./chat.ts";
import { answerCompletion } from "./completions.ts";
import { answerEmbeddings } from "./embeddings.ts";
import { answerImages } from "./images.ts";

export interface DemoParts {
  clock?: Clock;
  /** Only ids depend on it; the content of an answer depends on nothing but the request. */
  random?: () => number;
  /** Pause between two streamed words; 0 = none. */
  wordDelayMs?: number;
}

const DEFAULT_WORD_DELAY_MS = 15;

const MODELS = ["demo", "demo-embedding", "demo-image"].map((id) => ({
  id,
  object: "model",
  created: 1_735_689_600, // the first second of 2025: a fixed time keeps the list the same in every process
  owned_by: "signalbox",
}));

interface DemoRoute {
  method: "GET" | "POST";
  answer(request: Request, context: DemoContext): Response | Promise<Response>;
}

const ROUTES: ReadonlyMap<string, DemoRoute> = new Map<string, DemoRoute>([
  ["/health", { method: "GET", answer: () => Response.json({ status: "ok" }) }],
  ["/v1/models", { method: "GET", answer: () => Response.json({ object: "list", data: MODELS }) }],
  ["/v1/chat/completions", { method: "POST", answer: answerChat }],
  ["/v1/completions", { method: "POST", answer: answerCompletion }],
  ["/v1/embeddings", { method: "POST", answer: answerEmbeddings }],
  ["/v1/images/generations", { method: "POST", answer: answerImages }],
]);

/** Which models exist is decided by routing; like most local engines, this one answers to any model name. */
export function createDemoBackend(options: DemoParts = {}): EmbeddedBackend {
  const context: DemoContext = {
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    wordDelayMs: options.wordDelayMs ?? DEFAULT_WORD_DELAY_MS,
  };
  return async (request) => {
    request.signal.throwIfAborted();
    try {
      const response = await findRoute(request).answer(request, context);
      return request.method === "HEAD" ? new Response(null, response) : response;
    } catch (error) {
      if (error instanceof GatewayError) return errorResponse(error);
      throw error;
    }
  };
}

function findRoute(request: Request): DemoRoute {
  const { pathname } = new URL(request.url);
  const route = ROUTES.get(pathname);
  if (!route) throw new GatewayError(ERRORS.routeNotFound, `The demo backend has no path ${pathname}.`);
  const method = request.method === "HEAD" ? "GET" : request.method;
  if (method !== route.method) {
    throw new GatewayError(ERRORS.methodNotAllowed, `${pathname} answers ${route.method} only.`, {
      headers: { Allow: route.method },
    });
  }
  return route;
}

function errorResponse(error: GatewayError): Response {
  const { message, type, param, code } = error;
  const body = { error: { message, type, param: param ?? null, code } };
  return Response.json(body, { status: error.status, ...(error.headers && { headers: error.headers }) });
}
