// Who may call: both modes, scopes, and the ways a key is presented.

import { describe, expect, test } from "bun:test";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { type AccessControl, createAccessControl, keyInQuery, requireModel } from "./api-keys.ts";
import type { Caller, Scope } from "./caller.ts";
import { createKeyIdentity } from "./key-identity.ts";

const NOW_MS = Date.parse("2027-01-01T00:00:00Z");

const READER = "reader-key-1234";
const WRITER = "writer-key-1234";
const DISABLED = "disabled-key-1234";

const KEYS: NonNullable<ConfigDocument["api_keys"]>["keys"] = [
  { key: READER, scopes: ["read"] },
  { key: WRITER, id: "writer", user_id: "u", organization_id: "o" },
  { key: DISABLED, enabled: false },
];

function accessOf(mode: "permissive" | "blocking", keys = KEYS): AccessControl {
  const settings = documentSchema.parse({ api_keys: { mode, keys } });
  const identify = createKeyIdentity(() => "salt");
  return createAccessControl(settings, identify, () => NOW_MS);
}

function bearer(key: string): Headers {
  return new Headers({ authorization: `Bearer ${key}` });
}

/** The caller, or the refusal as its parts. */
function outcome(access: AccessControl, headers: Headers, scope: Scope = "write"): Caller | undefined | GatewayError {
  try {
    const visit: { caller: Caller | undefined } = { caller: undefined };
    void access.authorize(headers, scope, visit);
    return visit.caller;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

const UNAUTHORIZED = { status: 401, code: "invalid_api_key", headers: { "WWW-Authenticate": "Bearer" } };

describe("blocking", () => {
  const access = accessOf("blocking");

  test("a known key is its caller", () => {
    expect(outcome(access, bearer(WRITER))).toEqual({
      keyId: "writer",
      userId: "u",
      organizationId: "o",
      scopes: new Set<Scope>(["read", "write", "files"]),
      requestsPerMinute: undefined,
      expiresAtMs: Number.POSITIVE_INFINITY,
    });
  });

  test("a key without an id has the same name wherever it stands in the list", () => {
    const moved = accessOf("blocking", [...KEYS].reverse());
    const { keyId } = outcome(access, bearer(READER), "read") as Caller;
    expect(keyId).toMatch(/^key-[0-9a-f]{10}$/);
    expect(outcome(moved, bearer(READER), "read")).toMatchObject({ keyId });
  });

  test.each(["x-api-key", "x-goog-api-key"])("a key may stand in %s", (name) => {
    expect(outcome(access, new Headers({ [name]: WRITER }))).toMatchObject({ keyId: "writer" });
  });

  test("a key in the query counts where no header has one", () => {
    const ask = (headers: Headers, url: string) => {
      const visit: { caller: Caller | undefined } = { caller: undefined };
      void access.authorize(headers, "write", visit, keyInQuery(url));
      return visit.caller?.keyId;
    };
    expect(ask(new Headers(), `http://h/p?a=1&key=${encodeURIComponent(WRITER)}`)).toBe("writer");
    expect(ask(bearer(WRITER), "http://h/p?key=unknown-key-1234")).toBe("writer");
    expect(() => ask(bearer("unknown-key-1234"), `http://h/p?key=${WRITER}`)).toThrow("not valid");
    expect([keyInQuery("http://h/p"), keyInQuery("http://h/p?key=")]).toEqual([undefined, undefined]);
  });

  test("without a key, 401 says how to send one", () => {
    const refusal = outcome(access, new Headers());
    expect(refusal).toMatchObject(UNAUTHORIZED);
    expect((refusal as GatewayError).message).toContain("Authorization: Bearer");
  });

  test.each([["unknown-key-1234"], [DISABLED], [WRITER.toUpperCase()], [`${WRITER}x`], [WRITER.slice(0, -1)]])(
    "%s is refused, without being repeated",
    (key) => {
      const refusal = outcome(access, bearer(key));
      expect(refusal).toMatchObject(UNAUTHORIZED);
      expect((refusal as GatewayError).message).not.toContain(key);
    },
  );

  test("a key without the scope is known, but not allowed", () => {
    const refusal = outcome(access, bearer(READER), "write");
    expect(refusal).toMatchObject({ status: 403, code: "insufficient_scope" });
    expect((refusal as GatewayError).message).toContain("'write'");
    expect((refusal as GatewayError).message).not.toContain(READER);
    expect(outcome(access, bearer(WRITER), "admin")).toMatchObject({ status: 403 });
  });

  test("without any configured key everyone is refused", () => {
    expect(outcome(accessOf("blocking", []), bearer(WRITER))).toMatchObject(UNAUTHORIZED);
    expect(outcome(accessOf("blocking", []), new Headers())).toMatchObject(UNAUTHORIZED);
  });
});

describe("permissive", () => {
  const access = accessOf("permissive");

  test("no key and unknown keys pass without a caller", () => {
    for (const headers of [new Headers(), bearer("sk-placeholder"), bearer(DISABLED)]) {
      expect(outcome(access, headers)).toBeUndefined();
    }
    expect(outcome(accessOf("permissive", []), bearer(WRITER))).toBeUndefined();
  });

  test("a known key is its caller, with its scopes", () => {
    expect(outcome(access, bearer(WRITER))).toMatchObject({ keyId: "writer" });
    expect(outcome(access, bearer(READER), "write")).toMatchObject({ status: 403 });
  });
});

describe("presenting a key", () => {
  const access = accessOf("blocking");
  const accepted: [title: string, headers: Record<string, string>][] = [
    ["a bearer token", { authorization: `Bearer ${WRITER}` }],
    ["in any letter case", { Authorization: `bEARER ${WRITER}` }],
    ["with spaces around it", { authorization: `Bearer   ${WRITER}  ` }],
    ["as x-api-key", { "X-API-Key": WRITER }],
    ["as x-api-key beside other credentials", { authorization: "Basic dTpw", "x-api-key": WRITER }],
  ];
  test.each(accepted)("%s", (_title, headers) => {
    expect(outcome(access, new Headers(headers))).toMatchObject({ keyId: "writer" });
  });

  const refused: [title: string, headers: Record<string, string>][] = [
    ["without the scheme", { authorization: WRITER }],
    ["with another scheme", { authorization: `Basic ${WRITER}` }],
    ["with more behind it", { authorization: `Bearer ${WRITER} more` }],
    ["an unknown bearer token beside a known x-api-key", { authorization: "Bearer unknown", "x-api-key": WRITER }],
    ["empty", { authorization: "Bearer ", "x-api-key": "" }],
  ];
  test.each(refused)("%s is refused", (_title, headers) => {
    expect(outcome(access, new Headers(headers))).toMatchObject(UNAUTHORIZED);
  });
});

describe("time and models", () => {
  const SECOND = "second-key-1234";
  const access = accessOf("blocking", [
    { key: READER, id: "past", expires_at: "2027-01-01T01:00:00+01:00" },
    { key: WRITER, id: "future", expires_at: "2027-01-01T00:00:01Z", models: ["gpt-*", "llama3"] },
    { key: SECOND, id: "turned", previous: { key: `${SECOND}-old`, expires_at: "2027-01-01T00:00:01Z" } },
    { key: "third-key-1234", id: "late", previous: { key: "third-key-old", expires_at: "2026-12-31T23:59:59Z" } },
    { key: "fourth-key-1234", previous: { key: "fourth-key-old", expires_at: "2027-01-02T00:00:00Z" } },
  ]);

  test("an expired key is refused as such, in mode permissive too", () => {
    const refusal = { status: 401, code: "expired_api_key", headers: { "WWW-Authenticate": "Bearer" } };
    expect(outcome(access, bearer(READER))).toMatchObject(refusal);
    const permissive = accessOf("permissive", [{ key: READER, expires_at: "2027-01-01T00:00:00Z" }]);
    expect(outcome(permissive, bearer(READER))).toMatchObject(refusal);
    expect(outcome(access, bearer(WRITER))).toMatchObject({ keyId: "future" });
  });

  test("the secret before a rotation is the same caller until its time is over", () => {
    expect(outcome(access, bearer(SECOND))).toMatchObject({ keyId: "turned" });
    expect(outcome(access, bearer(`${SECOND}-old`))).toMatchObject({ keyId: "turned" });
    expect(outcome(access, bearer("third-key-1234"))).toMatchObject({ keyId: "late" });
    expect(outcome(access, bearer("third-key-old"))).toMatchObject({ status: 401, code: "expired_api_key" });
  });

  test("without an id each secret is known by itself", () => {
    const [now, before] = ["fourth-key-1234", "fourth-key-old"].map((key) => outcome(access, bearer(key)) as Caller);
    expect(now?.keyId).not.toBe(before?.keyId as string);
  });

  test("a key with models may use these", () => {
    const caller = outcome(access, bearer(WRITER)) as Caller;
    for (const model of ["gpt-4o", "gpt-", "llama3"]) expect(() => requireModel(caller, model)).not.toThrow();
    for (const model of ["llama3.1", "GPT-4o", ""]) {
      expect(() => requireModel(caller, model)).toThrow("may not use this model");
    }
    expect(() => requireModel(outcome(access, bearer(SECOND)) as Caller, "any")).not.toThrow();
    expect(() => requireModel(undefined, "any")).not.toThrow();
  });
});
