// Every path that is served, in every disguise: none is answered as if it were the path.

import { beforeAll, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { type OpenApiOperation, operationsOf, samplePath } from "../support/openapi.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { DISGUISES, type Disguise, OTHER_PATHS } from "./disguises.ts";

const bed = createTestBed();
const backend = bed.backend({ models: ["m"] });
let gateway: Gateway;
let operations: OpenApiOperation[];

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "b", type: "vllm", url: backend.url, api_key: "sekret-backend" }],
      metrics: { endpoint: "/internal/metrics" },
    },
  });
  operations = operationsOf((await (await gateway.fetch("/openapi.json")).json()) as object);
  expect(operations.length).toBeGreaterThan(50);
});

interface Asked {
  method: string;
  target: string;
  status: number;
}

async function ask(method: string, target: string): Promise<Asked> {
  const connection = await RawConnection.open(gateway.port);
  const body = method === "GET" ? "" : "{}";
  connection.write(
    `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const { status } = await connection.response();
  connection.close();
  return { method, target, status };
}

/** What the documented path does not say: where metrics are, and what stands in for parameters. */
function pathOf({ path }: OpenApiOperation): string {
  return samplePath(path === "/metrics" ? "/internal/metrics" : path, { model: "m", name: "b" });
}

const askAll = (asked: readonly OpenApiOperation[], of: Disguise["of"]) =>
  Promise.all(asked.map((operation) => ask(operation.method, of(pathOf(operation)))));

/** Those that look different in the disguise; "/" has no letters. */
const askInDisguise = ({ of }: Disguise) =>
  askAll(
    operations.filter((operation) => of(pathOf(operation)) !== pathOf(operation)),
    of,
  );

test("plainly written, every path leads somewhere", async () => {
  // See admin-events.test.ts and oidc.test.ts.
  const elsewhere = ["/admin/events", "/admin/oidc/sign-in", "/admin/oidc/callback"];
  const safe = operations.filter(
    ({ method, path }) => method === "GET" && !path.includes("{") && !elsewhere.includes(path),
  );
  const answers = await askAll(safe, (path) => path);
  expect(answers.filter(({ status }) => [404, 405].includes(status))).toEqual([]);
});

describe("in disguise", () => {
  test.each(DISGUISES.map((disguise) => [disguise.name, disguise] as const))("%s: 400", async (_, disguise) => {
    const answers = await askInDisguise(disguise);
    expect(answers.filter(({ status }) => status !== 400)).toEqual([]);
  });

  test.each(OTHER_PATHS.map((disguise) => [disguise.name, disguise] as const))("%s: nothing", async (_, disguise) => {
    const answers = await askInDisguise(disguise);
    expect(answers.filter(({ status }) => ![400, 404, 405].includes(status))).toEqual([]);
  });
});

test("none of it has changed anything, or reached a backend", async () => {
  expect((await gateway.fetch("/admin/config")).headers.get("etag")).toBe('"1"');
  expect(backend.requests.filter(({ method }) => method === "POST")).toEqual([]);
});
