// The scripted backend does what the scripts say; checked with a plain HTTP client, no gateway between.

import { afterAll, expect, test } from "bun:test";
import { FakeBackend } from "./fake-backend.ts";
import { chat, chatEvents, chatStream } from "./openai-answers.ts";
import { postBytes, RawConnection } from "./raw-http.ts";
import { readSse } from "./sse-reader.ts";
import { waitFor, within } from "./wait-for.ts";

const backend = new FakeBackend();
afterAll(() => backend.stop());

const post = (body = "{}", init: RequestInit = {}): Promise<Response> =>
  fetch(`${backend.url}/v1/chat/completions`, { method: "POST", body, ...init });

async function failureOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error);
  }
  return "none";
}

test("plain answers, keep-alive and recorded bytes", async () => {
  backend.reset(chat("one"));
  const body = '{ "z": 1, "a": 9007199254740993 }';
  expect(((await (await post(body)).json()) as { object: string }).object).toBe("chat.completion");
  await (await post()).text();
  expect(backend.requests.map((request) => request.text)).toEqual([body, "{}"]);
  expect(backend.requests[0]?.answerComplete).toBe(true);
  expect(new Set(backend.requests.map((request) => request.connectionId)).size).toBe(1);
});

test("chunked request bodies are put together", async () => {
  backend.reset();
  const pieces = new ReadableStream({
    async start(controller) {
      for (const piece of ["one ", "two ", "three"]) {
        controller.enqueue(new TextEncoder().encode(piece));
        await Bun.sleep(1);
      }
      controller.close();
    },
  });
  await (await fetch(`${backend.url}/x`, { method: "POST", body: pieces })).text();
  expect(backend.lastRequest.text).toBe("one two three");
});

test("streams arrive whole, also split into single bytes", async () => {
  const expected = chatEvents(["a", "é", "語"]).join("");
  for (const chunkBytes of [1, 7, 10_000]) {
    backend.reset(chatStream(["a", "é", "語"], {}, { chunkBytes }));
    const reading = await readSse(await post());
    expect(reading.text).toBe(expected);
    expect(reading.end).toBe("clean");
    expect(reading.data.at(-1)).toBe("[DONE]");
    expect(reading.rest).toBe("");
  }
});

test("a broken stream is broken by reset and by FIN, with exactly the bytes before", async () => {
  for (const breakWith of ["fin", "reset"] as const) {
    backend.reset(chatStream(["a", "b"], {}, { breakAfterBytes: 30, breakWith, betweenChunksMs: 5 }));
    const connection = await RawConnection.open(backend.port);
    connection.write(postBytes("/v1/chat/completions", "{}"));
    await within("the connection closes", connection.closed);
    expect(connection.partialBody().complete).toBe(false);
    if (breakWith === "fin") expect(connection.partialBody().body.length).toBe(30);
    expect(backend.lastRequest.answerComplete).toBe(false);
  }
});

test("reset, wrong length, raw bytes and refusal are failures of the client", async () => {
  backend.reset({ breakWith: "reset" });
  expect(await failureOf(post())).toBe("ECONNRESET");
  backend.reset({ body: "{}", contentLength: 100 });
  expect(await failureOf(post().then((response) => response.text()))).not.toBe("none");
  backend.reset({ rawBytes: "" });
  expect(await failureOf(post())).not.toBe("none");
  backend.stop();
  expect(await failureOf(post())).toBe("ECONNREFUSED");
  backend.start();
  backend.reset(chat("again"));
  expect((await post()).status).toBe(200);
});

test("a client that leaves is noticed", async () => {
  backend.reset({ hang: true });
  const controller = new AbortController();
  const failed = failureOf(post("{}", { signal: controller.signal }));
  await waitFor("the request arrives", () => backend.requests.length === 1);
  controller.abort();
  await failed;
  await within("the connection closes", backend.lastRequest.closed);
  expect(backend.lastRequest.isClosed).toBe(true);
  expect(backend.lastRequest.answerComplete).toBe(false);
});

test("large answers wait for a slow reader instead of being lost", async () => {
  const body = "x".repeat(8 * 1024 * 1024);
  backend.reset({ body });
  expect((await (await post()).text()).length).toBe(body.length);
});
