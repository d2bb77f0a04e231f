// The life of sessions: limits, idle ones, choices, what is stored and shown again.

import { afterEach, expect, test } from "bun:test";
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AcpBed, type AcpBedOptions, add, plainTurn, temporaryFolder } from "../../test/support/acp-bed.ts";
import { checkHistory } from "../../test/support/agent-turns.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import type { TurnEnd, TurnParts } from "../agent/agent.ts";
import type { JsonObject } from "../lib/json.ts";
import type { McpServers } from "../mcp/servers.ts";
import { readSessionFile } from "./storage/session-file.ts";

const beds: AcpBed[] = [];
const folders: ReturnType<typeof temporaryFolder>[] = [];

function open(options?: AcpBedOptions): AcpBed {
  const bed = new AcpBed(options);
  beds.push(bed);
  return bed;
}

function folder(): string {
  const made = temporaryFolder();
  folders.push(made);
  return join(made.path, "sessions");
}

async function stopAll(): Promise<void> {
  for (const bed of beds.splice(0)) {
    await bed.server.stop();
    expect(bed.complaints()).toEqual([]);
  }
}

afterEach(async () => {
  await stopAll();
  for (const made of folders.splice(0)) made.remove();
});

/** Reads a file with a tool, then answers. */
async function turnWithTool(parts: TurnParts): Promise<TurnEnd> {
  const { editor } = parts;
  const call = { toolCallId: "call-1", title: "Read /project/a.ts", kind: "read", status: "pending" } as const;
  const locations = [{ path: "/project/a.ts", line: 3 }];
  add(parts, { role: "user", parts: parts.prompt });
  editor.tell({ type: "thought", text: "I must look." });
  editor.tell({ type: "tool-call", call: { ...call, content: [], locations, rawInput: { path: "a.ts" } } });
  editor.tell({ type: "tool-call-change", toolCallId: "call-1", change: { status: "in_progress" } });
  editor.tell({
    type: "tool-call-change",
    toolCallId: "call-1",
    change: { status: "completed", content: [{ type: "terminal", terminalId: "t" }] },
  });
  add(parts, {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "I must look." },
      { type: "tool-call", id: "call-1", name: "read_text_file", arguments: '{"path":"a.ts"}' },
    ],
  });
  add(parts, {
    role: "user",
    parts: [{ type: "tool-result", callId: "call-1", parts: [{ type: "text", text: "let a;" }] }],
  });
  editor.tell({ type: "text", text: "It says let a." });
  add(parts, { role: "assistant", parts: [{ type: "text", text: "It says let a." }] });
  return { stopReason: "end_turn" };
}

test("no more sessions than the limit; a closed one makes room", async () => {
  const bed = open({ options: { maxConcurrent: 2 } });
  await bed.initialize();
  const together = await Promise.all([1, 2, 3].map(() => bed.call("session/new", { cwd: "/" })));
  const refused = together.filter(({ error }) => error !== undefined);
  expect(refused).toMatchObject([{ error: { code: -32001, data: { reason: "too_many_sessions", limit: 2 } } }]);
  const [first] = together.flatMap(({ result }) => (result ? [result.sessionId as string] : []));
  expect(await bed.result("session/close", { sessionId: first })).toEqual({});
  await bed.newSession();
});

test("an idle session leaves memory with its servers; one that works stays", async () => {
  const closed: string[] = [];
  const bed = open({
    options: { idleTimeoutMs: 60 },
    openMcpServers: (specs) => servers({ close: async () => void closed.push(...specs.map(({ name }) => name)) }),
    async runTurn(parts) {
      await Bun.sleep(200);
      return await plainTurn(parts);
    },
  });
  await bed.initialize();
  const idle = await bed.newSession({ mcpServers: [{ name: "tools", command: "/bin/tools", args: [], env: [] }] });
  const busy = await bed.newSession();
  expect((await bed.prompt(busy)).result?.stopReason).toBe("end_turn");
  expect(closed).toEqual(["tools"]);
  expect((await bed.prompt(idle)).error).toMatchObject({ code: -32001, data: { reason: "session_not_found" } });
  await waitFor(
    "the other one is idle, too",
    async () => (await bed.result("session/list")).sessions?.toString() === "",
  );
});

function servers(more: Partial<McpServers>): McpServers {
  return { tools: () => [], opened: Promise.resolve(), close: async () => {}, ...more };
}

test("modes and options, in both protocols' words", async () => {
  const seen: unknown[] = [];
  const bed = open({
    runTurn: (parts) => {
      seen.push(parts.choices());
      return plainTurn(parts);
    },
  });
  await bed.initialize();
  const sessionId = await bed.newSession({ mode: "ask", _meta: { model: "second" } });
  await bed.prompt(sessionId);
  expect(await bed.result("session/set_mode", { sessionId, mode: "architect" })).toMatchObject({
    sessionId,
    mode: "architect",
  });
  expect(await bed.result("session/set_mode", { sessionId, modeId: "code" })).toMatchObject({ mode: "code" });
  const set = (configId: string, value: string) =>
    bed.result("session/set_config_option", { sessionId, configId, value });
  const ids = async (result: Promise<object>) =>
    ((await result) as { configOptions: { id: string; currentValue: string }[] }).configOptions.map((each) => [
      each.id,
      each.currentValue,
    ]);
  expect(await ids(set("model", "first"))).toEqual([
    ["mode", "code"],
    ["model", "first"],
    ["thought_level", "default"],
  ]);
  expect(await ids(set("thought_level", "high"))).toContainEqual(["thought_level", "high"]);
  await bed.result("session/prompt", {
    sessionId,
    content: [{ text: "a" }],
    model: "other",
    _meta: { temperature: 0.5, maxTokens: 9 },
  });
  expect(await ids(set("mode", "ask"))).toContainEqual(["mode", "ask"]);
  expect(await ids(set("model", "second"))).toEqual([
    ["mode", "ask"],
    ["model", "second"],
  ]);
  await bed.prompt(sessionId);
  expect(seen).toEqual([
    { mode: "ask", model: "second" },
    { mode: "code", model: "other", effort: "high", temperature: 0.5, maxOutputTokens: 9 },
    { mode: "ask", model: "second" },
  ]);
  expect(bed.kinds()).toContain("current_mode_update");
});

test("stream false: the pieces of an answer come as one", async () => {
  const bed = open({
    async runTurn(parts) {
      for (const text of ["one ", "two ", "three"]) parts.editor.tell({ type: "text", text });
      return { stopReason: "max_tokens" };
    },
  });
  await bed.initialize();
  const sessionId = await bed.newSession();
  const text = () => bed.updates().flatMap(({ content }) => content.map((block) => block.text));
  await bed.result("session/prompt", { sessionId, prompt: [{ text: "a" }], stream: false });
  expect(text()).toEqual(["one two three"]);
  await bed.result("session/prompt", { sessionId, prompt: [{ text: "a" }] });
  expect(text()).toEqual(["one two three", "one ", "two ", "three"]);
});

test("without a model a session begins, and a prompt says what is missing until there is one", async () => {
  const offered: AcpBedOptions["offered"] = [];
  const bed = open({ offered });
  await bed.initialize();
  const sessionId = await bed.newSession();
  expect((await bed.prompt(sessionId)).error).toMatchObject({
    code: -32603,
    data: { reason: "no_models", status: 503 },
  });
  offered.push({ id: "late", name: "Late", efforts: [], images: false, audio: false });
  expect((await bed.prompt(sessionId)).result?.stopReason).toBe("end_turn");
});

test("a stored session is shown again by another process, and goes on", async () => {
  const storagePath = folder();
  const before = open({ options: { storagePath }, runTurn: turnWithTool });
  await before.initialize();
  const sessionId = await before.newSession({ cwd: "/elsewhere" });
  await before.prompt(sessionId, "What does it say?");
  await before.result("session/set_mode", { sessionId, mode: "ask" });
  await before.server.stop();

  const after = open({ options: { storagePath } });
  await after.initialize();
  expect((await after.result("session/list", { cwd: "/elsewhere" })).sessions).toMatchObject([
    { sessionId, cwd: "/elsewhere", title: "What does it say?" },
  ]);
  expect((await after.result("session/list", { cwd: "/" })).sessions).toEqual([]);
  const loaded = after.begin("load", "session/load", { sessionId, cwd: "/elsewhere", mcpServers: [] });
  const prompt = after.begin("prompt", "session/prompt", { sessionId, prompt: [{ text: "More" }] });
  expect((await loaded).result).toMatchObject({
    sessionId,
    mode: "ask",
    historyLength: 4,
    modes: { currentModeId: "ask" },
  });
  expect((await prompt).result?.stopReason).toBe("end_turn");
  const shown = after.updates().map(({ update }) => update);
  expect(after.kinds()).toEqual([
    "user_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "agent_message_chunk",
    "agent_message_chunk",
  ]);
  expect(shown[2]).toEqual({
    sessionUpdate: "tool_call",
    toolCallId: "call-1",
    title: "Read /project/a.ts",
    kind: "read",
    status: "completed",
    content: [{ type: "content", content: { type: "text", text: "let a;" } }],
    locations: [{ path: "/project/a.ts", line: 3, uri: "file:///project/a.ts", startLine: 3 }],
    rawInput: { path: "a.ts" },
  });
  const order = after.traffic.map(({ message }) => message as { id?: unknown; method?: string });
  expect(order.findLastIndex(({ id, method }) => id === "load" && method === undefined)).toBeGreaterThan(
    order.findIndex(({ method }) => method === "session/update") + 2,
  );
  expect(await after.result("session/resume", { sessionId })).toMatchObject({ historyLength: 6 });
});

test("more folders of a project reach the turn and the list; each opening says all of them anew", async () => {
  const storagePath = folder();
  const seen: unknown[] = [];
  const runTurn = (parts: TurnParts) => {
    seen.push(parts.directories);
    return plainTurn(parts);
  };
  const bed = open({ options: { storagePath }, runTurn });
  const { agentCapabilities } = await bed.initialize();
  expect(agentCapabilities).toMatchObject({ sessionCapabilities: { additionalDirectories: {} } });
  const sessionId = await bed.newSession({ additionalDirectories: ["/b", "/a"] });
  const listed = async () => ((await bed.result("session/list")).sessions as JsonObject[])[0]?.additionalDirectories;
  await bed.prompt(sessionId);
  expect(await listed()).toEqual(["/b", "/a"]);
  await bed.result("session/close", { sessionId });
  expect(await listed()).toEqual(["/b", "/a"]);
  for (const additionalDirectories of [["/c"], [], undefined]) {
    await bed.result("session/resume", { sessionId, cwd: "/project", mcpServers: [], additionalDirectories });
    await bed.prompt(sessionId);
    await bed.result("session/close", { sessionId });
    expect(await listed()).toEqual(additionalDirectories ?? []);
  }
  expect(seen).toEqual([["/b", "/a"], ["/c"], [], []]);
});

test("files are private, a half last line is dropped, damage is reported and left", async () => {
  const storagePath = folder();
  const bed = open({ options: { storagePath } });
  await bed.initialize();
  const sessionId = await bed.newSession();
  await bed.prompt(sessionId);
  await bed.result("session/close", { sessionId });
  const path = join(storagePath, `${sessionId}.jsonl`);
  expect(statSync(storagePath).mode & 0o777).toBe(0o700);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(storagePath)).toEqual([`${sessionId}.jsonl`]);

  const whole = readFileSync(path, "utf8");
  appendFileSync(path, '{"type":"message","mess');
  expect(await bed.result("session/resume", { sessionId })).toMatchObject({ historyLength: 2 });
  await bed.prompt(sessionId);
  await bed.result("session/close", { sessionId });
  expect(
    readFileSync(path, "utf8")
      .split("\n")
      .slice(0, -1)
      .every((line) => JSON.parse(line)),
  ).toBe(true);

  const damaged = whole.replace('"role":"user"', '"role":"nobody"');
  writeFileSync(path, damaged);
  expect(await bed.refusal("session/load", { sessionId, cwd: "/", mcpServers: [] })).toMatchObject({
    code: -32001,
    data: { reason: "session_damaged", sessionId },
  });
  expect(readFileSync(path, "utf8")).toBe(damaged);
  expect(bed.logged.join("")).toContain(path);
});

test("a file that was cut at any byte is a whole conversation, in which no call waits for its result", async () => {
  const storagePath = folder();
  const bed = open({ options: { storagePath }, runTurn: turnWithTool });
  await bed.initialize();
  const sessionId = await bed.newSession();
  await bed.prompt(sessionId);
  await bed.result("session/close", { sessionId });
  const path = join(storagePath, `${sessionId}.jsonl`);
  const whole = readFileSync(path);
  const lengths = new Set<number>();
  for (let bytes = whole.indexOf(10) + 1; bytes <= whole.length; bytes++) {
    writeFileSync(path, whole.subarray(0, bytes));
    const { session } = await readSessionFile(path);
    checkHistory(session.history);
    lengths.add(session.history.length);
  }
  expect([...lengths]).toEqual([0, 1, 3, 4]);

  // Between the call and its result, and what comes next is said behind the result that was lost.
  writeFileSync(path, whole.subarray(0, whole.indexOf('{"type":"message"', whole.indexOf("tool-call"))));
  const histories: TurnParts["history"][] = [];
  const after = open({
    options: { storagePath },
    runTurn: (parts) => {
      histories.push([...parts.history]);
      return plainTurn(parts);
    },
  });
  await after.initialize();
  for (const say of ["once", "again"]) {
    await after.result("session/load", { sessionId, cwd: "/project", mcpServers: [] });
    await after.prompt(sessionId, say);
    await after.result("session/close", { sessionId });
  }
  for (const history of histories) checkHistory(history);
  expect(histories.map(({ length }) => length)).toEqual([3, 5]);
  expect(after.updates().find(({ update }) => update.sessionUpdate === "tool_call")?.update.status).toBe("failed");
});

test("a session of another process is refused; that of a dead one is not", async () => {
  const storagePath = folder();
  const bed = open({ options: { storagePath } });
  await bed.initialize();
  const sessionId = await bed.newSession();
  await bed.result("session/close", { sessionId });
  const start = readFileSync(`/proc/${process.ppid}/stat`, "utf8").split(") ")[1]?.split(" ")[19];
  const lock = join(storagePath, `${sessionId}.${process.ppid}-${start}.lock`);
  writeFileSync(lock, "");
  for (const method of ["load", "resume", "delete"]) {
    expect((await bed.refusal(`session/${method}`, { sessionId })).data.reason).toBe("session_in_use");
  }
  const { promise, resolve } = Promise.withResolvers<number>();
  const dead = Bun.spawn(["true"], { onExit: (process) => resolve(process.pid) });
  await promise;
  writeFileSync(join(storagePath, `${sessionId}.${dead.pid}-1.lock`), "");
  writeFileSync(join(storagePath, `${sessionId}.${process.ppid}-1.lock`), ""); // an id that is used again
  const remove = (await import("node:fs")).rmSync;
  remove(lock);
  expect(await bed.result("session/resume", { sessionId })).toMatchObject({ sessionId });
  expect(readdirSync(storagePath).filter((file) => file.endsWith(".lock"))).toHaveLength(1);
});

test("close and delete end a running prompt; deleted is deleted", async () => {
  const storagePath = folder();
  const bed = open({
    options: { storagePath },
    runTurn: (parts) =>
      new Promise((_, reject) => parts.signal.addEventListener("abort", () => reject(parts.signal.reason))),
  });
  await bed.initialize();
  for (const method of ["close", "delete"]) {
    const sessionId = await bed.newSession();
    const prompt = bed.begin(method, "session/prompt", { sessionId, prompt: [{ text: "a" }] });
    expect(await bed.result(`session/${method}`, { sessionId })).toEqual({});
    expect((await prompt).result).toEqual({ stopReason: "cancelled" });
    const again = await bed.call("session/resume", { sessionId });
    expect(again.error?.data.reason).toBe(method === "close" ? undefined : "session_not_found");
  }
});

test("pages of the list hold every session once", async () => {
  const storagePath = folder();
  const bed = open({ options: { storagePath, maxConcurrent: 1 } });
  await bed.initialize();
  const all: string[] = [];
  for (let count = 0; count < 120; count++) {
    const sessionId = await bed.newSession();
    all.push(sessionId);
    await bed.result("session/close", { sessionId });
  }
  const found: string[] = [];
  let cursor: unknown;
  do {
    const page = await bed.result("session/list", { ...(cursor !== undefined && { cursor }) });
    found.push(...(page.sessions as { sessionId: string }[]).map((each) => each.sessionId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  expect(found.toSorted()).toEqual(all.toSorted());
});

test("who looks at the process is told what sessions there are", async () => {
  const bed = open();
  await bed.initialize();
  const sessionId = await bed.newSession();
  expect(bed.told[0]).toMatchObject([{ sessionId, mode: "code", model: "first", historyLength: 0, isBusy: false }]);
  await bed.server.stop();
  expect(bed.told.at(-1)).toEqual([]);
});
