// A rerank request: what clients send, and what each kind of backend is sent.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkBoolean,
  checkNumbers,
  checkString,
  invalidField,
  missingField,
  NO_MAXIMUM,
  requireModel,
  wrongType,
} from "../fields.ts";
import type { BackendTarget, Dialect } from "../protocol.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";

/** The gateway's own form is that of Jina, vLLM and llama.cpp; text-embeddings-inference (TEI) has another. */
type RerankForm = "jina" | "tei";

type RerankDocument = string | JsonObject;

export interface RerankRequest extends RequestSummary {
  query: string;
  documents: readonly RerankDocument[];
  /** How many results the client wants; undefined: all. */
  topN: number | undefined;
  returnDocuments: boolean;
  body: JsonObject;
}

type RerankTarget = Pick<BackendTarget, "model"> & { kind: Pick<Dialect, "ranksTextsOnly"> };

interface EncodedRerank {
  /** Undefined: the usual path of the backend's kind. */
  path: string | undefined;
  body: JsonObject;
  /** Members of the client's body that the form has no place for. */
  dropped: readonly string[];
}

/** Where TEI serves it, unlike all others. */
const TEI_PATH = "/rerank";

/** Members of TEI's own form that a client may send with ours. */
const TEI_OPTIONS = ["raw_scores", "truncate", "truncation_direction"];
const REWRITTEN: ReadonlySet<string> = new Set(["model", "query", "documents", "top_n", "top_k", "return_documents"]);

export function readRerankRequest(body: JsonObject): RerankRequest {
  const model = requireModel(body);
  const query = readQuery(body);
  const documents = readDocuments(body);
  checkNumbers(body, [
    { field: "top_n", minimum: 0, maximum: NO_MAXIMUM, integer: true },
    { field: "top_k", minimum: 0, maximum: NO_MAXIMUM, integer: true },
  ]);
  const returnDocuments = checkBoolean(body, "return_documents");
  checkString(body, "user");
  // 0 means all, as it does for vLLM.
  const wanted = (body.top_n ?? body.top_k ?? 0) as number;
  const topN = wanted === 0 ? undefined : wanted;
  const summary = { model, stream: false, choices: 0, affinity: affinityOf };
  return { ...summary, query, documents, topN, returnDocuments, body };
}

function readQuery({ query }: JsonObject): string {
  if (!isPresent(query)) throw missingField("query", "the text that the documents are compared with.");
  if (typeof query !== "string") throw wrongType("query", "a string", query);
  if (query.trim() === "") throw invalidField("query", "must not be empty.");
  return query;
}

function readDocuments({ documents }: JsonObject): readonly RerankDocument[] {
  if (!isPresent(documents))
    throw missingField("documents", "an array of strings, or of objects with the member text.");
  if (!Array.isArray(documents)) throw wrongType("documents", "an array", documents);
  if (documents.length === 0) throw invalidField("documents", "must not be empty.");
  for (const [index, document] of documents.entries()) {
    const field = `documents[${index}]`;
    const text: unknown = isObject(document) ? document.text : document;
    if (typeof document !== "string" && !isObject(document)) throw wrongType(field, "a string or an object", document);
    if (isObject(document) && Object.keys(document).length === 0) throw invalidField(field, "must not be empty.");
    if (text === undefined) continue; // an image, for a model that can see
    if (typeof text !== "string") throw wrongType(`${field}.text`, "a string", text);
    if (text.trim() === "") throw invalidField(field, "must not be empty.");
  }
  return documents;
}

/**
 * The request as a backend wants it. Documents are never asked back: they are filled in from the request, so the form of
 * the answer does not depend on what a service does by default.
 */
export function encodeRerank(request: RerankRequest, target: RerankTarget & { form: RerankForm }): EncodedRerank {
  return target.form === "tei" ? teiRequest(request) : jinaRequest(request, target);
}

function jinaRequest(request: RerankRequest, { kind, model }: RerankTarget): EncodedRerank {
  const { query, documents, topN } = request;
  const others = Object.entries(request.body).filter(([name]) => !REWRITTEN.has(name));
  const sent = documents.map((document, index) => {
    const text = textOf(document);
    if (text === undefined && kind.ranksTextsOnly) throw onlyText(index);
    // A text in an object is the same in every service as the bare text, which all of them know.
    return text ?? document;
  });
  const limit = topN === undefined ? {} : { top_n: Math.min(topN, documents.length) };
  const body = { ...Object.fromEntries(others), model, query, documents: sent, ...limit, return_documents: false };
  return { path: undefined, body, dropped: [] };
}

function teiRequest({ query, documents, body }: RerankRequest): EncodedRerank {
  const texts = documents.map((document, index) => {
    const text = textOf(document);
    if (text === undefined) throw onlyText(index);
    return text;
  });
  const options = TEI_OPTIONS.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]);
  const dropped = Object.keys(body).filter((name) => !REWRITTEN.has(name) && !TEI_OPTIONS.includes(name));
  return { path: TEI_PATH, body: { ...Object.fromEntries(options), query, texts, return_text: false }, dropped };
}

/** The text of a document that is nothing but text. */
function textOf(document: RerankDocument): string | undefined {
  if (typeof document === "string") return document;
  const isBare = Object.keys(document).length === 1;
  return isBare && typeof document.text === "string" ? document.text : undefined;
}

function onlyText(index: number): Error {
  return invalidField(
    `documents[${index}]`,
    "this backend compares texts only: expected a string, or an object with text alone.",
  );
}

/**
 * Whether an error answer to the usual form means that the backend wants TEI's: TEI has no /v1/rerank, so a bare 404
 * comes, or one of its own errors ({error, error_type}), or a complaint about the body's members.
 */
export function wantsTeiForm(status: number, body: unknown): boolean {
  if (isObject(body) && typeof body.error === "string" && typeof body.error_type === "string")
    return status !== 429 && status < 500;
  const saysMore = isObject(body) && body.error !== undefined;
  return ((status === 404 || status === 405) && !saysMore) || status === 422;
}
