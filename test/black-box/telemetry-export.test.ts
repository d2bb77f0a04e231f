// How traces and metrics get to a receiver: in both encodings, whatever the receiver does, and never at the cost of a request.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { workerCount } from "../support/gateway-parts.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { chatEvents, eventStream, sseEvent } from "../support/openai-answers.ts";
import { OtlpReceiver, type ReceivedMetric } from "../support/otlp-receiver.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
let receiver: OtlpReceiver;

beforeAll(async () => {
  receiver = await OtlpReceiver.start();
}, 300_000);

afterAll(() => receiver.stop());

beforeEach(() => {
  receiver.reset();
  backend.reset();
});

/** Whoever still runs would go on sending. */
const running: ProcessGateway[] = [];

afterEach(async () => {
  for (const gateway of running.splice(0)) if (!gateway.process.hasExited) await gateway.stop("SIGKILL");
});

type Otlp = NonNullable<ConfigDocument["telemetry"]>["otlp"];

async function start(otlp: Otlp = {}, more: ConfigDocument = {}): Promise<ProcessGateway> {
  const gateway = await bed.process({
    config: {
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
      telemetry: { otlp: { endpoint: receiver.url, ...otlp } },
      ...more,
    },
  });
  running.push(gateway);
  return gateway;
}

async function ask(gateway: ProcessGateway, count = 1, body: Record<string, unknown> = {}): Promise<void> {
  for (let each = 0; each < count; each++) {
    const response = await gateway.chat({ user: String(each), ...body });
    expect(response.status).toBe(200);
    await response.text();
  }
}

async function metric(gateway: ProcessGateway, name: string): Promise<number | undefined> {
  const text = await (await gateway.fetch("/metrics")).text();
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

const linesAbout = (gateway: ProcessGateway) =>
  gateway.printed.logEntries.filter(({ message, msg }) => String(message ?? msg).includes("OTLP"));

const named = (name: string): ReceivedMetric => {
  const found = receiver.metrics.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no ${name} among ${receiver.metrics.map((each) => each.name)}`);
  return found;
};

describe.each(["http/protobuf", "http/json"] as const)("%s", (protocol) => {
  test("traces and metrics are sent with the headers of the configuration, and the rest at the end", async () => {
    const gateway = await start({ protocol, headers: { "X-Api-Key": "sekret-of-receiver", "X-Scope": "team" } });
    await ask(gateway, 4);
    expect(await gateway.stop()).toBe(0);
    expect(receiver.spans).toHaveLength(8);
    expect(new Set(receiver.requests.map(({ signal }) => signal))).toEqual(new Set(["traces", "metrics"]));
    for (const { headers } of receiver.requests) {
      expect(headers.get("x-api-key")).toBe("sekret-of-receiver");
      expect(headers.get("x-scope")).toBe("team");
      expect(headers.get("content-type")).toBe(
        protocol === "http/json" ? "application/json" : "application/x-protobuf",
      );
    }
    // Each process is an instance: the only one, or a worker, or the primary, which sends the metrics of all.
    const instances = new Map<unknown, unknown>();
    for (const { resource } of receiver.requests)
      instances.set(resource["service.instance.id"], resource["process.pid"]);
    expect(new Set(instances.values()).size).toBe(instances.size);
    expect(instances.size).toBeLessThanOrEqual(workerCount() === 1 ? 1 : workerCount() + 1);
    const ofMetrics = receiver.requests.filter(({ signal }) => signal === "metrics");
    expect(new Set(ofMetrics.map(({ resource }) => resource["process.pid"]))).toEqual(new Set([gateway.pid]));
  });

  test("metrics by the conventions, and the gateway's own under the names of /metrics", async () => {
    const gateway = await start({ protocol, interval: "1s" });
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
    const counted = sseEvent({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [],
      usage,
    });
    backend.answer = eventStream([...chatEvents(["a", "b"], { done: false }), counted, "data: [DONE]\n\n"]);
    await ask(gateway, 2, { stream: true });
    await waitFor("metrics of the requests arrive", () =>
      receiver.metrics.some(
        ({ name, points }) => name === "gen_ai.server.request.duration" && points[0]?.count === "2",
      ),
    );
    const asked = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "vllm",
      "gen_ai.request.model": "m",
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(backend.url).port),
      backend: "a",
    };
    for (const name of ["gen_ai.client.operation.duration", "gen_ai.server.request.duration"]) {
      const duration = named(name);
      expect(duration).toMatchObject({ kind: "histogram", unit: "s", aggregationTemporality: 2 });
      expect(duration.points).toHaveLength(1);
      const [point] = duration.points;
      expect(point).toMatchObject({ attributes: asked, count: "2" });
      expect(point?.explicitBounds.slice(0, 3)).toEqual([0.01, 0.02, 0.04]);
      expect(point?.bucketCounts).toHaveLength(15);
      expect(point?.bucketCounts.reduce((sum, count) => sum + Number(count), 0)).toBe(2);
      expect(point?.sum).toBeGreaterThan(0);
    }
    expect(named("gen_ai.server.time_to_first_token")).toMatchObject({ unit: "s", points: [{ count: "2" }] });
    expect(named("gen_ai.client.token.usage")).toMatchObject({ unit: "{token}" });
    const types = named("gen_ai.client.token.usage").points.map(({ attributes }) => attributes["gen_ai.token.type"]);
    expect(types.sort()).toEqual(["input", "output"]);
    expect(named("signalbox_requests_total")).toMatchObject({
      kind: "sum",
      isMonotonic: true,
      aggregationTemporality: 2,
      points: [{ attributes: { operation: "chat", model: "m", backend: "a", status: "200" }, asDouble: 2 }],
    });
    expect(named("signalbox_uptime_seconds")).toMatchObject({ kind: "gauge", unit: "s" });
    // The same list as that of /metrics, but for the names of the conventions.
    const exposed = [...(await (await gateway.fetch("/metrics")).text()).matchAll(/^# TYPE (\S+)/gm)].map(
      ([, name]) => name,
    );
    const sent = new Set(
      receiver.metrics.map(
        ({ name, unit }) => `${name.replaceAll(".", "_")}${name.includes(".") && unit === "s" ? "_seconds" : ""}`,
      ),
    );
    for (const name of exposed) expect(sent).toContain(name as string);
    // Cumulative: from one start on, and never less.
    const [first] = named("signalbox_requests_total").points;
    await ask(gateway, 1, { stream: true });
    await waitFor("the next ones arrive", () => named("signalbox_requests_total").points[0]?.asDouble === 3);
    const [next] = named("signalbox_requests_total").points;
    expect(next?.startTimeUnixNano).toBe(first?.startTimeUnixNano as string);
    expect(BigInt(next?.timeUnixNano as string)).toBeGreaterThan(BigInt(first?.timeUnixNano as string));
  });
});

describe("a receiver", () => {
  test("that is away costs no request anything, is told of once, and gets what waited when it is back", async () => {
    const gateway = await start({ interval: "60s" });
    await receiver.stop();
    await ask(gateway, 5);
    await waitFor("the log says that it is away", () => linesAbout(gateway).length === 1);
    expect(await metric(gateway, 'signalbox_otlp_up{signal="traces"}')).toBe(0);
    await ask(gateway, 5);
    receiver.listen();
    await receiver.trace(20);
    await waitFor("the log says that it is back", () => linesAbout(gateway).length === 2);
    expect(await metric(gateway, 'signalbox_otlp_up{signal="traces"}')).toBe(1);
    expect(await metric(gateway, "signalbox_otlp_dropped_spans_total")).toBe(0);
    expect(linesAbout(gateway).map(({ level }) => level)).toEqual(["warn", "info"]);
  });

  test("that is overloaded is asked again after the time that it names", async () => {
    const times: number[] = [];
    const statuses = [429, 503, 502, 504];
    receiver.fault = (request) => {
      if (request.url.endsWith("metrics")) return undefined;
      const status = statuses[times.length];
      times.push(performance.now());
      return status === undefined ? undefined : new Response("busy", { status, headers: { "Retry-After": "1" } });
    };
    const gateway = await start();
    await ask(gateway, 2);
    await receiver.trace(4);
    expect(times).toHaveLength(5);
    for (let each = 1; each < 5; each++)
      expect((times[each] as number) - (times[each - 1] as number)).toBeGreaterThan(950);
    await waitFor("the log says that it was away and is back", () => linesAbout(gateway).length === 2);
  });

  test("that refuses what it is sent is not asked again for it", async () => {
    receiver.fault = (_request, count) => (count === 0 ? new Response("sekret words", { status: 400 }) : undefined);
    const gateway = await start();
    await ask(gateway, 2);
    await waitFor("they are dropped", async () => (await metric(gateway, "signalbox_otlp_dropped_spans_total")) === 4);
    await ask(gateway, 1);
    await receiver.trace(2);
    expect(await metric(gateway, 'signalbox_otlp_exports_total{signal="traces",result="failure"}')).toBe(1);
  });

  test("that takes a part says so in the log, once", async () => {
    receiver.fault = (request) =>
      request.url.endsWith("traces") ? receiver.partialAnswer("traces", 3, "too many attributes") : undefined;
    const gateway = await start();
    for (let each = 0; each < 2; each++) {
      await ask(gateway, 2);
      await waitFor("it is sent", async () => {
        return (await metric(gateway, 'signalbox_otlp_exports_total{signal="traces",result="success"}')) === each + 1;
      });
    }
    await gateway.stop();
    expect(linesAbout(gateway)).toMatchObject([{ level: "warn", rejected: 3 }]);
  });

  test.each([
    ["HTML", () => new Response("<html>sekret login</html>", { headers: { "Content-Type": "text/html" } })],
    ["an endless answer", () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)) }))],
    ["a redirect", () => Response.redirect("http://127.0.0.1:9/sekret", 307)],
  ])("that answers %s harms nobody", async (_what, answer) => {
    receiver.fault = answer;
    const gateway = await start();
    await ask(gateway, 3);
    await waitFor("it was asked", async () => (await metricsOfExports(gateway)) > 0);
    await ask(gateway, 3);
    expect(await gateway.stop()).toBe(0);
  });

  test("that hangs holds up neither requests nor the end for longer than it may", async () => {
    const hanging = Promise.withResolvers<Response>();
    receiver.fault = () => hanging.promise;
    const gateway = await start({}, { server: { shutdown_timeout: "2s" } });
    await ask(gateway, 3);
    await waitFor("it is asked", () => hanging.promise !== undefined && receiver.requests.length === 0);
    await ask(gateway, 3);
    const startedMs = performance.now();
    expect(await gateway.stop()).toBe(0);
    expect(performance.now() - startedMs).toBeLessThan(6_000);
    hanging.resolve(new Response());
  });
});

async function metricsOfExports(gateway: ProcessGateway): Promise<number> {
  const of = (result: string) => metric(gateway, `signalbox_otlp_exports_total{signal="traces",result="${result}"}`);
  return ((await of("success")) ?? 0) + ((await of("failure")) ?? 0);
}

test("a flood while nobody takes anything is dropped and counted, in bounded memory", async () => {
  const gateway = await start({ interval: "60s" });
  await receiver.stop();
  const rss = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1]) / 1024;
  const processes = workerCount();
  const many = async (count: number) => {
    await Promise.all(Array.from({ length: 20 }, () => ask(gateway, count / 20)));
  };
  await many(2_000);
  const beforeMb = rss();
  // Each process holds 16,000 spans, and 1,000 are under way.
  await many(8_000 * processes + 1_500);
  const dropped = await waitFor("spans are dropped", () => metric(gateway, "signalbox_otlp_dropped_spans_total"));
  expect(dropped).toBeGreaterThan(0);
  expect(dropped).toBeLessThanOrEqual(4_000 + 16_000 * processes + 3_000 - 16_000);
  expect(rss() - beforeMb).toBeLessThan(120);
  // One of each process that has something to send.
  expect(linesAbout(gateway).length).toBeGreaterThan(0);
  expect(linesAbout(gateway).length).toBeLessThanOrEqual(processes);
  receiver.listen();
}, 120_000);

describe("the configuration", () => {
  test("switches it on, moves it and switches it off while requests run", async () => {
    const second = await OtlpReceiver.start();
    const gateway = await start({ endpoint: undefined });
    const admin = new AdminClient(gateway);
    await ask(gateway);
    await admin.ok("PATCH", "/admin/config/telemetry", { otlp: { endpoint: receiver.url } });
    await ask(gateway);
    await receiver.trace(2);
    await admin.ok("PATCH", "/admin/config/telemetry", {
      otlp: { endpoint: `${second.url}/base/`, protocol: "http/json" },
    });
    await ask(gateway, 2);
    await second.trace(4);
    expect(second.requests[0]?.headers.get("content-type")).toBe("application/json");
    await admin.ok("PATCH", "/admin/config/telemetry", { otlp: { endpoint: null } });
    const sent = backend.requests.length;
    await ask(gateway);
    expect(backend.requests[sent]?.headers.traceparent).toMatch(/-01$/);
    expect(await metric(gateway, 'signalbox_otlp_up{signal="traces"}')).toBeUndefined();
    await gateway.stop();
    expect(receiver.spans).toHaveLength(2);
    expect(second.spans).toHaveLength(4);
    await second.stop();
  });

  test("shows headers masked everywhere, and sends them nowhere else by the API", async () => {
    const gateway = await start({ headers: { Authorization: "Bearer sekret-of-receiver" } });
    const admin = new AdminClient(gateway);
    const masked = { otlp: { headers: { Authorization: "********" } } };
    expect(await admin.get("/admin/config/telemetry")).toMatchObject({ config: masked });
    expect(await admin.get("/admin/config/full")).toMatchObject({ config: { telemetry: masked } });
    for (const path of ["/admin/config", "/admin/config/history", "/admin/config/sections"]) await admin.get(path);
    const evil = "http://127.0.0.1:9";
    const { fields } = await admin.refused(400, "PATCH", "/admin/config/telemetry", { otlp: { endpoint: evil } });
    expect(fields).toEqual(["telemetry.otlp.headers.Authorization"]);
    // A masked header that comes back is unchanged; with the secret itself it may go elsewhere.
    await admin.ok("PATCH", "/admin/config/telemetry", { otlp: { ...masked.otlp, sampling_ratio: 0.5 } });
    await admin.ok("PATCH", "/admin/config/telemetry", {
      otlp: { endpoint: evil, headers: { Authorization: "Bearer sekret-other" } },
    });
  });

  test.each([
    [{ endpoint: "http://user:sekret@host" }, "telemetry.otlp.endpoint"],
    [{ endpoint: "ftp://host" }, "telemetry.otlp.endpoint"],
    [{ endpoint: "http://host/?key=sekret" }, "telemetry.otlp.endpoint"],
    [{ headers: { "Content-Type": "x" } }, "telemetry.otlp.headers"],
    [{ headers: { "X-Key": "sekret\nX: y" } }, "telemetry.otlp.headers.X-Key"],
    [{ sampling_ratio: 1.5 }, "telemetry.otlp.sampling_ratio"],
    [{ interval: "2m" }, "telemetry.otlp.interval"],
    [{ protocol: "grpc" }, "telemetry.otlp.protocol"],
    [{ retries: 3 }, "telemetry.otlp.retries"],
  ])("refuses %j", async (otlp, field) => {
    const { fields } = await (await checked).refused(400, "PATCH", "/admin/config/telemetry", { otlp });
    expect(fields).toEqual([field]);
  });
  const checked = bed
    .gateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } })
    .then((gateway) => new AdminClient(gateway));
});
