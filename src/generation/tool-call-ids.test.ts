// Ids of tool calls: which pass, how the others are wrapped, and that every one finds its way back.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { transformed } from "./answer-transform.ts";
import { asEvents } from "./as-events.ts";
import { collect } from "./collect.ts";
import type { ContentPart } from "./content.ts";
import type { GenerationRequest } from "./request.ts";
import type { GenerationResult } from "./result.ts";
import { unwrapCallId, unwrapCallIds, wrapCallId, wrapCallIds } from "./tool-call-ids.ts";

const NONCE = "0123456789abcdef0123456789abcdef";
const OTHER_NONCE = "fedcba98765432100123456789abcdef";

const call = (id: string): ContentPart => ({ type: "tool-call", id, name: "f", arguments: "{}" });

function request(parts: ContentPart[]): GenerationRequest {
  return {
    model: "m",
    system: [],
    messages: [{ role: "assistant", parts }],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "chat", body: {} },
    extensions: {},
  };
}

function answer(parts: ContentPart[]): GenerationResult {
  return { id: "a", model: "m", createdAt: 1, parts, finish: { reason: "tool-calls" } };
}

describe("wrapCallId", () => {
  test.each(["toolu_01A", "call_abc", "fc_68", "chatcmpl-tool-9f"])("%s passes", (id) => {
    expect(wrapCallId(id, NONCE, 0)).toBe(id);
    expect(unwrapCallId(id)).toBe(id);
  });

  test.each(["0", "get_weather", "a b/c:d", "ü✓", "crt_0123456789x0_MA", "functions.f:0"])("%s is wrapped", (id) => {
    const wrapped = wrapCallId(id, NONCE, 0);
    expect(wrapped).toStartWith("crt_");
    expect(unwrapCallId(wrapped)).toBe(id);
  });

  test("every id comes back, and only known characters are used", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.nat(100), (id, ordinal) => {
        const wrapped = wrapCallId(id, NONCE, ordinal);
        if (wrapped === id) return;
        expect(wrapped).toMatch(/^[A-Za-z0-9_-]+$/);
        if (id !== "") expect(unwrapCallId(wrapped)).toBe(id);
      }),
    );
  });

  test("the same id in another answer, or twice in one, gets another name", () => {
    const ids = [wrapCallId("0", NONCE, 0), wrapCallId("0", NONCE, 1), wrapCallId("0", OTHER_NONCE, 0)];
    expect(new Set(ids).size).toBe(3);
  });

  test("what is too long, empty or broken gets a short id that is not decoded", () => {
    for (const id of ["x".repeat(10_000), "", "\ud800"]) {
      const wrapped = wrapCallId(id, NONCE, 5);
      expect(wrapped.length).toBeLessThan(30);
      expect(wrapped).toMatch(/^crt_[A-Za-z0-9_-]+$/);
      expect(unwrapCallId(wrapped)).toBe(wrapped);
    }
  });

  test("ids that only look wrapped are left alone", () => {
    for (const id of [
      "crt_",
      "crt_abc",
      "crt_0123456789x0_",
      "crt_0123456789x0_A",
      "crt_0123456789x0_!!",
      "crt_0123456789x0__w",
    ]) {
      expect(unwrapCallId(id)).toBe(id);
    }
  });
});

describe("wrapCallIds", () => {
  const SERVER_SIDE: ContentPart = { ...(call("srvtoolu_1") as object), serverSide: true } as ContentPart;
  const RESULT = answer([{ type: "text", text: "t" }, call("0"), SERVER_SIDE, call("0"), call("call_7")]);

  test("calls of clients get ids of their own, others keep theirs", () => {
    const wrapped = collect(transformed(asEvents(RESULT), wrapCallIds(NONCE))) as GenerationResult;
    const ids = wrapped.parts.map((part) => (part.type === "tool-call" ? part.id : ""));
    expect(ids[1]).not.toBe(ids[3]);
    expect(ids[2]).toBe("srvtoolu_1");
    expect(ids[4]).toBe("call_7");
  });
});

describe("unwrapCallIds", () => {
  const wrapped = wrapCallId("0", NONCE, 0);
  const again = wrapCallId("0", OTHER_NONCE, 0);

  function ids({ messages }: GenerationRequest): string[] {
    return messages.flatMap(({ parts }) =>
      parts.map((part) => (part.type === "tool-call" ? part.id : part.type === "tool-result" ? part.callId : "")),
    );
  }

  test("calls and results get the backend's id back", () => {
    const replay = request([call(wrapped), { type: "tool-result", callId: wrapped, parts: [] }, call("call_1")]);
    expect(ids(unwrapCallIds(replay))).toEqual(["0", "0", "call_1"]);
  });

  test("what is remembered under the client's id goes with the call", () => {
    const signatureOf = (id: string) => (id === wrapped ? "s" : undefined);
    const [message] = unwrapCallIds(request([call(wrapped), call("call_1")]), signatureOf).messages;
    expect(message?.parts).toEqual([{ ...call("0"), signature: "s" } as ContentPart, call("call_1")]);
  });

  test("a request without wrapped ids is the same object", () => {
    const plain = request([call("call_1")]);
    expect(unwrapCallIds(plain)).toBe(plain);
  });

  test("ids stay wrapped that would become the same", () => {
    const replay = request([call(wrapped), call(again), call(wrapCallId("1", NONCE, 1))]);
    expect(ids(unwrapCallIds(replay))).toEqual([wrapped, again, "1"]);
    const besidePlain = request([call(wrapped), call("0")]);
    expect(ids(unwrapCallIds(besidePlain))).toEqual([wrapped, "0"]);
  });
});
