import { afterEach, describe, expect, test } from "bun:test";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { type Backend, toBackend } from "../backends/backend.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { systemClock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { createTransport } from "../upstream/transport.ts";
import { type CheckReport, createHealthChecker, type HealthChecker } from "./checker.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A backend whose status can be changed; undefined: it never answers. */
function startTarget(status: number | undefined, port = 0) {
  const target = { status, checks: 0, url: "", port, stop: () => server.stop(true) };
  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    fetch() {
      target.checks++;
      return target.status === undefined
        ? new Promise<Response>(() => {})
        : new Response("", { status: target.status });
    },
  });
  target.port = server.port!;
  target.url = `http://127.0.0.1:${server.port}`;
  cleanups.push(target.stop);
  return target;
}

interface Watched {
  checker: HealthChecker;
  reports: CheckReport[];
  lines: { level: string; message: string }[];
  state(name?: string): string | undefined;
}

function watch(urls: readonly string[], healthChecks: ConfigDocument["health_checks"] = {}): Watched {
  const backends = urls.map((url, index) => ({ name: `b${index}`, type: "vllm", url }));
  const settings = documentSchema.parse({ backends, health_checks: healthChecks });
  const byName = new Map<string, Backend>(settings.backends.map((each) => [each.name, toBackend(each)]));
  const reports: CheckReport[] = [];
  const lines: Watched["lines"] = [];
  const log = {
    info: (_: unknown, message: string) => lines.push({ level: "info", message }),
    warn: (_: unknown, message: string) => lines.push({ level: "warn", message }),
  } as unknown as Logger;
  const checker = createHealthChecker({
    backend: (name) => byName.get(name)!,
    settings: settings.health_checks,
    transport: createTransport(async () => new Response("{}")),
    clock: systemClock,
    log,
    random: () => 0.5,
    onCheck: (report) => reports.push(report),
  });
  for (const name of byName.keys()) void checker.watch(name);
  cleanups.push(() => checker.stop());
  return { checker, reports, lines, state: (name = "b0") => checker.view(name)?.record.state };
}

/** A port at which nothing listens now. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

describe("the first checks", () => {
  test("are made at once, and one silent backend holds nobody up", async () => {
    const silent = startTarget(undefined);
    const good = startTarget(200);
    const watched = watch([silent.url, good.url, `http://127.0.0.1:${freePort()}`]);
    await waitFor("the good one is ready", () => watched.state("b1") === "ready");
    await waitFor("the refused one is down", () => watched.state("b2") === "down");
    expect(watched.state("b0")).toBe("unknown");
  });

  test("200 backends, half of them silent", async () => {
    const silent = startTarget(undefined);
    const good = startTarget(200);
    const watched = watch(Array.from({ length: 200 }, (_, index) => (index % 2 ? good.url : silent.url)));
    await waitFor("all good ones are ready", () => watched.reports.length === 100);
    expect(watched.reports.every((report) => report.record.state === "ready")).toBe(true);
  });
});

describe("changes", () => {
  test("a backend that refuses while its engine loads is found soon after it comes up", async () => {
    const port = freePort();
    const watched = watch([`http://127.0.0.1:${port}`], { warmup_check_interval: "100ms" });
    await waitFor("it is unhealthy", () => watched.state() === "unhealthy");
    startTarget(200, port);
    await waitFor("it is ready", () => watched.state() === "ready");
    expect(watched.lines.map((line) => line.level)).toEqual(["warn", "warn", "info"]);
  });

  test("an engine that says 503 warms up until it says 200", async () => {
    const target = startTarget(503);
    const watched = watch([target.url], { warmup_check_interval: "20ms" });
    await waitFor("it warms up", () => watched.state() === "warming_up" && target.checks >= 3);
    target.status = 200;
    await waitFor("it is ready", () => watched.state() === "ready");
    expect(watched.lines).toEqual([
      { level: "info", message: "backend b0 is warming_up: HTTP 503: the backend is still loading" },
      { level: "info", message: "backend b0 is ready" },
    ]);
  });

  test("a ready backend falls with the third failure and rises with the second success; each change is logged once", async () => {
    const target = startTarget(200);
    const watched = watch([target.url], { interval: "20ms", warmup_check_interval: "20ms" });
    await waitFor("it is ready", () => watched.state() === "ready");
    target.status = 500;
    await waitFor("it is unhealthy", () => watched.state() === "unhealthy");
    const failed = watched.reports.filter((report) => report.outcome.verdict === "failed");
    expect(failed.slice(0, 3).map((report) => report.record.state)).toEqual(["ready", "ready", "unhealthy"]);
    target.status = 200;
    await waitFor("it is ready again", () => watched.state() === "ready");
    expect(watched.reports.at(-1)?.record.consecutiveSuccesses).toBe(2);
    expect(watched.lines.map((line) => line.message)).toEqual([
      "backend b0 is ready",
      "backend b0 is unhealthy: HTTP 500 for /health",
      "backend b0 is ready",
    ]);
  });

  test("a loading that never ends is unhealthy", async () => {
    const target = startTarget(503);
    const watched = watch([target.url], { warmup_check_interval: "10ms", max_warmup_duration: "50ms" });
    await waitFor("it is unhealthy", () => watched.state() === "unhealthy");
  });

  test("silence is a failure", async () => {
    const watched = watch([startTarget(undefined).url], { timeout: "30ms", unhealthy_threshold: 1 });
    await waitFor("it is unhealthy", () => watched.state() === "unhealthy");
    expect(watched.checker.view("b0")?.lastOutcome?.reason).toBe("no answer within 30ms");
  });
});

describe("suspicion", () => {
  test("has a steady backend checked before its time, and a hundred at once only once", async () => {
    const target = startTarget(200);
    const watched = watch([target.url], { interval: "1h" });
    await waitFor("it is ready", () => watched.state() === "ready");
    for (let round = 0; round < 100; round++) watched.checker.suspect("b0");
    await waitFor("it is checked again", () => watched.reports.length === 2);
    await Bun.sleep(50);
    expect(target.checks).toBe(2);
  });

  test("finds a dead backend although the next check is far away", async () => {
    const target = startTarget(200);
    const watched = watch([target.url], { interval: "1h", warmup_check_interval: "20ms" });
    await waitFor("it is ready", () => watched.state() === "ready");
    await target.stop();
    watched.checker.suspect("b0");
    await waitFor("it is unhealthy", () => watched.state() === "unhealthy");
  });

  test("of an unknown backend does nothing", () => {
    expect(() => watch([]).checker.suspect("nobody")).not.toThrow();
  });
});

describe("a list that changes", () => {
  test("who is no longer watched is forgotten, with its check under way and its timer", async () => {
    const silent = startTarget(undefined);
    const good = startTarget(200);
    const { checker, reports, state } = watch([silent.url, good.url], { interval: "10ms", timeout: "1h" });
    await waitFor("both were asked", () => silent.checks > 0 && good.checks > 1);
    checker.unwatch("b0");
    checker.unwatch("b1");
    const { checks } = good;
    const count = reports.length;
    await Bun.sleep(50);
    expect([good.checks, reports.length, state("b0"), state("b1")]).toEqual([checks, count, undefined, undefined]);
    await within("it is watched anew", checker.watch("b1"));
    expect(state("b1")).toBe("ready");
  });

  test("who is watched again keeps its record, but not a check that hangs", async () => {
    const target = startTarget(200);
    const { checker, reports, state } = watch([target.url], { interval: "1h", timeout: "1h" });
    await waitFor("it is ready", () => state() === "ready");
    target.status = undefined;
    const hanging = checker.check("b0");
    await waitFor("it is asked", () => target.checks === 2);
    target.status = 200;
    await within("it is checked anew", checker.watch("b0"));
    await within("the old check is over", hanging);
    expect(reports.map(({ previousState, record }) => [previousState, record.state])).toEqual([
      ["unknown", "ready"],
      ["ready", "ready"],
    ]);
  });

  test("a shorter interval counts at once", async () => {
    const target = startTarget(200);
    const { checker, state } = watch([target.url], { interval: "1h" });
    await waitFor("it is ready", () => state() === "ready");
    checker.apply(documentSchema.parse({ health_checks: { interval: "10ms" } }).health_checks);
    await waitFor("it is checked often", () => target.checks > 3);
  });

  test("after the stop nobody is checked any more", async () => {
    const target = startTarget(200);
    const { checker } = watch([]);
    await checker.stop();
    await within("nothing is waited for", checker.watch("b0"));
    expect(target.checks).toBe(0);
  });
});

describe("stop", () => {
  test("ends running checks, and none follows", async () => {
    const silent = startTarget(undefined);
    const good = startTarget(200);
    const watched = watch([silent.url, good.url], { interval: "10ms", timeout: "1h" });
    await waitFor("both were asked", () => silent.checks > 0 && good.checks > 1);
    await within("it stops", watched.checker.stop());
    const checks = good.checks;
    await Bun.sleep(50);
    expect(good.checks).toBe(checks);
    expect(watched.state("b0")).toBe("unknown");
  });

  test("does not wait for checks that have not begun", async () => {
    const silent = startTarget(undefined);
    const watched = watch(Array.from({ length: 1_000 }, () => silent.url));
    await within("it stops", watched.checker.stop(), 1_000);
  });
});
