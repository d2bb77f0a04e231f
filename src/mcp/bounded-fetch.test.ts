// fetch with bounds: of a body, of each event of a stream, of time, and of where it goes.

import { afterEach, expect, test } from "bun:test";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { createBoundedFetch } from "./bounded-fetch.ts";

const servers: Bun.Server<undefined>[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop(true)));
});

/** Each piece in a write of its own. */
function serve(type: string, pieces: readonly string[], endless = false): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            for (const piece of pieces) {
              controller.enqueue(new TextEncoder().encode(piece));
              await Bun.sleep(1);
            }
            if (!endless) controller.close();
          },
        }),
        { headers: { "Content-Type": type } },
      ),
  });
  servers.push(server);
  return `http://127.0.0.1:${server.port}/`;
}

const bounded = createBoundedFetch({ answerWithinMs: 300, maxBytes: 50 });
const post = { method: "POST", body: "{}" };

test("a body may be as large as the bound and no larger", async () => {
  expect(await (await bounded(serve("application/json", ["x".repeat(25), "x".repeat(25)]), post)).text()).toHaveLength(
    50,
  );
  const text = bounded(serve("application/json", ["x".repeat(25), "x".repeat(26)]), post).then((response) =>
    response.text(),
  );
  await expect(text).rejects.toThrow("the answer is larger than 50 bytes");
});

test.each(["\n", "\r\n", "\r"])("of a stream of events each may, wherever it is cut (%j)", async (end) => {
  const event = `data: ${"x".repeat(30)}${end}${end}`;
  for (const pieces of [
    Array<string>(10).fill(event),
    Array<string>(10)
      .fill(event)
      .flatMap((text) => [text.slice(0, -end.length), end]),
    Array<string>(4)
      .fill(event)
      .flatMap((text) => [...text]),
  ]) {
    const response = await bounded(serve("text/event-stream; charset=utf-8", pieces));
    expect(await response.text()).toBe(pieces.join(""));
  }
  const large = await bounded(serve("text/event-stream", [event, `data: ${"x".repeat(60)}`]));
  await expect(large.text()).rejects.toThrow("the answer is larger than 50 bytes");
});

test("an answer to a message has to end in time, a stream that was asked for has not", async () => {
  const late = bounded(serve("application/json", ["x"], true), post).then((response) => response.text());
  await expect(within("it ends", late, 2_000)).rejects.toThrow("took too long");
  const reader = (await bounded(serve("text/event-stream", ["a"], true))).body?.getReader();
  expect((await reader?.read())?.value).toHaveLength(1);
  let isOver = false;
  void reader?.read().then(
    () => {
      isOver = true;
    },
    () => {
      isOver = true;
    },
  );
  await Bun.sleep(500);
  expect(isOver).toBe(false);
});

test("the caller's signal ends it", async () => {
  const abort = new AbortController();
  const response = await bounded(serve("text/event-stream", ["a"], true), { signal: abort.signal });
  const text = response.text().then(
    () => "ended",
    () => "failed",
  );
  abort.abort();
  expect(await within("it ends", text)).toBe("failed");
});

test.each(["file:///etc/passwd", "data:text/plain,x", "ftp://127.0.0.1/"])("%s is no place to go", async (url) => {
  await expect(bounded(url)).rejects.toThrow("neither http nor https");
});

test("answers without a body pass", async () => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(null, { status: 204 }) });
  servers.push(server);
  await waitFor("an answer", async () => (await bounded(`http://127.0.0.1:${server.port}/`, post)).status === 204);
});
