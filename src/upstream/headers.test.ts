// Headers to and from a backend: what is handed on, and above all what is not.

import { describe, expect, test } from "bun:test";
import { type Backend, toBackend } from "../backends/backend.ts";
import { type ConfigDocument, documentSchema, type Settings } from "../config/sections/registry.ts";
import { forwardedResponseHeaders, type OutgoingHead, upstreamHeaders } from "./headers.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const trace = { id: "trace-1", traceparent: undefined, tracestate: undefined };

function settingsOf(document: ConfigDocument = {}): Settings {
  return documentSchema.parse(document);
}

function backendOf(more: Partial<BackendInput> = {}): Backend {
  return toBackend(settingsOf({ backends: [{ name: "b", url: "http://h", ...more }] }).backends[0]!);
}

/** As they go over the wire: names in lower case, repeated ones joined. */
function sent(
  more: Partial<BackendInput>,
  client: Record<string, string> = {},
  settings = settingsOf(),
  head: Partial<OutgoingHead> = {},
) {
  const outgoing: OutgoingHead = { operation: "chat", clientHeaders: new Headers(client), trace, ...head };
  return new Headers(upstreamHeaders(backendOf(more), outgoing, settings)).toJSON();
}

const CLIENT_SECRETS = {
  authorization: "Bearer client-secret",
  "x-api-key": "client-secret",
  "api-key": "client-secret",
  "x-goog-api-key": "client-secret",
  cookie: "session=client-secret",
  "proxy-authorization": "Basic client-secret",
};

describe("to a backend", () => {
  for (const type of ["generic", "openai", "azure", "anthropic", "gemini", "vllm", "ollama"]) {
    test(`${type}: the client's credentials never go along, whether the backend has a key or not`, () => {
      for (const more of [{ type }, { type, api_key: "own-key" }]) {
        expect(JSON.stringify(sent(more, CLIENT_SECRETS))).not.toContain("client-secret");
      }
    });
  }

  test.each([
    ["generic", "authorization", "Bearer own-key"],
    ["openai", "authorization", "Bearer own-key"],
    ["azure", "api-key", "own-key"],
    ["anthropic", "x-api-key", "own-key"],
    ["gemini", "x-goog-api-key", "own-key"],
  ])("%s: its own key goes in %s", (type, header, value) => {
    expect(sent({ type, api_key: "own-key" }, CLIENT_SECRETS)[header]).toBe(value);
  });

  test("a client's anthropic-version and beta go with its own body, and only with it", () => {
    const client = { "anthropic-version": "2026-10-21", "anthropic-beta": "one,two" };
    const own = sent({ type: "anthropic" }, client, undefined, { operation: "messages" });
    expect(own).toMatchObject(client);
    const translated = sent({ type: "anthropic" }, client, undefined, { operation: "messages", translation: {} });
    expect(translated["anthropic-version"]).toBe("2023-06-01");
    expect(translated).not.toHaveProperty("anthropic-beta");
    expect(sent({ type: "openai" }, client)).not.toHaveProperty("anthropic-version");
  });

  test("headers of the format are sent", () => {
    const head = { operation: "messages" as const, translation: {}, headers: { "anthropic-beta": "ours" } };
    expect(sent({ type: "anthropic" }, {}, undefined, head)["anthropic-beta"]).toBe("ours");
  });

  test("only listed headers of the client are handed on", () => {
    const handedOn = { "idempotency-key": "i", "user-agent": "u" };
    const others = {
      "openai-organization": "o",
      "openai-project": "p",
      "openai-beta": "b",
      host: "gateway",
      connection: "keep-alive, x-hop",
      "x-hop": "1",
      "content-length": "5",
      "transfer-encoding": "chunked",
      "accept-encoding": "gzip",
      "content-type": "text/plain",
      "x-forwarded-for": "1.2.3.4",
      "x-custom": "1",
    };
    const headers = sent({}, { ...handedOn, ...others });
    for (const name of ["x-trace-id", "x-request-id", "x-correlation-id"]) {
      expect(headers[name]).toBe("trace-1");
      delete headers[name];
    }
    expect(headers).toEqual({ ...handedOn, "content-type": "application/json", "accept-encoding": "identity" });
  });

  test("headers that choose who is billed go only where the backend's settings name them", () => {
    const client = { "openai-organization": "o", "openai-project": "p", "openai-beta": "b" };
    const named = sent({ forward_headers: ["OpenAI-Project", "openai-beta"] }, client);
    expect(named).toMatchObject({ "openai-project": "p", "openai-beta": "b" });
    expect(named).not.toHaveProperty("openai-organization");
    const fixed = sent({ forward_headers: ["OpenAI-Project"], headers: { "OpenAI-Project": "ours" } }, client);
    expect(fixed["openai-project"]).toBe("ours");
  });

  test("the headers of the kind and of the configuration are added; the configuration's win", () => {
    expect(sent({ type: "anthropic" })["anthropic-version"]).toBe("2023-06-01");
    const own = sent(
      {
        type: "anthropic",
        api_key: "own-key",
        headers: { "Anthropic-Version": "2026-01-01", Authorization: "Custom x", "User-Agent": "fixed" },
      },
      { "user-agent": "client" },
    );
    expect(own["anthropic-version"]).toBe("2026-01-01");
    expect(own.authorization).toBe("Custom x");
    expect(own["user-agent"]).toBe("fixed");
  });

  test("a configured header replaces the one of tracing with the same name", () => {
    expect(sent({ headers: { "x-request-id": "fixed" } })["x-request-id"]).toBe("fixed");
  });

  test("without tracing no id goes along", () => {
    const headers = sent({}, {}, settingsOf({ tracing: { enabled: false } }));
    expect(JSON.stringify(headers)).not.toContain("trace-1");
  });
});

describe("from a backend", () => {
  test("only the headers of its kind are handed on", () => {
    const headers = new Headers({
      "openai-version": "v",
      "x-ratelimit-remaining-requests": "5",
      "set-cookie": "a=b",
      server: "x",
      "content-length": "9",
      "x-request-id": "theirs",
    });
    const answer = { header: (name: string) => headers.get(name) };
    const into: Record<string, string> = {};
    forwardedResponseHeaders(backendOf({ type: "openai" }), answer, into);
    expect(into).toEqual({ "openai-version": "v", "x-ratelimit-remaining-requests": "5" });
    const nothing: Record<string, string> = {};
    forwardedResponseHeaders(backendOf({ type: "vllm" }), answer, nothing);
    expect(nothing).toEqual({});
  });
});
