// Codex as a client of the running command: it works on a task with tools while backends of other formats answer it.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CODEX, INSTALL_TIMEOUT_MS, installedProgram } from "../../scripts/npm-programs.ts";
import { AgentWorkplace, oneTool, refusals } from "../support/agent-workplace.ts";
import { startStrictChat } from "../support/strict/chat.ts";
import { startStrictMessages } from "../support/strict/messages.ts";
import { startStrictResponses } from "../support/strict/responses.ts";
import { call, type JsonObject } from "../support/strict/script.ts";
import type { StrictBackend } from "../support/strict/server.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const ended: (() => void)[] = [];
let codex = "";

beforeAll(async () => {
  codex = await installedProgram(CODEX);
}, INSTALL_TIMEOUT_MS);

afterAll(() => {
  for (const end of ended) end();
});

const FINAL = "The marker stands in made.txt.";
/** Computed by the shell, so that it is nowhere but in the tool's output. */
const COMMAND = "echo marker-$((40 + 2)) > made.txt; cat made.txt";
const OUTPUT = "marker-42";

interface Event {
  type: string;
  item?: { type: string; text?: string; aggregated_output?: string; exit_code?: number | null; message?: string };
}

async function work(backend: StrictBackend, type: "vllm" | "anthropic" | "openai", model: string) {
  const workplace = new AgentWorkplace();
  ended.push(
    () => workplace.close(),
    () => backend.stop(),
  );
  const key = type === "vllm" ? {} : { api_key: "sk-sekret-backend" };
  const gateway = await bed.gateway({
    config: { backends: [{ name: "strict", type, url: backend.url, models: [model], ...key }] },
  });
  const provider = `{ name = "Signalbox", base_url = "${gateway.url}/v1", wire_api = "responses", env_key = "SIGNALBOX_API_KEY" }`;
  const settings = ['model_provider="signalbox"', `model_providers.signalbox=${provider}`];
  const run = await workplace.run(
    [
      codex,
      ...["exec", "--json", "--skip-git-repo-check", "--ephemeral", "--sandbox", "danger-full-access"],
      ...["--model", model],
      ...settings.flatMap((setting) => ["-c", setting]),
      "Write the marker into made.txt.",
    ],
    { CODEX_HOME: workplace.home, SIGNALBOX_API_KEY: "not-checked-here" },
  );
  const events = run.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event);
  const items = events.flatMap(({ type: name, item }) => (name === "item.completed" && item ? [item] : []));
  const made = join(workplace.project, "made.txt");
  return { run, items, workplace, made: existsSync(made) ? readFileSync(made, "utf8") : undefined };
}

type Work = Awaited<ReturnType<typeof work>>;

function expectDone({ run, items }: Work, backend: StrictBackend): void {
  expect(refusals(backend)).toEqual([]);
  expect(items.filter(({ type }) => type === "agent_message").map((item) => item.text)).toEqual([FINAL]);
  expect(run.stdout).toContain("turn.completed");
  expect(run.exitCode).toBe(0);
}

interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: { id: string; function: { name: string } }[];
  tool_call_id?: string;
}

function messagesOf(backend: StrictBackend): ChatMessage[] {
  return backend.last.body.messages as ChatMessage[];
}

function toolNames(backend: StrictBackend): string[] {
  return (backend.last.body.tools as { function: { name: string } }[]).map((tool) => tool.function.name);
}

describe("a chat backend", () => {
  test("a command runs, and its output reaches the model", async () => {
    const script = oneTool(FINAL, call("exec_command", { cmd: COMMAND }), OUTPUT);
    const backend = await startStrictChat(script, { dialect: "local", models: ["local-model"] });
    const done = await work(backend, "vllm", "local-model");
    expectDone(done, backend);
    expect(done.made).toBe(`${OUTPUT}\n`);
    const ran = done.items.find(({ type }) => type === "command_execution");
    expect(ran).toMatchObject({ aggregated_output: `${OUTPUT}\n`, exit_code: 0 });
    const asked = messagesOf(backend).at(-2);
    const result = messagesOf(backend).at(-1);
    expect(asked?.tool_calls?.map((each) => each.function.name)).toEqual(["exec_command"]);
    expect(result?.role).toBe("tool");
    expect(result?.tool_call_id).toBe(asked?.tool_calls?.[0]?.id as string);
    expect(result?.content).toContain(OUTPUT);
    // Its tools in namespaces are functions here, and those that only its vendor runs are left out.
    expect(toolNames(backend)).toContain("multi_agent_v1__spawn_agent");
    expect(toolNames(backend)).not.toContain("web_search");
  });

  test("a tool in a namespace is called by its own name", async () => {
    const script = oneTool(FINAL, call("multi_agent_v1__close_agent", { target: "nobody-7" }), "nobody-7");
    const backend = await startStrictChat(script, { dialect: "local", models: ["local-model"] });
    const done = await work(backend, "vllm", "local-model");
    expectDone(done, backend);
    const result = messagesOf(backend).at(-1);
    expect(result?.role).toBe("tool");
    // It knows the tool, and there is no such agent.
    expect(result?.content).not.toMatch(/unsupported|unknown (tool|function)/i);
  });

  test("a patch as free-form text changes a file", async () => {
    const patch = "*** Begin Patch\n*** Add File: made.txt\n+patched by hand\n*** End Patch\n";
    const script = oneTool(FINAL, call("apply_patch", { input: patch }), '"role":"tool"');
    const backend = await startStrictChat(script, { dialect: "local", models: ["gpt-5.5"] });
    const done = await work(backend, "vllm", "gpt-5.5");
    expectDone(done, backend);
    expect(done.made).toBe("patched by hand\n");
    expect(messagesOf(backend).at(-1)?.content).toContain("made.txt");
  });

  test("free-form code in a namespace that an item brings", async () => {
    const code = `text(await tools.exec_command({ cmd: ${JSON.stringify(COMMAND)} }));`;
    const script = oneTool(FINAL, call("functions__exec", { input: code }), OUTPUT);
    const backend = await startStrictChat(script, { dialect: "local", models: ["gpt-6.1-sol"] });
    const done = await work(backend, "vllm", "gpt-6.1-sol");
    expectDone(done, backend);
    expect(done.made).toBe(`${OUTPUT}\n`);
    expect(messagesOf(backend).at(-1)).toMatchObject({ role: "tool" });
    expect(JSON.stringify(messagesOf(backend).at(-1)?.content)).toContain(OUTPUT);
  });
});

test("a messages backend", async () => {
  const script = oneTool(FINAL, call("exec_command", { cmd: COMMAND }), OUTPUT);
  const backend = await startStrictMessages(script, { models: ["claude-sonnet-4-5"] });
  const done = await work(backend, "anthropic", "claude-sonnet-4-5");
  expectDone(done, backend);
  expect(done.made).toBe(`${OUTPUT}\n`);
  const last = (backend.last.body.messages as { role: string; content: JsonObject[] }[]).at(-1);
  expect(last?.role).toBe("user");
  expect(last?.content.find((block) => block.type === "tool_result")).toBeDefined();
});

test("a responses backend gets what Codex wrote", async () => {
  const script = oneTool(FINAL, call("exec_command", { cmd: COMMAND }), OUTPUT);
  const backend = await startStrictResponses(script, { models: ["gpt-5"] });
  const done = await work(backend, "openai", "gpt-5");
  expectDone(done, backend);
  expect(done.made).toBe(`${OUTPUT}\n`);
  const input = backend.last.body.input as JsonObject[];
  expect(input.at(-1)).toMatchObject({ type: "function_call_output" });
});
