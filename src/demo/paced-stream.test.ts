// The pace of streams, and that they stop at once without leaving a timer.

import { describe, expect, test } from "bun:test";
import { createDemoBackend } from "./backend.ts";
import { pacedEventStream } from "./paced-stream.ts";

/** Longer than the test runs: a step that comes after a pause of this length never comes. */
const NEVER_MS = 600_000;

function reader(steps: string[], delayMs: number, signal = new AbortController().signal) {
  const iterator = steps.values();
  return { stream: pacedEventStream(iterator, { delayMs, signal }), left: () => [...iterator].length };
}

describe("pacedEventStream", () => {
  test("gives every step, with and without pauses, and closes with the last one", async () => {
    expect(await new Response(reader(["a", "b", "c"], 0).stream).text()).toBe("abc");
    const startedAt = performance.now();
    expect(await new Response(reader(["a", "b", "c"], 20).stream).text()).toBe("abc");
    expect(performance.now() - startedAt).toBeGreaterThan(35);
    expect(await new Response(reader(["a"], NEVER_MS).stream).text()).toBe("a");
    expect(await new Response(reader([], NEVER_MS).stream).text()).toBe("");
  });

  test("an abort fails the waiting read at once", async () => {
    const controller = new AbortController();
    const { stream, left } = reader(Array(50).fill("x"), NEVER_MS, controller.signal);
    const streamReader = stream.getReader();
    await streamReader.read();
    const waiting = streamReader.read();
    const reason = new Error("gone");
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(left()).toBeGreaterThan(40);
  });

  test("an abort before the start fails the first read", async () => {
    const streamReader = reader(["a"], 0, AbortSignal.abort(new Error("early"))).stream.getReader();
    await expect(streamReader.read()).rejects.toThrow("early");
  });

  test("a cancelled body asks for nothing more", async () => {
    const { stream, left } = reader(Array(50).fill("x"), 0);
    const streamReader = stream.getReader();
    await streamReader.read();
    await streamReader.cancel();
    expect(left()).toBeGreaterThan(40);
  });

  test("runs only as far ahead as the reader", async () => {
    const { stream, left } = reader(Array(50).fill("x"), 0);
    await stream.getReader().read();
    await Bun.sleep(0);
    expect(left()).toBeGreaterThan(40);
  });
});

describe("the demo backend", () => {
  const request = (signal: AbortSignal) =>
    new Request("http://demo.invalid/v1/chat/completions", {
      method: "POST",
      body: JSON.stringify({ model: "demo", stream: true, messages: [{ role: "user", content: "Hi" }] }),
      signal,
    });

  test("follows the signal of the request", async () => {
    const controller = new AbortController();
    const response = await createDemoBackend({ wordDelayMs: NEVER_MS })(request(controller.signal));
    const streamReader = (response.body as ReadableStream<Uint8Array>).getReader();
    await streamReader.read();
    const waiting = streamReader.read();
    controller.abort();
    await expect(waiting).rejects.toThrow("abort");
  });

  test("rejects a request that is already aborted, as fetch does", async () => {
    await expect(createDemoBackend()(request(AbortSignal.abort()))).rejects.toThrow("abort");
  });

  test("leaves no timer behind that would keep a process alive", async () => {
    const script = `
      const { createDemoBackend } = await import(${JSON.stringify(new URL("./backend.ts", import.meta.url).href)});
      const demo = createDemoBackend({ wordDelayMs: ${NEVER_MS} });
      const ask = (signal) => demo(new Request("http://demo.invalid/v1/chat/completions", {
        method: "POST", signal,
        body: JSON.stringify({ model: "demo", stream: true, messages: [{ role: "user", content: "Hi" }] }),
      }));
      const cancelled = (await ask(new AbortController().signal)).body.getReader();
      await cancelled.read();
      void cancelled.read().catch(() => {});
      await cancelled.cancel();
      const controller = new AbortController();
      const aborted = (await ask(controller.signal)).body.getReader();
      await aborted.read();
      const waiting = aborted.read().catch(() => {});
      controller.abort();
      await waiting;`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "ignore", stderr: "pipe" });
    expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
  }, 10_000);
});
