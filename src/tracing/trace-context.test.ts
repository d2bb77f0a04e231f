// The id of a request: whose it is, what is believed of a client, and what backends and clients are told.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type ConfigDocument, documentSchema, type Settings } from "../config/sections/registry.ts";
import { propagateTrace, resolveTrace, type TraceContext, writeIds } from "./trace-context.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const NEW_ID = "11111111-2222-4333-8444-555555555555";

function tracingOf(tracing: ConfigDocument["tracing"] = {}): Settings["tracing"] {
  return documentSchema.parse({ tracing }).tracing;
}

function resolve(headers: Record<string, string>, tracing: ConfigDocument["tracing"] = {}): TraceContext {
  return resolveTrace(new Headers(headers), tracingOf(tracing), () => NEW_ID);
}

function propagated(trace: TraceContext, tracing: ConfigDocument["tracing"] = {}): Record<string, string> {
  const into: Record<string, string> = {};
  propagateTrace(trace, tracingOf(tracing), into);
  return into;
}

describe("whose id it is", () => {
  const all = {
    traceparent: TRACEPARENT,
    "x-trace-id": "trace",
    "x-request-id": "request",
    "x-correlation-id": "correlation",
  };
  const cases: [left: string[], id: string][] = [
    [[], TRACE_ID],
    [["traceparent"], "trace"],
    [["traceparent", "x-trace-id"], "request"],
    [["traceparent", "x-trace-id", "x-request-id"], "correlation"],
    [["traceparent", "x-trace-id", "x-request-id", "x-correlation-id"], NEW_ID],
  ];
  test.each(cases)("without %j it is %s", (left, id) => {
    const headers = Object.fromEntries(Object.entries(all).filter(([name]) => !left.includes(name)));
    expect(resolve(headers).id).toBe(id);
  });

  test("the names of the headers are configured", () => {
    const headers = { trace_id: "X-Own" };
    expect(resolve({ "x-own": "mine", "x-trace-id": "other" }, { headers }).id).toBe("mine");
  });

  test("switched off, nothing of the client is believed", () => {
    expect(resolve(all, { enabled: false })).toEqual({ id: NEW_ID, traceparent: undefined, tracestate: undefined });
  });

  test("without W3C, traceparent is not read", () => {
    expect(resolve(all, { w3c_trace_context: false })).toMatchObject({ id: "trace", traceparent: undefined });
  });
});

describe("traceparent", () => {
  test("is carried unchanged, and tracestate with it", () => {
    const trace = resolve({ traceparent: TRACEPARENT, tracestate: "vendor=1" });
    expect(trace).toEqual({ id: TRACE_ID, traceparent: TRACEPARENT, tracestate: "vendor=1" });
    expect(propagated(trace)).toMatchObject({ traceparent: TRACEPARENT, tracestate: "vendor=1" });
  });

  test("of a later version may be longer", () => {
    const later = `01-${TRACE_ID}-00f067aa0ba902b7-01-more`;
    expect(resolve({ traceparent: later })).toMatchObject({ id: TRACE_ID, traceparent: later });
  });

  test("of a later version has a bound", () => {
    const later = (length: number) => `01-${TRACE_ID}-00f067aa0ba902b7-01-`.padEnd(length, "x");
    expect(resolve({ traceparent: later(128) })).toMatchObject({ id: TRACE_ID, traceparent: later(128) });
    const dropped = resolve({ traceparent: later(129), tracestate: "vendor=1", "x-request-id": "r" });
    expect(dropped).toEqual({ id: "r", traceparent: undefined, tracestate: undefined });
  });

  test.each([
    [`ff-${TRACE_ID}-00f067aa0ba902b7-01`],
    [`00-${"0".repeat(32)}-00f067aa0ba902b7-01`],
    [`00-${TRACE_ID}-${"0".repeat(16)}-01`],
    [`00-${TRACE_ID.toUpperCase()}-00f067aa0ba902b7-01`],
    [`00-${TRACE_ID.slice(1)}-00f067aa0ba902b7-01`],
    [`00-${TRACE_ID}-00f067aa0ba902b7`],
    [`00-${TRACE_ID}-00f067aa0ba902b7-1`],
    [`00-${TRACE_ID}-00f067aa0ba902b7-01-more`],
    [`01-${TRACE_ID}-00f067aa0ba902b7-01more`],
    ["nonsense"],
  ])("%s is none: it is not carried, and neither is tracestate", (traceparent) => {
    const trace = resolve({ traceparent, tracestate: "vendor=1", "x-request-id": "r" });
    expect(trace).toEqual({ id: "r", traceparent: undefined, tracestate: undefined });
  });

  test("an endless tracestate is dropped, a long one kept", () => {
    expect(resolve({ traceparent: TRACEPARENT, tracestate: "x".repeat(512) }).tracestate?.length).toBe(512);
    expect(resolve({ traceparent: TRACEPARENT, tracestate: "x".repeat(1_025) }).tracestate).toBeUndefined();
  });
});

describe("ids of clients", () => {
  test.each([["a"], ["x".repeat(128)], ["01J8Z-abc_DEF.1:2+3/4=5@6"]])("%s is taken", (id) => {
    expect(resolve({ "x-request-id": id }).id).toBe(id);
  });

  test.each([[""], ["x".repeat(129)], ["two words"], ['a"b'], ["a{b}"], ["ümlaut"], ["a;b"], ["a\tb"]])(
    "%j is replaced",
    (id) => {
      expect(resolve({ "x-request-id": id }).id).toBe(NEW_ID);
    },
  );

  test("an id that is no good does not hide a good one of less rank", () => {
    expect(resolve({ "x-trace-id": "bad id", "x-correlation-id": "good" }).id).toBe("good");
  });

  test("property: whatever a client sends, the id is safe in headers and log lines", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const clean = text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "");
        expect(resolve({ "x-trace-id": clean, traceparent: clean }).id).toMatch(/^[\w.:+/=@-]{1,128}$/);
      }),
    );
  });
});

describe("what a backend is told", () => {
  test("the id under every name", () => {
    expect(propagated(resolve({ "x-request-id": "r" }))).toEqual({
      "x-request-id": "r",
      "x-trace-id": "r",
      "x-correlation-id": "r",
    });
  });

  test("an id that is a UUID becomes a traceparent, the same one for each attempt", () => {
    const trace = resolve({});
    const first = propagated(trace).traceparent as string;
    expect(first).toMatch(/^00-11111111222243338444555555555555-[0-9a-f]{16}-01$/);
    expect(propagated(trace).traceparent).toBe(first);
    expect(resolve({ traceparent: first }).id).toBe("11111111222243338444555555555555");
  });

  test("property: a traceparent made here is always a valid one", () => {
    const hex = fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 32, maxLength: 32 });
    const halves = fc.constantFrom(`${"0".repeat(16)}${"1".repeat(16)}`, `${"1".repeat(16)}${"0".repeat(16)}`);
    fc.assert(
      fc.property(fc.oneof(hex, halves), (id) => {
        fc.pre(id !== "0".repeat(32));
        const { traceparent } = propagated({ id, traceparent: undefined, tracestate: undefined });
        expect(resolve({ traceparent: traceparent as string }).traceparent).toBe(traceparent as string);
      }),
    );
  });

  test("an id that is no such number has no traceparent", () => {
    for (const id of ["short", "0".repeat(32), "g".repeat(32)]) {
      expect(propagated({ id, traceparent: undefined, tracestate: undefined }).traceparent).toBeUndefined();
    }
  });

  test("without W3C the id only; switched off, nothing", () => {
    const trace = resolve({});
    expect(propagated(trace, { w3c_trace_context: false })).toMatchObject({ "x-request-id": NEW_ID });
    expect(propagated(trace, { w3c_trace_context: false }).traceparent).toBeUndefined();
    expect(propagated(trace, { enabled: false })).toEqual({});
  });
});

test("the client is told the id under every configured name, also when tracing is off", () => {
  const into: Record<string, string> = {};
  const headers = { trace_id: "X-T", request_id: "X-R", correlation_id: "X-C" };
  writeIds(resolve({}, { enabled: false }), tracingOf({ enabled: false, headers }), into);
  expect(into).toEqual({ "X-T": NEW_ID, "X-R": NEW_ID, "X-C": NEW_ID });
});
