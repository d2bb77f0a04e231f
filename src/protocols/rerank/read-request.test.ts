import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import type { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { BackendKindName } from "../../names.ts";
import { encodeRerank, readRerankRequest, wantsTeiForm } from "./read-request.ts";

const good = { model: "m", query: "q", documents: ["a", "b", "c"] };

function refusal(action: () => unknown): GatewayError {
  try {
    action();
  } catch (error) {
    return error as GatewayError;
  }
  throw new Error("was accepted");
}

describe("readRerankRequest", () => {
  test.each([
    ["no model", { model: undefined }, "model"],
    ["no query", { query: undefined }, "query"],
    ["an empty query", { query: "" }, "query"],
    ["a blank query", { query: " \n" }, "query"],
    ["a query of another type", { query: { text: "q" } }, "query"],
    ["no documents", { documents: null }, "documents"],
    ["empty documents", { documents: [] }, "documents"],
    ["documents of another type", { documents: "a" }, "documents"],
    ["an empty document", { documents: ["a", ""] }, "documents[1]"],
    ["a document of nothing", { documents: [{}] }, "documents[0]"],
    ["a number", { documents: [1] }, "documents[0]"],
    ["an empty text", { documents: [{ text: " " }] }, "documents[0]"],
    ["a text of another type", { documents: [{ text: 1 }] }, "documents[0].text"],
    ["a negative top_n", { top_n: -1 }, "top_n"],
    ["half a top_n", { top_n: 1.5 }, "top_n"],
    ["a top_k of another type", { top_k: "3" }, "top_k"],
    ["return_documents of another type", { return_documents: "yes" }, "return_documents"],
  ])("refuses %s", (_what, change, param) => {
    const error = refusal(() => readRerankRequest({ ...good, ...change } as JsonObject));
    expect(error).toMatchObject({ name: "GatewayError", status: 400, param });
  });

  test.each([
    [{}, { topN: undefined, returnDocuments: false }],
    [
      { top_n: 2, return_documents: true },
      { topN: 2, returnDocuments: true },
    ],
    [{ top_k: 1 }, { topN: 1 }],
    [{ top_n: 2, top_k: 1 }, { topN: 2 }],
    [{ top_n: 0 }, { topN: undefined }],
    [
      { top_n: null, top_k: null, return_documents: null },
      { topN: undefined, returnDocuments: false },
    ],
    [{ documents: [{ text: "a" }, { image: "data:," }] }, { documents: [{ text: "a" }, { image: "data:," }] }],
  ])("reads %j", (change, expected) => {
    expect(readRerankRequest({ ...good, ...change })).toMatchObject({
      model: "m",
      query: "q",
      stream: false,
      ...expected,
    });
  });

  test("knows what keeps it on one backend", () => {
    expect(readRerankRequest(good).affinity({ ...good, user: "u" })).toBe("u");
  });
});

describe("encodeRerank", () => {
  const jina = (change: JsonObject, kind: BackendKindName = "vllm") =>
    encodeRerank(readRerankRequest({ ...good, ...change }), {
      kind: BACKEND_KINDS[kind],
      model: "served",
      form: "jina",
    });
  const tei = (change: JsonObject) =>
    encodeRerank(readRerankRequest({ ...good, ...change }), {
      kind: BACKEND_KINDS.generic,
      model: "served",
      form: "tei",
    });
  const sent = { model: "served", query: "q", documents: ["a", "b", "c"], return_documents: false };

  test.each([
    ["as it is", {}, sent],
    ["documents are filled in here", { return_documents: true }, sent],
    ["top_k under its usual name", { top_k: 2 }, { ...sent, top_n: 2 }],
    ["no more than there are", { top_n: 99 }, { ...sent, top_n: 3 }],
    ["0 is all", { top_n: 0 }, sent],
    ["texts in objects", { documents: ["a", { text: "b" }, "c"] }, sent],
    [
      "other members pass",
      { truncation: true, max_tokens_per_doc: 9 },
      { ...sent, truncation: true, max_tokens_per_doc: 9 },
    ],
    ["images pass", { documents: [{ image: "x" }] }, { ...sent, documents: [{ image: "x" }] }],
    [
      "a title is kept beside the text",
      { documents: [{ text: "a", title: "t" }] },
      { ...sent, documents: [{ text: "a", title: "t" }] },
    ],
  ])("jina: %s", (_what, change, body) => {
    expect(jina(change)).toEqual({ path: undefined, body, dropped: [] });
  });

  test.each([
    ["as it is", {}, { query: "q", texts: ["a", "b", "c"], return_text: false }, []],
    [
      "its own options",
      { raw_scores: true, truncate: true },
      { raw_scores: true, truncate: true, query: "q", texts: ["a", "b", "c"], return_text: false },
      [],
    ],
    [
      "others are dropped and listed",
      { truncation: true, top_n: 1 },
      { query: "q", texts: ["a", "b", "c"], return_text: false },
      ["truncation"],
    ],
    ["texts in objects", { documents: [{ text: "a" }] }, { query: "q", texts: ["a"], return_text: false }, []],
  ])("tei: %s", (_what, change, body, dropped) => {
    expect(tei(change)).toEqual({ path: "/rerank", body, dropped });
  });

  test("images are refused where only texts are compared", () => {
    const documents = ["a", { image: "x" }];
    for (const encode of [() => tei({ documents }), () => jina({ documents }, "llamacpp")]) {
      expect(refusal(encode)).toMatchObject({ status: 400, param: "documents[1]" });
    }
  });

  test("the client's body stays as it was", () => {
    const body = { ...good, top_k: 2 };
    const before = structuredClone(body);
    encodeRerank(readRerankRequest(body), { kind: BACKEND_KINDS.vllm, model: "served", form: "jina" });
    expect(body).toEqual(before);
  });
});

test.each([
  [404, undefined, true],
  [404, "", true],
  [405, undefined, true],
  [422, { error: "missing field `texts`", error_type: "Validation" }, true],
  [422, undefined, true],
  [424, { error: "model is not a re-ranker model", error_type: "Backend" }, true],
  [404, { error: { message: "The model does not exist" } }, false],
  [429, { error: "overloaded", error_type: "Overloaded" }, false],
  [400, { error: { message: "bad" } }, false],
  [401, undefined, false],
  [500, undefined, false],
  [503, undefined, false],
])("wantsTeiForm: %d %j -> %s", (status, body, expected) => {
  expect(wantsTeiForm(status, body)).toBe(expected);
});
