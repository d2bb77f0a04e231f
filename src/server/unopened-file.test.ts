// Files of answers that are gone, or cannot be read, in the moment in which the runtime sends them.

import { expect, test } from "bun:test";
import { serveTargets } from "./request-target.ts";
import { answerForUnopenedFile } from "./unopened-file.ts";

test("a file that is gone is a 404 in the usual shape, and its place is not told", async () => {
  const handle = async () => new Response(Bun.file("/nowhere/sekret"));
  await using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    ...serveTargets({ paths: ["/a"], handle }),
  } as never);
  const response = await fetch(`${server.url}a`);
  expect(response.status).toBe(404);
  const text = await response.text();
  expect(text).not.toContain("sekret");
  const { error } = JSON.parse(text);
  expect(error).toMatchObject({ type: "invalid_request_error", code: "file_resolution_failed", param: "file_id" });
  expect(error.request_id).toMatch(/./);
});

test.each([
  ["EACCES", 503, "storage_unavailable"],
  [undefined, 500, 500],
])("trouble with the code %p", async (found, status, code) => {
  const response = answerForUnopenedFile(Object.assign(new Error("sekret"), { code: found }));
  expect(response.status).toBe(status);
  const text = await response.text();
  expect(JSON.parse(text).error.code).toBe(code);
  expect(text).not.toContain("sekret");
});
