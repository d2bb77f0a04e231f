// --update-facts from outside: what a running gateway and its successor know then, what wins, and what is refused.

import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayProcess, type ProcessGateway } from "../support/gateway-process.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const root = mkdtempSync(join(tmpdir(), "signalbox-facts-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const listed = (litellm_provider: string, input: number) => ({
  litellm_provider,
  mode: "chat",
  input_cost_per_token: input,
  output_cost_per_token: input * 4,
  max_input_tokens: 1000,
});

function listFile(name: string, entries: object): string {
  const path = join(root, name);
  writeFileSync(path, JSON.stringify(entries));
  return path;
}

async function update(folder: string, file: string) {
  const run = new GatewayProcess({ args: ["--update-facts", file] }, folder);
  return await run.finished();
}

const BACKENDS = [
  { name: "groq", type: "groq", url: "http://127.0.0.1:9/openai/v1", models: ["llama-x", "gpt-4o"], enabled: true },
  { name: "own", type: "vllm", url: "http://127.0.0.1:9", models: ["own-x"], enabled: true },
  {
    name: "priced",
    type: "cerebras",
    url: "http://127.0.0.1:9",
    models: ["mine-x"],
    model_configs: [{ id: "mine-x", metadata: { pricing: { input_tokens: 7 } } }],
  },
] as const;

async function pricesOf(gateway: ProcessGateway): Promise<Record<string, number | undefined>> {
  const { data } = (await (await gateway.fetch("/v1/models")).json()) as {
    data: { id: string; metadata?: { pricing?: { input_tokens?: number } } }[];
  };
  return Object.fromEntries(data.map(({ id, metadata }) => [id, metadata?.pricing?.input_tokens]));
}

test("a running gateway takes the facts, keeps them over a restart, and the operator's own win", async () => {
  const gateway = await bed.process({
    config: { backends: structuredClone(BACKENDS) as never, health_checks: { enabled: false } },
  });
  expect(await pricesOf(gateway)).toEqual({ "llama-x": undefined, "gpt-4o": 0.0025, "own-x": undefined, "mine-x": 7 });
  const { folder } = gateway.process;
  const list = listFile("list.json", {
    "groq/llama-x": listed("groq", 1e-6),
    "gpt-4o": listed("openai", 3e-6),
    "groq/own-x": listed("groq", 5e-6),
    "cerebras/mine-x": listed("cerebras", 5e-6),
    "novita/x": listed("novita", 5e-6),
  });
  const first = await update(folder, list);
  expect([first.exitCode, first.stderr]).toEqual([0, ""]);
  expect(first.stdout).toContain("+ groq: llama-x: input_tokens 0.001, output_tokens 0.004, context_window 1000");
  expect(first.stdout).toContain("~ gpt-4o: input_tokens 0.0025 -> 0.003");
  expect(first.stdout).toContain("4 models added, 0 changed, 0 as before; 1 of other vendors or uses are left out");

  // What groq takes for a model says nothing of one's own engine, and what the operator writes is not overruled.
  const expected = { "llama-x": 0.001, "gpt-4o": 0.003, "own-x": undefined, "mine-x": 7 };
  await waitFor("the gateway reads the facts", async () => (await pricesOf(gateway))["llama-x"] === 0.001);
  expect(await pricesOf(gateway)).toEqual(expected);
  await gateway.restart();
  expect(await pricesOf(gateway)).toEqual(expected);

  const second = await update(folder, listFile("newer.json", { "groq/llama-x": listed("groq", 2e-6) }));
  expect(second.stdout).toContain("~ groq: llama-x: input_tokens 0.001 -> 0.002");
  expect(second.stdout).toContain("0 models added, 1 changed");
  await waitFor("the gateway reads the facts", async () => (await pricesOf(gateway))["llama-x"] === 0.002);
  expect((await pricesOf(gateway))["gpt-4o"]).toBe(0.003);
});

test("nonsense is refused with the entry and the member, and nothing is written", async () => {
  const folder = mkdtempSync(join(root, "refused-"));
  mkdirSync(join(folder, "home"));
  const good = await update(folder, listFile("good.json", { "gpt-4o": listed("openai", 3e-6) }));
  expect([good.exitCode, good.stderr]).toEqual([0, ""]);
  const path = join(folder, "data/facts/models.json");
  const before = readFileSync(path, "utf8");
  const bad = await update(
    folder,
    listFile("bad.json", { "gpt-4o": listed("openai", -1), other: listed("openai", 1e-6) }),
  );
  expect(bad.exitCode).toBe(1);
  expect(bad.stderr).toContain('"gpt-4o".input_cost_per_token: must not be negative');
  expect(bad.stdout).toBe("");
  const missing = await update(folder, join(root, "nowhere.json"));
  expect([missing.exitCode, missing.stderr]).toEqual([1, expect.stringContaining("there is no such file")]);
  expect(readFileSync(path, "utf8")).toBe(before);
  expect(readdirSync(join(folder, "data/facts"))).toEqual(["models.json"]);
});

test("a facts file that was broken by hand stops a start and is named by the check", async () => {
  const folder = mkdtempSync(join(root, "broken-"));
  mkdirSync(join(folder, "home"));
  mkdirSync(join(folder, "data/facts"), { recursive: true });
  writeFileSync(join(folder, "data/facts/models.json"), '{"models": [{"id": "m", "vendor": "nobody"}]}');
  const check = await new GatewayProcess({ args: ["--check-config"] }, folder).finished();
  expect([check.exitCode, check.stdout]).toEqual([
    1,
    expect.stringContaining("models[0].vendor: unknown type of backend"),
  ]);
  const start = await new GatewayProcess({ args: [] }, folder).finished();
  expect([start.exitCode, start.stderr]).toEqual([1, expect.stringContaining("models.json")]);
  expect(existsSync(join(folder, "data/facts/models.json"))).toBe(true);
});
