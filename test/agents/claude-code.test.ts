// Claude Code as a client of the running command: it works on a task with tools while backends of other formats answer it.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLAUDE_CODE, INSTALL_TIMEOUT_MS, installedProgram } from "../../scripts/npm-programs.ts";
import { AgentWorkplace, oneTool, refusals } from "../support/agent-workplace.ts";
import { startStrictChat } from "../support/strict/chat.ts";
import { startStrictMessages } from "../support/strict/messages.ts";
import { answer, call, type JsonObject, text, thinking } from "../support/strict/script.ts";
import type { StrictBackend } from "../support/strict/server.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const ended: (() => void)[] = [];
let claude = "";

beforeAll(async () => {
  claude = await installedProgram(CLAUDE_CODE);
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
  subtype?: string;
  result?: string;
  is_error?: boolean;
  num_turns?: number;
  message?: { content: { type: string; content?: unknown; text?: string; thinking?: string }[] };
}

interface Task {
  /** The model that answers for every name that Claude Code asks for. */
  model: string;
  prompt?: string;
  files?: Record<string, string>;
  args?: readonly string[];
}

async function work(backend: StrictBackend, type: "vllm" | "anthropic", task: Task) {
  const workplace = new AgentWorkplace();
  ended.push(
    () => workplace.close(),
    () => backend.stop(),
  );
  for (const [name, content] of Object.entries(task.files ?? {})) writeFileSync(join(workplace.project, name), content);
  const key = type === "vllm" ? {} : { api_key: "sk-sekret-backend" };
  const gateway = await bed.gateway({
    config: {
      model_aliases: { default: task.model },
      backends: [{ name: "strict", type, url: backend.url, models: [task.model], ...key }],
    },
  });
  const run = await workplace.run(
    [
      claude,
      ...["--print", task.prompt ?? "Write the marker into made.txt."],
      ...["--output-format", "stream-json", "--verbose"],
      ...["--allowedTools", "Bash,Read"],
      ...(task.args ?? []),
    ],
    {
      CLAUDE_CONFIG_DIR: join(workplace.home, ".claude"),
      ANTHROPIC_BASE_URL: `${gateway.url}/anthropic`,
      ANTHROPIC_API_KEY: "not-checked-here",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
    },
  );
  const events = run.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event);
  const made = join(workplace.project, "made.txt");
  return { run, events, workplace, made: existsSync(made) ? readFileSync(made, "utf8") : undefined };
}

type Work = Awaited<ReturnType<typeof work>>;

function expectDone({ run, events, workplace }: Work, backend: StrictBackend): void {
  expect(refusals(backend)).toEqual([]);
  expect(events.at(-1)).toMatchObject({ type: "result", subtype: "success", is_error: false, result: FINAL });
  expect(run.exitCode).toBe(0);
  expect(workplace.outsiders).toEqual([]);
}

interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: { id: string; function: { name: string } }[];
  tool_call_id?: string;
}

function expectToolMessage(backend: StrictBackend, tool: string, output: string): void {
  const messages = backend.last.body.messages as ChatMessage[];
  const asked = messages.findLast((message) => message.role === "assistant");
  const result = messages.findLast((message) => message.role === "tool");
  expect(asked?.tool_calls?.map((each) => each.function.name)).toEqual([tool]);
  expect(result?.tool_call_id).toBe(asked?.tool_calls?.[0]?.id as string);
  expect(JSON.stringify(result?.content)).toContain(output);
}

test("a chat backend: a command runs, and its output reaches the model", async () => {
  const script = oneTool(FINAL, call("Bash", { command: COMMAND, description: "Writes the marker" }), OUTPUT);
  const backend = await startStrictChat(script, { dialect: "local", models: ["local-model"] });
  const done = await work(backend, "vllm", { model: "local-model" });
  expectDone(done, backend);
  expect(done.made).toBe(`${OUTPUT}\n`);
  expectToolMessage(backend, "Bash", OUTPUT);
});

test("a chat backend: a file is read, with thoughts around it", async () => {
  const backend = await startStrictChat(
    (body) => {
      const isRead = (body.messages as ChatMessage[]).some(({ role }) => role === "tool");
      if (isRead) return answer(thinking("That was all."), text(FINAL));
      const path = /working directory: (\S+?)(?:\\n|\s)/i.exec(JSON.stringify(body.messages))?.[1] ?? "";
      return answer(thinking("I look into the file."), call("Read", { file_path: join(path, "note.txt") }));
    },
    { dialect: "local", models: ["local-model"] },
  );
  const done = await work(backend, "vllm", { model: "local-model", files: { "note.txt": "written by hand 4711\n" } });
  expectDone(done, backend);
  expectToolMessage(backend, "Read", "written by hand 4711");
  const thoughts = done.events.flatMap(({ message }) => message?.content ?? []).map((block) => block.thinking ?? "");
  expect(thoughts.join("")).toContain("I look into the file.");
});

test("a chat backend: a tool that fails is told as such", async () => {
  const script = oneTool(
    FINAL,
    call("Bash", { command: "echo broken-$((40 + 2)); exit 3", description: "Fails" }),
    "broken-42",
  );
  const backend = await startStrictChat(script, { dialect: "local", models: ["local-model"] });
  const done = await work(backend, "vllm", { model: "local-model" });
  expectDone(done, backend);
  expectToolMessage(backend, "Bash", "broken-42");
});

test("a messages backend gets what Claude Code wrote, thoughts of its own included", async () => {
  const backend = await startStrictMessages(
    (body) =>
      JSON.stringify(body).includes(OUTPUT)
        ? answer(text(FINAL))
        : answer(thinking("A marker."), call("Bash", { command: COMMAND, description: "Writes the marker" })),
    { models: ["claude-opus-4-6"] },
  );
  const done = await work(backend, "anthropic", { model: "claude-opus-4-6", args: ["--model", "claude-opus-4-6"] });
  expectDone(done, backend);
  expect(done.made).toBe(`${OUTPUT}\n`);
  const messages = backend.last.body.messages as { role: string; content: JsonObject[] }[];
  const turn = messages.findLast(({ role }) => role === "assistant");
  expect(turn?.content.map(({ type }) => type)).toEqual(["thinking", "tool_use"]);
});
