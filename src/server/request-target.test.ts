// Targets on real sockets: which route they name, with which parameter, and which are not in order.

import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RawConnection } from "../../test/support/raw-http.ts";
import { createServedCheck, pathOf, type RequestTarget, readUnmatched, serveTargets } from "./request-target.ts";

const PATHS = [
  "/",
  "/v1/models",
  "/v1/models/{model...}",
  "/admin/config",
  "/admin/config/{section...}",
  "/admin/config/history",
  "/admin/config/rollback/{version...}",
  "/admin/backends/{name}",
  "/admin/backends/{name}/weight",
  "/admin/backends/all",
  "/admin/keys/{id...}",
  "/admin/keys/{id...}/rotate",
  "/sets/{set}/files/{file...}",
  "/beta/{model...}",
  "/beta/{model...}:ask",
  "/beta/{model...}:count",
  "/only/{name}:go",
];

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  ...serveTargets({ paths: PATHS, handle: async (_request, _server, target) => Response.json(target) }),
});
afterAll(() => server.stop(true));

test("each surface answers its own paths, and the first what leads nowhere", async () => {
  const surface = (name: string, paths: string[]) => ({ paths, handle: async () => new Response(name) });
  const served = serveTargets(surface("public", ["/v1/models"]), surface("admin", ["/admin/config"]));
  const both = Bun.serve({ port: 0, hostname: "127.0.0.1", ...served });
  const names = ["/v1/models", "/admin/config", "/nowhere", "/admin"].map(async (path) =>
    (await fetch(new URL(path, both.url))).text(),
  );
  expect(await Promise.all(names)).toEqual(["public", "admin", "public", "public"]);
  await both.stop(true);
});

async function read(target: string, host = "h"): Promise<Partial<RequestTarget>> {
  const connection = await RawConnection.open(server.port as number);
  connection.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const response = await connection.response();
  connection.close();
  return response.json();
}

test.each([
  ["/", "/"],
  ["/?a=/../b", "/"],
  ["/v1/models", "/v1/models"],
  ["/v1/models?x=%2e%2e//\\", "/v1/models"],
  ["http://elsewhere/v1/models", "/v1/models"],
  ["/v1/models/gpt", "/v1/models/{model...}", "gpt"],
  ["/beta/gpt:ask", "/beta/{model...}:ask", "gpt"],
  ["/beta/gpt:count?a=:ask", "/beta/{model...}:count", "gpt"],
  ["/beta/gpt:8b", "/beta/{model...}", "gpt:8b"],
  ["/beta/gpt:8b:ask", "/beta/{model...}:ask", "gpt:8b"],
  ["/beta/vendor/gpt:8b:ask", "/beta/{model...}:ask", "vendor/gpt:8b"],
  ["/beta/vendor%2Fgpt%3Aask", "/beta/{model...}:ask", "vendor/gpt"],
  ["/beta/a:ask/b:count", "/beta/{model...}:count", "a:ask/b"],
  ["/beta/:ask", "/beta/{model...}", ":ask"],
  ["/beta/gpt:asked", "/beta/{model...}", "gpt:asked"],
  ["/only/a:go", "/only/{name}:go", "a"],
  ["/v1/models/gpt?a", "/v1/models/{model...}", "gpt"],
  ["/v1/models/vendor/model:7b", "/v1/models/{model...}", "vendor/model:7b"],
  ["/v1/models/vendor%2Fmodel%3A7b%20x", "/v1/models/{model...}", "vendor/model:7b x"],
  ["/v1/models/gr%C3%BC%C3%9F", "/v1/models/{model...}", "grüß"],
  ["/v1/models/%2Fsrv%2Fmodel.gguf", "/v1/models/{model...}", "/srv/model.gguf"],
  ["/v1/models/C%3A%5Cmodel.gguf", "/v1/models/{model...}", "C:\\model.gguf"],
  ["/v1/models/a%252fb", "/v1/models/{model...}", "a%2fb"],
  ["/v1/models/...", "/v1/models/{model...}", "..."],
  [
    "/v1/models/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
    "/v1/models/{model...}",
    "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
  ],
  ["/admin/config/retry", "/admin/config/{section...}", "retry"],
  ["/admin/config/history", "/admin/config/history"],
  ["/admin/config/history/3", "/admin/config/{section...}", "history/3"],
  ["/admin/config/rollback", "/admin/config/{section...}", "rollback"],
  ["/admin/config/rollback/3", "/admin/config/rollback/{version...}", "3"],
  ["/admin/backends/a", "/admin/backends/{name}", "a"],
  ["/admin/backends/a%2Fweight", "/admin/backends/{name}", "a/weight"],
  ["/admin/backends/a/weight", "/admin/backends/{name}/weight", "a"],
  ["/admin/backends/a%2Fb/weight", "/admin/backends/{name}/weight", "a/b"],
  ["/admin/backends/all", "/admin/backends/all"],
  ["/admin/backends/all/weight", "/admin/backends/{name}/weight", "all"],
  ["/admin/keys/a/b", "/admin/keys/{id...}", "a/b"],
  ["/admin/keys/rotate", "/admin/keys/{id...}", "rotate"],
  ["/admin/keys/a/b%2Fc/rotate", "/admin/keys/{id...}/rotate", "a/b/c"],
  ["/admin/keys/a%2Frotate", "/admin/keys/{id...}", "a/rotate"],
  ["/admin/keys/a/rotate/rotate", "/admin/keys/{id...}/rotate", "a/rotate"],
  ["/sets/1/files/a/b", "/sets/{set}/files/{file...}", "1", "a/b"],
])("%s names %s with '%s'", async (target, route, ...values) => {
  const found = await read(target);
  expect(found).toMatchObject({ route });
  const names = [...route.matchAll(/\{(\w+)/g)].map(([, name]) => name as string);
  expect(found.parameters).toEqual(Object.fromEntries(names.map((name, index) => [name, values[index] as string])));
  expect(found.flaw).toBeUndefined();
});

test.each([
  ["/nothing"],
  ["/V1/MODELS"],
  ["/v1/models/"],
  ["/v1/models/a/"],
  ["/v1/models;x"],
  ["/v1/modelsx"],
  ["/a%20b"],
  ["/100%25"],
  ["/v1/models/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"],
  ["/admin/backends/a/other"],
  ["/admin/backends/a/weight/x"],
  ["/sets/1/files"],
  ["/only/a"],
  ["/only/a:went"],
  ["/only/:go"],
])("%s names nothing and is in order", async (target) => {
  const found = await read(target);
  expect([found.route, found.flaw]).toEqual([undefined, undefined]);
});

describe("not in order", () => {
  test.each([
    ["/v1/../admin/config"],
    ["/v1/..\\admin/config"],
    ["/v1\\..\\admin\\config"],
    ["/v1/%2e%2e/admin/config"],
    ["/v1/%2E./admin/config"],
    ["/./admin/config"],
    ["/admin/./config"],
    ["/admin\\config"],
    ["//admin/config"],
    ["/admin//config"],
    ["/%2fadmin/config"],
    ["/admin%2fconfig"],
    ["/%61dmin/config"],
    ["/v1%2f..%2fadmin%2fconfig"],
    ["/v1%5c..%5cadmin%5cconfig"],
    ["/%252e%252e/admin/config"],
    ["/v1%252f..%252fadmin"],
    ["/admin%252fconfig"],
    ["/%/%252e%252e/admin"],
    ["/%2525252525252525"],
    ["/v1/models/../../admin/config"],
    ["/v1/models/a/../b"],
    ["/admin/backends/a/../weight"],
    ["/admin/backends/../weight"],
    ["/admin/backends/%2e%2e/weight"],
    ["/admin/backends/a%2f..%2fb/weight"],
    ["/sets/../files/a"],
    ["/sets/1/files/a%00"],
    ["/v1/models/a/%2e%2e/b"],
    ["/v1/models/.."],
    ["/v1/models/."],
    ["/v1/models/%2e"],
    ["/v1/models/a\\b"],
    ["/v1/models/a%2f..%2fb"],
    ["/v1/models/..%5cb"],
    ["/v1/models/a//b"],
    ["/v1/models/a#b"],
    ["/v1/models/a%00b"],
    ["/v1/models/a%0d%0ab"],
    ["/v1/models/%"],
    ["/v1/models/%zz"],
    ["/v1/models/%ff"],
    ["/admin/config#x"],
    ["/%00"],
    ["/%zz"],
    ["http://h/v1/../admin/config"],
    ["http://h//admin/config"],
  ])("%s", async (target) => {
    // Those that the runtime itself refuses would have no JSON.
    expect((await read(target)).flaw).toBeString();
  });
});

test("whatever the path is, a target that names no route is out of order or leads to nothing", () => {
  const isServed = createServedCheck(PATHS);
  const piece = fc.constantFrom("/", "..", ".", "%2e", "%2f", "%5c", "%25", "2e", "2f", "admin", "config", "v1", "a");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const url = new URL(`http://h/${pieces.join("")}`).href;
      const { route, flaw, path } = readUnmatched(url, isServed);
      let plain = path;
      while (/%[0-9a-f]{2}/i.test(plain)) {
        plain = plain.replaceAll(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
      }
      const resolved = new URL(`http://h${plain.replaceAll(/[/\\]+/g, "/")}`).pathname;
      expect(route).toBeUndefined();
      if (flaw === undefined) expect(isServed(resolved)).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

test("the path of a URL is what stands between host and query", () => {
  const urls: [url: string, path: string][] = [
    ["http://host/a/b?c=/d", "/a/b"],
    ["http://host:8080/", "/"],
    ["http://host/?a", "/"],
    ["http://[::1]:80/v1/models/x%2Fy", "/v1/models/x%2Fy"],
    ["http://host//double", "//double"],
    ["/v1/models?a", "/v1/models"],
    ["//double", "//double"],
    ["host:80", "host:80"],
  ];
  expect(urls.map(([url]) => pathOf(url))).toEqual(urls.map(([, path]) => path));
});
