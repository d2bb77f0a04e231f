// What is reported of a request that is over.

import { expect, test } from "bun:test";
import { contextOf, recordOf } from "../../test/support/request-records.ts";
import { explainRequest } from "../../test/support/request-search.ts";
import { recentErrors } from "../admin/error-view.ts";
import { systemClock } from "../lib/clock.ts";
import { ErrorRecorder } from "../stats/error-recorder.ts";
import { NOT_SENT, type RequestRecord } from "../stats/request-record.ts";
import { Stories } from "../stats/stories.ts";
import { createBooks, createReporter } from "./observe.ts";

function reporting() {
  const finished: RequestRecord[] = [];
  const counted: string[] = [];
  const stories = new Stories({ clock: systemClock });
  const errors = new ErrorRecorder({ clock: systemClock, capacity: 1 });
  const observer = {
    attempted() {},
    finished(request: RequestRecord) {
      finished.push(request);
      counted.push(request.model);
      return 0;
    },
    turnedAway() {},
  };
  const reporter = createReporter(
    createBooks({ observer, stories, errors, events: { dropped() {}, refused() {} }, arms: { over() {} } }),
  );
  const context = (facts: Partial<RequestRecord>) =>
    contextOf(recordOf({ operation: "chat", model: "m", isRead: true, ...facts }, systemClock.now), {});
  const recent = () =>
    recentErrors(errors, new URLSearchParams()) as { errors: { status: number; attempts: unknown[] }[] };
  const story = async () => (await explainRequest(stories, "r1")) as { steps: { kind: string }[]; finished: boolean };
  return { reporter, context, finished, counted, errors, recent, story };
}

test("a success is counted without a failure, though an earlier attempt had one", async () => {
  const { reporter, context, finished, recent, story } = reporting();
  const request = context({ attempts: 2, backend: "b", lastFailure: "status_503" });
  reporter.begun(request);
  reporter.finished(request, 200, 12);
  expect(finished).toMatchObject([{ model: "m", backend: "b", status: 200, failure: undefined, attempts: 2 }]);
  expect(recent().errors).toEqual([]);
  expect((await story()).finished).toBe(true);
});

test("a refusal is an error, and the story says why nobody was asked", async () => {
  const { reporter, context, finished, recent, story } = reporting();
  const request = context({ lastFailure: "model_not_found" });
  reporter.begun(request);
  reporter.finished(request, 404, 1);
  expect(finished).toMatchObject([{ status: 404, failure: "model_not_found" }]);
  expect(recent().errors).toMatchObject([{ status: 404 }]);
  expect((await story()).steps).toMatchObject([{ kind: "refused", reason: "model_not_found" }]);
});

test("a stream that broke off is told from a plain failure; a client that left is nobody's error", async () => {
  const { reporter, context, finished, recent, story } = reporting();
  const broken = context({ stream: true, attempts: 1, backend: "b", streamFailure: "reset" });
  reporter.begun(broken);
  reporter.finished(broken, 502, 5);
  expect(await story()).toMatchObject({ outcome: "stream_broken", status: 502, failure: "reset" });
  const left = context({ stream: true, attempts: 1, backend: "b", streamFailure: "aborted" });
  reporter.begun(left);
  reporter.finished(left, 499, 5);
  expect(await story()).toMatchObject({ outcome: "client_left" });
  expect(finished.map(({ failure }) => failure)).toEqual(["reset", "aborted"]);
  expect(recent().errors).toHaveLength(1);
});

test("requests that ask no model are not counted among those that do", () => {
  const { reporter, context, finished } = reporting();
  const request = context({ operation: "", isRead: false });
  reporter.finished(request, 200, 1);
  expect(finished).toEqual([]);
});

test("a long refusal of the gateway's own is no failure, though its steps are too many to be kept", () => {
  const { reporter, context, errors } = reporting();
  for (let each = 0; each < 2; each++) {
    const request = context({ lastFailure: "unsupported_content", requestId: `r${each}` });
    reporter.begun(request);
    const candidates = Array.from({ length: 32 }, (_, index) => ({ backend: `b${index}` }));
    for (const backend of ["a", "b"]) request.record.attempt(backend, "m", "x", candidates).failure = NOT_SENT;
    reporter.finished(request, 400, 1);
    expect(request.record.isOutlined).toBe(true);
    expect(request.record.wasOnlyRefused).toBe(true);
  }
  // The recorder has room for one failure; refusals take nothing of it.
  expect(errors.recent()).toHaveLength(2);
});

test("a refused model is counted by its name, and kept without what may be a key", async () => {
  const { reporter, context, counted, story } = reporting();
  const request = context({ model: "api-llama-3-70b", lastFailure: "rate_limit_exceeded" });
  reporter.begun(request);
  reporter.finished(request, 429, 1);
  expect(counted).toEqual(["api-llama-3-70b"]);
  expect(await story()).toMatchObject({ model: "***" });
});

test("an attempt that outlives its request changes nothing of how it ended", async () => {
  const { reporter, context, story } = reporting();
  const request = context({ stream: true });
  const { record } = request;
  reporter.begun(request);
  record.attempt("a", "m");
  reporter.finished(request, 499, 5);
  record.settle();
  record.attempt("b", "n");
  record.standIn("n");
  record.ended(400);
  expect(await story()).toMatchObject({ backend: "a", answered_by: null, timings: { backend_ms: null } });
});
