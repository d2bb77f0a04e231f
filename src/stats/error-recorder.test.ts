import { describe, expect, test } from "bun:test";
import { recordOf } from "../../test/support/request-records.ts";
import { recordDebugError } from "../admin/debug-error.ts";
import { errorById, errorStats, recentErrors } from "../admin/error-view.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { ErrorRecorder } from "./error-recorder.ts";
import type { AnsweredError, RequestRecord } from "./request-record.ts";

const START = Date.UTC(2026, 4, 1, 12);
const ALL = { name: "all", ms: undefined };

function setUp(capacity?: number) {
  const time = { ms: 0 };
  const clock = { now: () => time.ms, wallTime: () => START + time.ms };
  return { time, recorder: new ErrorRecorder({ clock, ...(capacity !== undefined && { capacity }) }) };
}

let reports = 0;

interface Report extends Partial<Pick<RequestRecord, "id" | "requestId" | "backend" | "keyId" | "clientAddress">> {
  status?: number;
  isRefusal?: boolean;
  attempts?: readonly { backend: string; failure: string; durationMs?: number }[];
}

const ATTEMPTS = [
  { backend: "a", failure: "connect", durationMs: 3 },
  { backend: "b", failure: "status_502" },
];

function report({ status = 502, isRefusal = false, attempts, ...changes }: Report & Partial<AnsweredError> = {}) {
  const { type = "backend_error", code = 502, message = "It broke.", ...facts } = changes;
  const of = { id: `own-${++reports}`, requestId: "r1", model: "m", backend: "b", isKept: true, ...facts };
  const record = recordOf({ ...of, error: { type, code, message } });
  for (const { backend, ...end } of attempts ?? (isRefusal ? [] : ATTEMPTS)) {
    Object.assign(record.attempt(backend, ""), end);
  }
  record.backend = of.backend;
  record.finish(status, isRefusal ? "refused" : "failed", 1);
  return record;
}

function refusal(attempt: () => unknown): GatewayError {
  try {
    attempt();
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error("not refused");
}

describe("error recorder", () => {
  test("keeps what the admin API shows", () => {
    const { recorder } = setUp();
    recorder.record(report({ id: "own" }));
    expect(errorById(recorder, "own")).toEqual({
      id: "own",
      request_id: "r1",
      timestamp: "2026-05-01T12:00:00.000Z",
      status: 502,
      type: "backend_error",
      code: 502,
      message: "It broke.",
      model: "m",
      backend: "b",
      key_id: null,
      user_id: null,
      organization_id: null,
      client: null,
      ended_by: null,
      attempts: [
        { backend: "a", failure: "connect", duration_ms: 3 },
        { backend: "b", failure: "status_502" },
      ],
    });
    expect(recorder.find("r1")).toBe(recorder.find("own"));
    expect(refusal(() => errorById(recorder, "r2")).status).toBe(404);
    expect(refusal(() => errorById(recorder, "__proto__")).status).toBe(404);
  });

  test("a request that failed before its model was known names none", () => {
    const { recorder } = setUp();
    const record = report({ id: "own" });
    record.model = "";
    recorder.record(record);
    expect(errorById(recorder, "own").model).toBeNull();
  });

  test("the newest first, filtered and limited", () => {
    const { recorder } = setUp();
    for (let index = 0; index < 60; index++) {
      recorder.record(report({ requestId: `r${index}`, type: index % 2 ? "odd" : "even", backend: `b${index % 3}` }));
    }
    const recent = (query: Record<string, string>) => recentErrors(recorder, new URLSearchParams(query));
    expect(recent({})).toMatchObject({ total: 60, errors: { length: 50, 0: { request_id: "r59" } } });
    expect(recent({ type: "odd", limit: "2" }).errors.map(({ request_id }) => request_id)).toEqual(["r59", "r57"]);
    expect(recent({ backend: "b0", type: "odd" }).total).toBe(10);
    expect(recent({ backend: "a" }).total).toBe(60); // it was asked on the way
    for (const limit of ["0", "-1", "x", "1.5", ""]) {
      expect(refusal(() => recent({ limit }))).toMatchObject({ status: 400, param: "limit" });
    }
  });

  test("counts by type, status and backend, over all time and over windows", () => {
    const { recorder, time } = setUp();
    recorder.record(report());
    recorder.record(
      report({ requestId: "r2", status: 429, type: "rate_limit_exceeded", backend: undefined, attempts: [] }),
    );
    expect(errorStats(recorder, ALL)).toEqual({
      total: 2,
      by_type: { backend_error: 1, rate_limit_exceeded: 1 },
      by_status: { "429": 1, "502": 1 },
      by_backend: { a: 1, b: 1 }, // both have failed
      window: "all",
    });
    time.ms = 2 * 3_600_000;
    recorder.record(report({ requestId: "r3" }));
    expect(errorStats(recorder, { name: "1h", ms: 3_600_000 })).toMatchObject({ total: 1, by_status: { "502": 1 } });
    expect(errorStats(recorder, ALL).total).toBe(3);
  });

  test("is bounded in errors, names and lengths", () => {
    const { recorder } = setUp(10);
    for (let index = 0; index < 1000; index++) {
      recorder.record(
        report({
          requestId: `r${index}`,
          type: `t${index}`,
          backend: `b${index}`,
          attempts: [],
          message: "x".repeat(5000),
        }),
      );
    }
    expect(recorder.recent().length).toBe(10);
    expect(recorder.recent()[0]?.message.length).toBe(1000);
    const { total, by_type, by_backend } = errorStats(recorder, ALL);
    expect([total, Object.keys(by_type).length, by_backend["(other)"]]).toEqual([1000, 101, 900]);
    const long = "i".repeat(10_000);
    recorder.record(report({ requestId: long }));
    expect(recorder.find(long)?.requestId.length).toBe(256);
  });

  test("of two requests with one id of a client both are kept, and the newest is found", () => {
    const { recorder } = setUp();
    recorder.record(report({ message: "first" }));
    recorder.record(report({ message: "second" }));
    expect([recorder.find("r1")?.message, recorder.recent().length]).toEqual(["second", 2]);
    expect(recorder.find(recorder.recent()[1]?.id as string)?.message).toBe("first");
  });

  test("secrets that backends quote are not kept", () => {
    const { recorder } = setUp();
    for (const secret of [
      "Incorrect API key provided: sk-sekret12345678. You can find",
      "Authorization: Bearer sekret.abc-123",
      "GET https://host/v1?key=AIzasekret123456789 failed",
      "cannot reach http://user:sekret@host:80/",
      "key api_sekret-0123456 is disabled",
    ]) {
      const { message } = recorder.record(report({ message: secret }));
      expect(message).not.toContain("sekret");
      expect(message).toContain("***");
    }
    const harmless =
      "The model 'skeleton-v2-large' is served by task-runner-12345678 in backend api-gateway-production.";
    expect(recorder.record(report({ message: harmless })).message).toBe(harmless);
  });
});

describe("debug error", () => {
  const parts = (recorder: ErrorRecorder) => ({ recorder, backendNames: ["b"], newId: () => "test-id" });

  test("records what it says", () => {
    const { recorder } = setUp();
    const { error } = recordDebugError(parts(recorder), { type: "timeout", backend: "b" });
    expect(error).toMatchObject({ request_id: "test-id", status: 504, type: "backend_timeout", backend: "b" });
    expect(errorById(recorder, "test-id")).toEqual(error);
    expect(recordDebugError(parts(recorder), { type: "status_429", backend: "b" }).error).toMatchObject({
      status: 429,
    });
    expect(errorStats(recorder, ALL)).toMatchObject({ total: 2, by_backend: { b: 2 } });
  });

  test("names the field that is wrong, and records nothing", () => {
    const { recorder } = setUp();
    const cases: [{ type: string; backend: string }, number, string][] = [
      [{ type: "constructor", backend: "b" }, 400, "type"],
      [{ type: "status_200", backend: "b" }, 400, "type"],
      [{ type: "status_5000", backend: "b" }, 400, "type"],
      [{ type: "timeout", backend: "other" }, 404, "backend"],
    ];
    for (const [body, status, param] of cases) {
      expect(refusal(() => recordDebugError(parts(recorder), body))).toMatchObject({ status, param });
    }
    expect(errorStats(recorder, ALL).total).toBe(0);
  });
});

test("a flood of refusals removes no failure, and no refusal of another client", () => {
  const { recorder } = setUp(3);
  recorder.record(report({ id: "failure" }));
  recorder.record(report({ id: "other", isRefusal: true, keyId: "team-b" }));
  for (let each = 0; each < 2_000; each++) {
    recorder.record(report({ id: `k-${each}`, isRefusal: true, keyId: "team-a" }));
    recorder.record(report({ id: `s-${each}`, isRefusal: true, clientAddress: "192.0.2.1" }));
  }
  expect(recorder.byId("failure")).toBeDefined();
  expect(recorder.find("other")).toMatchObject({ keyId: "team-b" });
  const recent = recorder.recent();
  expect(recent.length).toBeLessThanOrEqual(3 + 2 * 500);
  expect(recent.slice(0, 3).map(({ id }) => id)).toEqual(["s-1999", "k-1999", "s-1998"]);
  expect(recorder.counts().total).toBe(4_002);
});
