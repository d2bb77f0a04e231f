// Started with nothing: the demo backend answers plain and streamed, and the banner's curl line works when pasted.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ProcessGateway, runCommand, startGatewayProcess } from "../support/gateway-process.ts";
import { SECRET_MARK } from "../support/printed.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const engines: { stop(force: boolean): unknown }[] = [];
let gateway: ProcessGateway;
let model: string;

beforeAll(async () => {
  gateway = await bed.process({ config: null });
  const list = (await (await gateway.fetch("/v1/models")).json()) as { data: { id: string }[] };
  model = list.data[0]?.id ?? "none";
});

afterAll(async () => {
  for (const engine of engines) await engine.stop(true);
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
  expect(gateway.printed.stdout).toContain(gateway.url);
  expect(gateway.printed.stdout).toMatch(/demo|ollama|vllm|lm studio/i);
});

test("the curl line of the banner works when pasted into a shell", async () => {
  const lines = gateway.printed.stdout.split("\n");
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
  await using other = await startGatewayProcess({
    config: null,
    // The proxy refuses: no request of this test leaves the machine.
    environment: { OPENAI_API_KEY: `sk-${SECRET_MARK}-environment`, HTTPS_PROXY: "http://127.0.0.1:1" },
    awaitHealth: false,
  });
  const names = (await other.backends()).map(({ name }) => name);
  expect(names).toContain("openai");
  expect(other.printed.stdout.toLowerCase()).toContain("openai");
});

test("engines on the ports of this machine become backends; what is not recognised is named with its line", async () => {
  const answersWith = (body: unknown, init: ResponseInit = {}) => {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(body, init) });
    engines.push(server);
    return Number(server.url.port);
  };
  const list = (owner: string) => ({ object: "list", data: [{ id: `of-${owner}`, owned_by: owner }] });
  const ports = [
    answersWith(list("llamacpp"), { headers: { Server: "llama.cpp" } }),
    answersWith(list("sglang")),
    answersWith(list("someone")),
  ];
  const [, , stranger] = ports;
  const environment = { SIGNALBOX_DISCOVERY_PORTS: ports.join(",") };
  await using other = await startGatewayProcess({ config: null, environment, awaitHealth: false });
  const banner = other.printed.stdout;
  expect((await other.backends()).map(({ name }) => name)).toEqual(["llamacpp", "sglang"]);
  expect(banner).toContain(`  llamacpp  http://127.0.0.1:${ports[0]} (answers on 127.0.0.1:${ports[0]})`);
  expect(banner).toContain(`  127.0.0.1:${stranger} (lists models of an unknown engine)`);

  // The line is a configuration, and uses the server.
  const line = banner.split("\n").find((text) => text.startsWith("  backends: ["));
  await using configured = await startGatewayProcess({ configText: `${line?.trim()}\n` });
  const models = (await (await configured.fetch("/v1/models")).json()) as { data: { id: string }[] };
  expect(models.data.map(({ id }) => id)).toEqual(["of-someone"]);
});

test("ports that are none are refused by the name of their variable", async () => {
  const run = await runCommand({ config: null, environment: { SIGNALBOX_DISCOVERY_PORTS: "8080;9931" } });
  expect(run.exitCode).toBe(1);
  expect(run.stderr).toContain('SIGNALBOX_DISCOVERY_PORTS: expected up to 32 ports such as "8080,9931", or "none"');
});
