import { afterAll, beforeAll, expect, test } from "bun:test";
import { AdminClient } from "../../test/support/admin-client.ts";
import { beginStory, endStory } from "../../test/support/request-records.ts";
import { type ServedRoutes, serveRoutes } from "../../test/support/serve-routes.ts";
import { systemClock } from "../lib/clock.ts";
import { createRequestSearch } from "../request-log/search.ts";
import { ErrorRecorder } from "../stats/error-recorder.ts";
import { Stories } from "../stats/stories.ts";
import { requestRoutes } from "./requests.ts";

const stories = new Stories({ clock: systemClock });
const search = createRequestSearch({ stories, log: undefined, clock: systemClock });
let served: ServedRoutes;
let admin: AdminClient;
beforeAll(async () => {
  served = await serveRoutes(
    requestRoutes({ search, stories, clock: systemClock, errors: new ErrorRecorder({ clock: systemClock }) }),
  );
  admin = new AdminClient(served);
});
afterAll(() => served.stop());

test("explains a request while it runs and when it is over", async () => {
  const story = beginStory(
    stories,
    { id: "own-1", requestId: "a/b c", operation: "chat", model: "m" },
    systemClock.now,
  );
  const step = story.attempt("one", "m", "Random", [{ backend: "one", score: 1 }]);
  const path = `/admin/requests/${encodeURIComponent("a/b c")}`;
  expect(await admin.get(path)).toMatchObject({ finished: false, status: null, steps: [{ outcome: "running" }] });
  Object.assign(step, { durationMs: 4, failure: "status_500", status: 500 });
  endStory(stories, story, {
    status: 502,
    outcome: "failed",
    durationMs: 5,
    failure: "status_500",
    backend: "one",
  });
  expect(await admin.get(path)).toMatchObject({
    id: "own-1",
    request_id: "a/b c",
    finished: true,
    status: 502,
    failure: "status_500",
    steps: [{ kind: "attempt", backend: "one", outcome: "failed", status: 500, candidates: [{ backend: "one" }] }],
  });
});

test("404 for a request that is not known", async () => {
  const error = await admin.refused(404, "GET", "/admin/requests/none");
  expect(error.message).toContain("X-Request-ID");
});
