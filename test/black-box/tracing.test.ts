// The id that follows a request: where it is taken from, where it goes, and what is refused.

import { beforeAll, beforeEach, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chatStream, failure } from "../support/openai-answers.ts";
import { RawConnection } from "../support/raw-http.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
});

beforeEach(() => backend.reset());

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const ID_HEADERS = ["x-request-id", "x-trace-id", "x-correlation-id"];

async function idsOf(headers: Record<string, string>): Promise<{ id: string; sent: Record<string, string> }> {
  const response = await gateway.chat({}, { headers });
  expect(response.status).toBe(200);
  await response.text();
  const ids = ID_HEADERS.map((name) => response.headers.get(name));
  expect(new Set(ids).size).toBe(1);
  const sent = backend.lastRequest.headers;
  for (const name of ID_HEADERS) expect(sent[name]).toBe(ids[0] as string);
  return { id: ids[0] as string, sent };
}

test("without an id a new UUID is made, one per request, sent to backend and client", async () => {
  const first = await idsOf({});
  const second = await idsOf({});
  expect(first.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  expect(second.id).not.toBe(first.id);
});

test("the order is traceparent, trace id, request id, correlation id", async () => {
  const all = { "X-Trace-ID": "trace-1", "X-Request-ID": "request-1", "X-Correlation-ID": "correlation-1" };
  expect((await idsOf({ ...all, traceparent: TRACEPARENT })).id).toBe(TRACE_ID);
  expect((await idsOf(all)).id).toBe("trace-1");
  expect((await idsOf({ "X-Request-ID": "request-1", "X-Correlation-ID": "correlation-1" })).id).toBe("request-1");
  expect((await idsOf({ "X-Correlation-ID": "correlation-1" })).id).toBe("correlation-1");
});

test("traceparent and tracestate are handed on with the same trace id", async () => {
  const { sent } = await idsOf({ traceparent: TRACEPARENT, tracestate: "vendor=value,other=1" });
  expect(sent.traceparent).toContain(TRACE_ID);
  expect(sent.tracestate).toBe("vendor=value,other=1");
});

test("a new id comes with a traceparent of its own, in the form of the standard", async () => {
  const { id, sent } = await idsOf({});
  expect(sent.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
  expect(sent.traceparent).toContain(id.replaceAll("-", ""));
});

test("a traceparent that is not one is passed over", async () => {
  for (const traceparent of [
    "garbage",
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `00-${TRACE_ID}-${"0".repeat(16)}-01`,
    `ff-${TRACE_ID}-00f067aa0ba902b7-01`,
    `00-${TRACE_ID.toUpperCase()}-00f067aa0ba902b7-01`,
  ]) {
    expect((await idsOf({ traceparent, "X-Request-ID": "request-1" })).id).toBe("request-1");
  }
});

test("an id that could break a header or a log line is replaced", async () => {
  for (const id of ["has space", "x".repeat(500), '"quoted"', "<b>", "semi;colon"]) {
    expect((await idsOf({ "X-Trace-ID": id })).id).not.toBe(id);
  }
  const connection = await RawConnection.open(gateway.port);
  connection.write("GET /health HTTP/1.1\r\nHost: x\r\nX-Request-ID: caf\xe9\r\n\r\n");
  expect((await connection.response()).status).toBe(200);
  connection.close();
});

test("every kind of answer carries the ids: errors, lists, health, streams, unknown paths", async () => {
  const headers = { "X-Request-ID": "everywhere-1" };
  backend.queue(failure(400));
  const answers = [
    await gateway.chat({}, { headers }),
    await gateway.post("/v1/chat/completions", "{", { headers }),
    await gateway.fetch("/v1/models", { headers }),
    await gateway.fetch("/health", { headers }),
    await gateway.fetch("/nowhere", { headers }),
    await gateway.fetch("/v1/chat/completions", { headers }),
    await gateway.fetch("/admin/backends", { headers }),
  ];
  backend.reset(chatStream(["x"]));
  answers.push(await gateway.chat({ stream: true }, { headers }));
  for (const answer of answers) {
    await answer.text();
    for (const name of ID_HEADERS) expect(answer.headers.get(name)).toBe("everywhere-1");
  }
});

test("the access log has the id", async () => {
  await idsOf({ "X-Request-ID": "find-me-in-the-log" });
  await waitFor("the line of the request", () =>
    gateway.printed.logEntries.some((entry) => entry.request_id === "find-me-in-the-log"),
  );
});

test("the header names can be changed, and W3C trace context switched off", async () => {
  await using other = await startGateway({
    config: {
      tracing: { w3c_trace_context: false, headers: { trace_id: "X-My-Trace" } },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
  const response = await other.chat({}, { headers: { traceparent: TRACEPARENT, "X-My-Trace": "mine" } });
  expect(response.headers.get("x-my-trace")).toBe("mine");
  expect(backend.lastRequest.headers["x-my-trace"]).toBe("mine");
  expect(backend.lastRequest.headers.traceparent).toBeUndefined();
});

test("switched off, no id is taken from a client or sent to a backend", async () => {
  await using other = await startGateway({
    config: { tracing: { enabled: false }, backends: [{ name: "a", url: backend.url, models: ["m"] }] },
  });
  const response = await other.chat({}, { headers: { traceparent: TRACEPARENT, "X-Request-ID": "mine" } });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-request-id")).not.toBe("mine");
  for (const name of [...ID_HEADERS, "traceparent"]) expect(backend.lastRequest.headers[name]).toBeUndefined();
});
