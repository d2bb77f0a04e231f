import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { withoutListener } from "./later-request.ts";
import { routePaths } from "./path-router.ts";
import { type RequestTarget, type Surface, serveTargets } from "./request-target.ts";

const surface: Surface = {
  paths: [
    "/",
    "/v1/models",
    "/v1/models/{model...}",
    "/v1/files/{file}",
    "/v1/files/{file}/content",
    "/v1beta/models/{model...}:generateContent",
    "/v1beta/models/{model...}",
    "/admin/keys/{id}/rotate",
  ],
  handle: async (_request, _server, target) => Response.json(target),
};
const served = serveTargets(surface);
const listener = Bun.serve({ port: 0, hostname: "127.0.0.1", ...served });
afterAll(() => listener.stop(true));

const route = routePaths(served);

/** What is asked for at the runtime's own router, and here. */
async function both(path: string): Promise<[RequestTarget, RequestTarget]> {
  const url = `http://127.0.0.1:${listener.port}${path}`;
  const byRuntime = (await (await fetch(url)).json()) as RequestTarget;
  return [byRuntime, (await (await route(new Request(url), withoutListener(undefined))).json()) as RequestTarget];
}

const SEGMENTS = [
  "v1",
  "v1beta",
  "models",
  "files",
  "content",
  "admin",
  "keys",
  "rotate",
  "a b",
  "a%2Fb",
  "%zz",
  "x:generateContent",
  "é",
  "",
  "m",
];

test("a request without a listener gets to the path that the runtime would lead it to, with the same parameters", async () => {
  for (const path of ["/", "/v1/models", "/v1/models/a/b", "/v1beta/models/x:generateContent?key=1"]) {
    const [byRuntime, own] = await both(path);
    expect(own).toEqual(byRuntime);
  }
  const targets = fc.tuple(
    fc.constantFrom("v1", "v1beta", "admin"),
    fc.array(fc.constantFrom(...SEGMENTS), { maxLength: 6 }),
  );
  await fc.assert(
    fc.asyncProperty(targets, async ([first, others]) => {
      const segments = [first, ...others];
      const [byRuntime, own] = await both(`/${segments.join("/")}`);
      // The parameters of a target that is refused are not read.
      if (byRuntime.flaw === undefined) expect(own).toEqual(byRuntime);
      else expect([own.flaw, own.path]).toEqual([byRuntime.flaw, byRuntime.path]);
    }),
    { numRuns: 300 },
  );
});

test("what a handler throws becomes the answer of the listener's own error handler", async () => {
  const failing = routePaths({
    fetch: async () => {
      throw new Error("broken");
    },
    error: () => new Response("told", { status: 500 }),
  });
  const response = await failing(new Request("http://x/"), withoutListener(undefined));
  expect([response.status, await response.text()]).toEqual([500, "told"]);
});
