import { expect, test } from "bun:test";
import fc from "fast-check";
import { toBackend } from "../backends/backend.ts";
import { documentSchema } from "../config/sections/registry.ts";
import { backendWords } from "./backend-words.ts";
import type { UpstreamFailure } from "./failure.ts";

const OWN_KEY = "own-secret-of-the-gateway";
const [settings] = documentSchema.parse({
  backends: [{ name: "a", url: "http://a.test", api_key: OWN_KEY, models: ["m"] }],
}).backends;
const backend = toBackend(settings as Parameters<typeof toBackend>[0]);

function said(body: unknown, status = 500): string | undefined {
  const bytes = new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
  const failure: UpstreamFailure = { kind: "status", status, body: bytes, retryAfterMs: undefined, headers: {} };
  return backendWords(failure, backend);
}

const error = (message: string) => ({ error: { message, type: "server_error" } });

test("what a backend says is told in one short line", () => {
  expect(said(error("CUDA out of memory.\n  Tried to allocate 2 GiB"))).toBe(
    "CUDA out of memory. Tried to allocate 2 GiB",
  );
  expect(said({ detail: "no such model" }, 404)).toBe("no such model");
  expect(said(error("x".repeat(5_000)))).toHaveLength(201);
});

test("nothing is told of what cannot be read, of the gateway's own words, and of other failures", () => {
  expect(said("<html>Bad gateway</html>", 502)).toBeUndefined();
  expect(said(error("Incorrect API key"), 401)).toBeUndefined();
  expect(backendWords({ kind: "reset", message: "broken" }, backend)).toBeUndefined();
});

test("secrets and what may be a prompt are left out, names stay", () => {
  expect(said(error(`The key ${OWN_KEY} is blocked, and so is sk-0123456789abcdef`))).toBe(
    "The key ******** is blocked, and so is ***",
  );
  expect(
    said(error('The model "llama-3" cannot read "once upon a time there was a prompt of a client that was long"')),
  ).toBe('The model "llama-3" cannot read "…"');
  expect(
    said(error('Failed to parse messages: unexpected; messages = [ { "role": "user", "content": "hello" } ]')),
  ).toBe("Failed to parse messages: unexpected; messages = …");
});

test("no text of a backend brings in its key, more than a line, or more than is allowed", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), fc.string({ maxLength: 300 }), (before, after) => {
      const words = said(error(`${before} ${OWN_KEY} ${after}`)) ?? "";
      expect(words).not.toContain(OWN_KEY);
      expect(words).not.toContain("\n");
      expect(words.length).toBeLessThanOrEqual(201);
    }),
  );
});
