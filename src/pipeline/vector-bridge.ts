// Rerank and embeddings on their way to a backend: small tables per format instead of the neutral model.

import type { Backend } from "../backends/backend.ts";
import type { BackendBoard } from "../backends/board.ts";
import type { Operation } from "../backends/operations.ts";
import type { ProtocolName } from "../generation/content.ts";
import type { Failure } from "../generation/result.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import { type JsonObject, parseJson } from "../lib/json.ts";
import { withMembers } from "../lib/json-members.ts";
import { JsonBody } from "../lib/request-body.ts";
import { chatBackend } from "../protocols/chat/index.ts";
import { decodeCount, encodeCount } from "../protocols/converse/count-tokens.ts";
import { decodeVectors, encodeTexts, mostTexts } from "../protocols/converse/embeddings.ts";
import { decodeError as decodeException } from "../protocols/converse/errors.ts";
import { encodeSparseEmbedding, readSparseEmbeddingRequest } from "../protocols/embed-sparse/read-request.ts";
import { decodeSparseEmbedding } from "../protocols/embed-sparse/response.ts";
import { invalidField } from "../protocols/fields.ts";
import {
  batchFor,
  decodeVectors as decodeAsked,
  encodeTexts as encodeAsked,
  vectorsAsked,
} from "../protocols/generate-content/embed-content.ts";
import { decodeEmbeddings, encodeEmbeddings, mostInputs } from "../protocols/generate-content/embeddings.ts";
import { generateContentBackend } from "../protocols/generate-content/index.ts";
import { DecodeError } from "../protocols/protocol.ts";
import { passThrough } from "../protocols/registry.ts";
import { encodeRerank, readRerankRequest, wantsTeiForm } from "../protocols/rerank/read-request.ts";
import { decodeRerank } from "../protocols/rerank/response.ts";
import type { Translation } from "../protocols/translate.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest, NoteDropped, Prepared } from "./model-request.ts";

const MAX_BACKENDS = 1_000;
const FORGET_MS = 60 * 60 * 1000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Operations of clients of Gemini's format. */
const GEMINI_VECTORS: ReadonlySet<Operation> = new Set(["embed-content", "embed-one-content"]);

/**
 * The result prepares a request, or returns undefined when the client's bytes can go as they are.
 * @param noteDropped - is told what a request of another format has lost
 */
export function createVectorBridge(now: () => number, noteDropped: NoteDropped) {
  /** Backends that have shown that they are text-embeddings-inference, by name and address. */
  const teiBackends = new BoundedMap<true>({
    maxEntries: MAX_BACKENDS,
    maxBytes: MAX_BACKENDS * 1024,
    ttlMs: FORGET_MS,
    now,
  });

  function rerank({ body: asked, model, askedModel }: ModelRequest, backend: Backend, operation: Operation): Prepared {
    const name = `${backend.name} ${backend.rootUrl}`;
    const form = teiBackends.get(name) === true ? "tei" : "jina";
    const request = readRerankRequest(asked.value);
    const { path, body } = encodeRerank(request, { kind: backend.kind, model, form });
    const nonce = crypto.randomUUID().replaceAll("-", "");
    const answered = { ...request, model: askedModel };
    return {
      operation,
      answers: "list",
      body: encoder.encode(JSON.stringify(body)),
      ...(path === undefined ? {} : { path }),
      translation: wholeAnswers(
        (answer) => decodeRerank(answer, answered, { nonce }),
        (status, told) => {
          if (form === "tei" || !wantsTeiForm(status, told)) return chatBackend.decodeError(status, told);
          teiBackends.set(name, true, 0);
          // A status that is tried again: the next attempt speaks the other form.
          return { status: 502, message: "The backend speaks the rerank form of text-embeddings-inference." };
        },
      ),
    };
  }

  function sparse({ body, model }: ModelRequest, operation: Operation): Prepared {
    const request = readSparseEmbeddingRequest(body.value);
    return {
      operation,
      answers: "list",
      body: encoder.encode(JSON.stringify(encodeSparseEmbedding(request, model))),
      translation: wholeAnswers((answer) => decodeSparseEmbedding(answer, request)),
    };
  }

  function embedContent(
    { body: asked, model, askedModel }: ModelRequest,
    { kind }: Backend,
    operation: Operation,
  ): Prepared {
    const { bodies, context } = encodeEmbeddings(asked.value, { model, kind });
    const [body] = bodies; // longer inputs were cut into slices before
    return {
      operation,
      body: encoder.encode(JSON.stringify(body)),
      translation: wholeAnswers(
        (answer) => decodeEmbeddings([answer], { ...context, model: askedModel }),
        (status, told) => generateContentBackend.decodeError(status, told),
      ),
    };
  }

  function invokeEmbeddings({ body: asked, model, askedModel }: ModelRequest, operation: Operation): Prepared {
    const { body, asked: context } = encodeTexts(asked.value, model); // longer inputs were cut into slices before
    return {
      operation,
      body: encoder.encode(JSON.stringify(body)),
      translation: wholeAnswers((answer) => decodeVectors(answer, context, askedModel), decodeException),
    };
  }

  /** The body that would be asked, as a text inside of another one. */
  function invokeCount(
    { body: asked, model }: ModelRequest,
    { kind, settings }: Backend,
    operation: Operation,
  ): Prepared {
    const members = kind.membersOf?.({ operation, model, settings });
    return {
      operation,
      body: encoder.encode(JSON.stringify(encodeCount({ ...asked.value, ...members }))),
      translation: wholeAnswers(decodeCount, decodeException),
    };
  }

  /** A request of the OpenAI format for vectors; undefined where its bytes can go as they are. */
  function ofTexts(request: ModelRequest, backend: Backend, operation: Operation): Prepared | undefined {
    if (operation === "invoke-embeddings") return invokeEmbeddings(request, operation);
    return operation === "embed-content" ? embedContent(request, backend, operation) : undefined;
  }

  /** Of a client of Gemini's format. Throws a 400 for more texts than the backend takes. */
  function fromGemini(
    context: RequestContext,
    request: ModelRequest,
    backend: Backend,
    operation: Operation,
  ): Prepared | undefined {
    const { body: asked, model, operation: wanted } = request;
    const { value } = asked;
    const isBatch = wanted === "embed-content";
    if (operation === wanted && backend.kind.embeds === undefined) {
      const changes = {
        ...(isBatch && batchFor(value, model)),
        ...(value.model !== undefined && { model: undefined }),
      };
      return Object.keys(changes).length === 0 ? undefined : { operation, body: withMembers(asked.bytes(), changes) };
    }
    const { body, dropped } = encodeAsked(value, model, isBatch);
    const count = vectorsAsked(value, isBatch);
    const most = mostInputsAt(backend, model);
    if (count > most) throw invalidField("requests", `this model's backend embeds ${most} at once.`);
    noteDropped(context, backend, wanted, dropped);
    const prepared = ofTexts({ ...request, operation: "embeddings", body: JsonBody.written(body) }, backend, operation);
    const outer = wholeAnswers((answer) => decodeAsked(answer, count, isBatch));
    if (prepared?.translation === undefined) {
      return { operation, body: encoder.encode(JSON.stringify(body)), translation: outer };
    }
    const inner = prepared.translation;
    return {
      ...prepared,
      translation: {
        ...inner,
        plain(answer, read) {
          const { body, usage } = inner.plain(answer, read);
          return { ...outer.plain(body), usage };
        },
      },
    };
  }

  return (
    context: RequestContext,
    request: ModelRequest,
    backend: Backend,
    operation: Operation,
  ): Prepared | undefined => {
    if (GEMINI_VECTORS.has(request.operation)) return fromGemini(context, request, backend, operation);
    if (operation === "invoke-count-tokens") return invokeCount(request, backend, operation);
    const texts = ofTexts(request, backend, operation);
    if (texts !== undefined) return texts;
    if (request.operation === "rerank") return rerank(request, backend, operation);
    if (request.operation === "embed-sparse") return sparse(request, operation);
    return undefined;
  };
}

/**
 * As many as the backend of the model that takes the fewest; any number where one speaks the format itself, as long inputs
 * are its to judge.
 */
export function mostInputsOf(board: Pick<BackendBoard, "serving">, model: string): number {
  const serving = board.serving(model).map(({ backend }) => backend);
  if (serving.some(({ paths }) => paths.embeddings !== undefined)) return Number.POSITIVE_INFINITY;
  return Math.min(mostInputs({ model }), ...serving.map((backend) => mostInputsAt(backend, model)));
}

function mostInputsAt({ kind, paths }: Backend, model: string): number {
  if (paths.embeddings !== undefined) return Number.POSITIVE_INFINITY;
  return paths["invoke-embeddings"] === undefined ? mostInputs({ model, kind }) : mostTexts(model);
}

/**
 * A translation of answers that never stream.
 * @param decode - to the client's answer
 * @param format - of the client's answer, for what it says of usage
 */
export function wholeAnswers(
  decode: (answer: unknown) => object,
  error: (status: number, body: unknown) => Failure = (status, body) => chatBackend.decodeError(status, body),
  format?: ProtocolName,
): Translation {
  return {
    plain(body, answer: unknown = parsed(body)) {
      const told = decode(answer);
      const usage = passThrough(format).usageOf?.(told as JsonObject);
      return { body: encoder.encode(JSON.stringify(told)), usage };
    },
    stream() {
      throw new DecodeError("is a stream, which was not asked for");
    },
    error(status, body) {
      return error(status, parseJson(decoder.decode(body))); // no JSON: the status says enough
    },
  };
}

function parsed(body: Uint8Array): unknown {
  const value = parseJson(decoder.decode(body));
  if (value === undefined) throw new DecodeError("is not valid JSON");
  return value;
}
