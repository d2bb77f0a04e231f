import { afterEach, describe, expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import { toBackend } from "../backends/backend.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { createTransport } from "../upstream/transport.ts";
import { createModelCatalog, type ModelCatalog } from "./catalog.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Bed {
  catalog: ModelCatalog;
  /** Requests by path and query. */
  asked: string[];
  warnings: string[];
  clock: { nowMs: number };
  answers: (number | undefined)[];
}

type Answer = (url: URL, count: number) => Response | Promise<Response>;

function bed(answer: Answer, backend: Partial<BackendInput> = {}, more: Partial<ConfigDocument> = {}): Bed {
  const asked: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const url = new URL(request.url);
      asked.push(url.pathname + url.search);
      return answer(url, asked.length);
    },
  });
  cleanups.push(() => server.stop(true));
  const url = `http://127.0.0.1:${server.port}`;
  const settings = documentSchema.parse({ backends: [{ name: "b", url, ...backend }], ...more });
  const time = { nowMs: 0 };
  const clock: Clock = { now: () => time.nowMs, wallTime: () => 1_700_000_000_000 + time.nowMs };
  const warnings: string[] = [];
  const log = { info() {}, warn: (_: unknown, message: string) => warnings.push(message) } as unknown as Logger;
  const answers: Bed["answers"] = [];
  const target = toBackend(settings.backends[0]!);
  const catalog = createModelCatalog({
    backend: () => target,
    settings,
    transport: createTransport(async () => new Response("{}")),
    clock,
    log,
    onAnswer: (_, models) => void answers.push(models?.length),
  });
  catalog.add("b");
  cleanups.push(() => catalog.stop());
  return { catalog, asked, warnings, clock: time, answers };
}

const models = (...ids: string[]) => Response.json({ object: "list", data: ids.map((id) => ({ id })) });
const idsOf = (catalog: ModelCatalog) => catalog.list("b").map((model) => model.id);

describe("asking", () => {
  test("configured models need no request", () => {
    const { catalog, asked } = bed(() => models(), { models: ["a", "a", "b"] });
    expect(idsOf(catalog)).toEqual(["a", "b"]);
    expect(catalog.freshness("b")).toBe("fresh");
    expect(catalog.isOlderThan("b", 0)).toBe(false);
    expect(asked).toEqual([]);
  });

  test("questions at the same time are one request", async () => {
    const { catalog, asked, answers } = bed(async () => {
      await Bun.sleep(20);
      return models("a");
    });
    expect(catalog.isCold("b")).toBe(true);
    await Promise.all(Array.from({ length: 50 }, () => catalog.renew("b")));
    expect(asked).toEqual(["/v1/models"]);
    expect(answers).toEqual([1]);
    expect(catalog.isCold("b")).toBe(false);
  });

  test("Anthropic's pages are followed", async () => {
    const pages = (url: URL) =>
      url.searchParams.has("after_id")
        ? Response.json({ data: [{ id: "c" }], has_more: false, last_id: "c" })
        : Response.json({
            data: [{ id: "a", created_at: "2023-11-14T22:13:20Z" }, { id: "b" }],
            has_more: true,
            last_id: "b",
          });
    const { catalog, asked } = bed(pages, { type: "anthropic" });
    await catalog.renew("b");
    expect(asked).toEqual(["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=b"]);
    expect(idsOf(catalog)).toEqual(["a", "b", "c"]);
    expect(catalog.list("b")[0]?.created).toBe(1_700_000_000);
  });

  test("Gemini's pages are followed", async () => {
    const pages = (url: URL) =>
      url.searchParams.has("pageToken")
        ? Response.json({ models: [{ name: "models/y" }] })
        : Response.json({ models: [{ name: "models/x" }], nextPageToken: "t&1" });
    const { catalog, asked } = bed(pages, { type: "gemini" });
    await catalog.renew("b");
    expect(asked).toEqual(["/v1beta/models?pageSize=1000", "/v1beta/models?pageSize=1000&pageToken=t%261"]);
    expect(idsOf(catalog)).toEqual(["x", "y"]);
  });

  test("pages without end are cut off", async () => {
    const { catalog, asked } = bed(() => Response.json({ data: [{ id: "a" }], has_more: true, last_id: "a" }), {
      type: "anthropic",
    });
    await catalog.renew("b");
    expect(asked.length).toBe(50);
  });

  test("LM Studio's own list is used when the other is missing", async () => {
    const answer = (url: URL) =>
      url.pathname === "/api/v1/models"
        ? Response.json({ models: [{ key: "qwen/qwen3" }] })
        : new Response("", { status: 404 });
    const { catalog } = bed(answer, { type: "lmstudio" });
    await catalog.renew("b");
    expect(idsOf(catalog)).toEqual(["qwen/qwen3"]);
  });

  test("no more than 10,000 models are kept", async () => {
    const { catalog, warnings } = bed(() => models(...Array.from({ length: 12_000 }, (_, index) => `m${index}`)));
    await catalog.renew("b");
    expect(catalog.list("b").length).toBe(10_000);
    expect(warnings.length).toBe(1);
  });

  test("a model of unknown age keeps the time at which it was first seen", async () => {
    const { catalog, clock } = bed((_, count) => (count === 1 ? models("a") : models("a", "b")));
    await catalog.renew("b");
    clock.nowMs = 60_000;
    await catalog.renew("b");
    expect(catalog.list("b").map((model) => model.created)).toEqual([1_700_000_000, 1_700_000_060]);
    expect(catalog.revision).toBe(2);
  });

  test("an engine that gives the time of the question as created does not change its list", async () => {
    const answer: Answer = (_, count) => Response.json({ data: [{ id: "a", created: 1_700_000_000 + count }] });
    const { catalog } = bed(answer);
    await catalog.renew("b");
    await catalog.renew("b");
    expect(catalog.revision).toBe(1);
  });
});

describe("failures", () => {
  test.each([
    ["HTTP 500", () => new Response("", { status: 500 })],
    ["HTTP 404", () => new Response("", { status: 404 })],
    ["not a model list", () => new Response("<html>")],
    ["not a model list", () => Response.json({ error: { message: "no" } })],
    ["longer than 16 MiB", () => new Response(new Uint8Array(17 * 1024 * 1024))],
  ] as [string, () => Response][])("%s: the last known list is kept, one warning", async (reason, failure) => {
    const { catalog, warnings, answers } = bed((_, count) => (count === 1 ? models("a") : failure()));
    await catalog.renew("b");
    await catalog.renew("b");
    await catalog.renew("b");
    expect(idsOf(catalog)).toEqual(["a"]);
    expect(warnings.length).toBe(1);
    expect(warnings[0]).toContain(reason);
    expect(answers).toEqual([1, undefined, undefined]);
  });

  test("a backend that breaks off or stays silent", async () => {
    const silent = bed(() => new Promise<Response>(() => {}), { health_check: { timeout: "30ms" } });
    await silent.catalog.renew("b");
    expect(silent.warnings).toEqual(["model list of b: no answer within 30ms"]);
    expect(silent.catalog.isCold("b")).toBe(false);
    const refused = bed(() => models(), { url: "http://127.0.0.1:1" });
    await refused.catalog.renew("b");
    expect(refused.warnings).toEqual(["model list of b: connection refused"]);
  });

  test("after a failure the list is not asked for in the caller's time, and ever more rarely", async () => {
    const { catalog, clock } = bed(() => new Response("", { status: 500 }));
    for (const waitMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      await catalog.renew("b");
      expect(catalog.freshness("b")).toBe("fresh");
      clock.nowMs += waitMs - 1;
      expect(catalog.freshness("b")).toBe("fresh");
      clock.nowMs += 1;
      expect(catalog.freshness("b")).toBe("stale");
    }
    await catalog.renew("b");
    expect(catalog.isOlderThan("b", 2_000)).toBe(false);
    clock.nowMs += 5_000;
    expect(catalog.isOlderThan("b", 2_000)).toBe(true);
  });
});

describe("age", () => {
  test("fresh, stale after the soft part of the ttl, then expired", async () => {
    const routing = { model_list_cache: { ttl: "100s", soft_ttl_ratio: 0.5 } };
    const { catalog, clock } = bed(() => models("a"), {}, { routing });
    expect(catalog.freshness("b")).toBe("expired");
    await catalog.renew("b");
    const seen = [0, 49_999, 50_000, 99_999, 100_000].map((nowMs) => {
      clock.nowMs = nowMs;
      return catalog.freshness("b");
    });
    expect(seen).toEqual(["fresh", "fresh", "stale", "stale", "expired"]);
  });

  test("an empty list is good for 5 s, doubling to 60 s, until models appear", async () => {
    let empty = true;
    const { catalog, clock } = bed(() => (empty ? models() : models("a")));
    for (const ttlMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      await catalog.renew("b");
      clock.nowMs += ttlMs - 1;
      expect(catalog.freshness("b")).toBe("fresh");
      clock.nowMs += 1;
      expect(catalog.freshness("b")).toBe("expired");
    }
    empty = false;
    await catalog.renew("b");
    clock.nowMs += 100_000;
    expect(catalog.freshness("b")).toBe("fresh");
  });
});

test("remove ends a question under way, forgets the list, and a new backend of the name begins anew", async () => {
  let isSilent = false;
  const { catalog, asked, answers } = bed(() => (isSilent ? new Promise<Response>(() => {}) : models("x")));
  await catalog.renew("b");
  isSilent = true;
  const renewing = catalog.renew("b");
  await waitFor("it is asked again", () => asked.length === 2);
  catalog.remove("b");
  catalog.add("b");
  await renewing;
  expect([idsOf(catalog), answers, catalog.isCold("b")]).toEqual([[], [1], true]);
  isSilent = false;
  await catalog.renew("b");
  expect([idsOf(catalog), answers]).toEqual([["x"], [1, 1]]);
  catalog.remove("b");
  await catalog.renew("b");
  expect([idsOf(catalog), asked.length]).toEqual([[], 3]);
});

test("stop ends a question under way", async () => {
  const { catalog, asked, answers } = bed(() => new Promise<Response>(() => {}));
  const renewing = catalog.renew("b");
  await waitFor("it is asked", () => asked.length === 1);
  await catalog.stop();
  await renewing;
  expect(answers).toEqual([]);
});
