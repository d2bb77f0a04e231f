// Failures of attempts: their names, their sources, and what Retry-After means.

import { describe, expect, test } from "bun:test";
import { within } from "../../test/support/wait-for.ts";
import { failureLabel, parseRetryAfter, toFailure, type UpstreamFailure } from "./failure.ts";

function withCode(code: string): Error {
  return Object.assign(new TypeError("secret text with http://user:password@host"), { code });
}

describe("labels", () => {
  const cases: [failure: UpstreamFailure, label: string][] = [
    [{ kind: "status", status: 429, body: new Uint8Array(), retryAfterMs: undefined, headers: {} }, "status_429"],
    [{ kind: "timeout", phase: "first_byte", message: "" }, "timeout_first_byte"],
    [{ kind: "connect", message: "" }, "connect"],
    [{ kind: "invalid-response", message: "" }, "invalid_response"],
    [{ kind: "told-in-stream" }, "told_in_stream"],
    [{ kind: "aborted" }, "aborted"],
  ];
  test.each(cases)("%j", (failure, label) => {
    expect(failureLabel(failure)).toBe(label);
  });
});

describe("what fetch throws", () => {
  test.each([
    ["ECONNREFUSED", "connect"],
    ["ENOTFOUND", "connect"],
    ["EAI_AGAIN", "connect"],
    ["EHOSTUNREACH", "connect"],
    ["ENETUNREACH", "connect"],
    ["ENOENT", "connect"],
    ["CERT_HAS_EXPIRED", "connect"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "connect"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "connect"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "connect"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "connect"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "connect"],
    ["EPROTO", "connect"],
    ["ECONNRESET", "reset"],
    ["EPIPE", "reset"],
    ["Malformed_HTTP_Response", "reset"],
  ])("%s is a failure to %s", (code, kind) => {
    const failure = toFailure(withCode(code), "b1");
    expect(failure.kind).toBe(kind as "connect");
    const { message } = failure as { message: string };
    expect(message).toContain("'b1'");
    expect(message).toContain(code);
    expect(message).not.toContain("password");
  });

  test("anything else is a broken connection, and its text is not shown", () => {
    const numbered = Object.assign(new Error("secret"), { code: 5 });
    for (const thrown of [new Error("secret"), numbered, "secret", null, undefined]) {
      const failure = toFailure(thrown, "b1");
      expect(failure.kind).toBe("reset");
      expect((failure as { message: string }).message).not.toContain("secret");
    }
  });

  test("a port on which nobody listens is a failure to connect", async () => {
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { port } = listener;
    listener.stop(true);
    const thrown: unknown = await fetch(`http://127.0.0.1:${port}/`).catch((error: unknown) => error);
    expect(toFailure(thrown, "b1").kind).toBe("connect");
  });

  test("a unix socket that does not exist is a failure to connect", async () => {
    const path = `/tmp/no-such-socket-${crypto.randomUUID()}`;
    const thrown: unknown = await fetch("http://localhost/", { unix: path }).catch((error: unknown) => error);
    expect(toFailure(thrown, "b1").kind).toBe("connect");
  });

  test("a port that does not speak TLS is a failure to connect", async () => {
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("plain") });
    const thrown: unknown = await fetch(`https://127.0.0.1:${server.port}/`).catch((error: unknown) => error);
    await server.stop(true);
    expect(toFailure(thrown, "b1").kind).toBe("connect");
  });

  test("a connection that is closed without an answer is a broken one", async () => {
    const listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.terminate() },
    });
    const thrown: unknown = await within(
      "the request fails",
      fetch(`http://127.0.0.1:${listener.port}/`, { method: "POST", body: "{}" }).catch((error: unknown) => error),
    );
    listener.stop(true);
    expect(toFailure(thrown, "b1").kind).toBe("reset");
  });
});

describe("Retry-After", () => {
  const nowMs = Date.parse("2026-01-01T00:00:00Z");
  test.each([
    [null, undefined],
    ["120", 120_000],
    ["0", 0],
    [" 5 ", 5_000],
    ["1.5", 1_500],
    ["Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["soon", undefined],
    ["", undefined],
  ] as [string | null, number | undefined][])("%p", (value, expected) => {
    expect(parseRetryAfter(value, nowMs)).toBe(expected as number);
  });
});
