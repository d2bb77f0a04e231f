// Started with nothing: the demo backend answers plain and streamed, and the banner's curl line works when pasted.

import { beforeAll, expect, test } from "bun:test";
import { readSse } from "../support/sse-reader.ts";
import { type Gateway, SECRET_MARK, startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
let gateway: Gateway;
let model: string;

beforeAll(async () => {
  gateway = await bed.gateway({ config: null });
  const list = (await (await gateway.fetch("/v1/models")).json()) as { data: { id: string }[] };
  model = list.data[0]?.id ?? "none";
});

interface ChatAnswer {
  object: string;
  choices: { message: { role: string; content: string }; finish_reason: string }[];
  usage: { total_tokens: number };
}

test("a chat is answered at once", async () => {
  const response = await gateway.chat({ model });
  expect(response.status).toBe(200);
  const answer = (await response.json()) as ChatAnswer;
  expect(answer.object).toBe("chat.completion");
  expect(answer.choices[0]?.message.role).toBe("assistant");
  expect(answer.choices[0]?.message.content).not.toBe("");
  expect(answer.usage.total_tokens).toBeGreaterThan(0);
});

test("a chat is streamed, ends with a finish reason and [DONE]", async () => {
  const response = await gateway.chat({ model, stream: true });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const reading = await readSse(response);
  expect(reading.end).toBe("clean");
  expect(reading.rest).toBe("");
  expect(reading.data.at(-1)).toBe("[DONE]");
  const chunks = reading.data.slice(0, -1).map((data) => JSON.parse(data));
  expect(chunks[0].choices[0].delta.role).toBe("assistant");
  expect(chunks.some((chunk) => chunk.choices[0]?.finish_reason === "stop")).toBe(true);
});

test("the banner tells what serves and where", () => {
  expect(gateway.process.stdout).toContain(gateway.url);
  expect(gateway.process.stdout).toMatch(/demo|ollama|vllm|lm studio/i);
});

test("the curl line of the banner works when pasted into a shell", async () => {
  const lines = gateway.process.stdout.split("\n");
  const start = lines.findIndex((line) => line.trim().startsWith("curl "));
  expect(start).toBeGreaterThanOrEqual(0);
  let end = start;
  while (lines[end]?.trimEnd().endsWith("\\")) end += 1;
  const command = lines.slice(start, end + 1).join("\n");
  const shell = Bun.spawn(["sh", "-c", command], { stdout: "pipe", stderr: "pipe" });
  const [output, errors, exitCode] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
    shell.exited,
  ]);
  if (exitCode !== 0) throw new Error(`curl failed with ${exitCode}: ${errors}\n${command}`);
  expect(output).toContain("choices");
  expect(output).not.toContain('"error"');
});

test("it is ready, and its only backend is healthy", async () => {
  expect((await gateway.fetch("/readyz")).status).toBe(200);
  const backends = await gateway.backends();
  expect(backends.length).toBeGreaterThan(0);
  expect(backends.some((backend) => backend.is_healthy)).toBe(true);
});

test("keys in the environment become backends, and are never printed", async () => {
  await using other = await startGateway({
    config: null,
    // The proxy refuses: no request of this test leaves the machine.
    environment: { OPENAI_API_KEY: `sk-${SECRET_MARK}-environment`, HTTPS_PROXY: "http://127.0.0.1:1" },
    awaitHealth: false,
  });
  const names = (await other.backends()).map(({ name }) => name);
  expect(names).toContain("openai");
  expect(other.process.stdout.toLowerCase()).toContain("openai");
});
