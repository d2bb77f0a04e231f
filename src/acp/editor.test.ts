// What the agent asks of the client and tells it: abilities, permissions, terminals, and a client that does not read.

import { expect, test } from "bun:test";
import { type AcpBed, acpBeds, MODELS } from "../../test/support/acp-bed.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import type { TurnEnd, TurnParts } from "../agent/agent.ts";
import { EditorError } from "../agent/editor.ts";
import type { ToolCallView } from "../agent/updates.ts";
import type { GenerationEvent } from "../generation/events.ts";

const open = acpBeds();

const END: TurnEnd = { stopReason: "end_turn" };

function call(id: string): ToolCallView {
  return {
    toolCallId: id,
    title: "Edit a b.ts",
    kind: "edit",
    status: "pending",
    content: [{ type: "diff", path: "/project/a b.ts", oldText: "a", newText: "b" }],
    locations: [{ path: "/project/a b.ts", line: 2 }],
  };
}

/** Runs one turn in a new session. */
async function run(bed: AcpBed, can: object = {}) {
  await bed.initialize(can);
  const sessionId = await bed.newSession();
  return { sessionId, answer: await bed.prompt(sessionId) };
}

test("permissions: asked in both forms, answered in any, and a client that cannot ask says no", async () => {
  const answers: unknown[] = [];
  const bed = open({
    async runTurn({ editor, signal }) {
      for (const id of ["a", "b", "c"]) {
        editor.tell({ type: "tool-call", call: call(id) });
        answers.push(await editor.askPermission(call(id), signal));
        editor.tell({ type: "tool-call-change", toolCallId: id, change: { status: "failed" } });
        if (id === "b") delete bed.client["session/request_permission"];
      }
      return END;
    },
  });
  const asked: object[] = [];
  bed.client["session/request_permission"] = (params) => {
    asked.push(params);
    return asked.length === 1 ? "allow_always" : { outcome: { outcome: "selected", optionId: "allow_once" } };
  };
  const { sessionId } = await run(bed);
  expect(answers).toEqual(["allow_always", "allow_once", "reject_once"]);
  expect(asked[0]).toMatchObject({
    sessionId,
    toolCallId: "a",
    title: "Edit a b.ts",
    kind: "edit",
    locations: [{ uri: "file:///project/a%20b.ts", startLine: 2, path: "/project/a b.ts", line: 2 }],
    toolCall: { toolCallId: "a", content: [{ type: "diff", path: "/project/a b.ts", oldText: "a", newText: "b" }] },
  });
});

test("nothing is asked that the client has not offered", async () => {
  const bed = open({
    async runTurn({ editor, signal }) {
      expect(editor.can).toMatchObject({ readTextFile: false, writeTextFile: true, terminal: false });
      const path = "/a";
      await expect(editor.readTextFile({ path }, signal)).rejects.toBeInstanceOf(EditorError);
      await expect(editor.runCommand({ command: "ls", args: [] }, signal)).rejects.toBeInstanceOf(EditorError);
      await editor.writeTextFile({ path, content: "x" }, signal);
      return END;
    },
  });
  const written: object[] = [];
  bed.client["fs/write_text_file"] = (params) => void written.push(params);
  const { sessionId } = await run(bed, { writeTextFile: true });
  expect(written).toEqual([{ sessionId, path: "/a", content: "x" }]);
});

test("files and terminals, and what the client says when it cannot", async () => {
  const seen: unknown[] = [];
  const bed = open({
    async runTurn({ editor, signal }) {
      seen.push(await editor.readTextFile({ path: "/a", line: 2, limit: 1 }, signal));
      await editor.readTextFile({ path: "/b" }, signal).catch((error: Error) => seen.push([error.name, error.message]));
      const terminal = await editor.runCommand({ command: "ls", args: ["-l"], env: { A: "1" }, cwd: "/p" }, signal);
      seen.push(await terminal.exited(signal), await terminal.output(signal));
      await terminal.kill();
      await terminal.release();
      return END;
    },
  });
  bed.client["fs/read_text_file"] = ({ path, line, limit }) => {
    if (path === "/b") throw new Error("no such file");
    return { content: `${line} ${limit}` };
  };
  bed.client["terminal/create"] = ({ command, args, env, cwd }) => {
    seen.push({ command, args, env, cwd });
    return { terminalId: "t1" };
  };
  bed.client["terminal/wait_for_exit"] = () => ({ exitCode: 1, signal: null });
  bed.client["terminal/output"] = () => ({ output: "x", truncated: false, exitStatus: { exitCode: 1 } });
  bed.client["terminal/kill"] = () => ({});
  bed.client["terminal/release"] = () => null;
  const { answer } = await run(bed, { fs: { readTextFile: true }, terminal: true });
  expect(answer.result).toMatchObject(END);
  expect(seen).toEqual([
    "2 1",
    ["EditorError", "no such file"],
    { command: "ls", args: ["-l"], env: [{ name: "A", value: "1" }], cwd: "/p" },
    { exitCode: 1, signal: null },
    { output: "x", truncated: false, exit: { exitCode: 1, signal: null } },
  ]);
});

test("a cancel frees whoever waits for the client; a terminal that comes too late is given back", async () => {
  const created = Promise.withResolvers<object>();
  const bed = open({
    async runTurn({ editor, signal }) {
      await editor.runCommand({ command: "sleep", args: [] }, signal);
      return END;
    },
  });
  bed.client["terminal/create"] = () => created.promise;
  bed.client["terminal/release"] = () => ({});
  await bed.initialize({ terminal: true });
  const sessionId = await bed.newSession();
  const prompt = bed.begin("p", "session/prompt", { sessionId, prompt: [{ text: "a" }] });
  const said = (method: string) =>
    bed.traffic.some(({ message }) => (message as { method?: string }).method === method);
  await waitFor("the terminal is asked for", () => said("terminal/create"));
  bed.notify("session/cancel", { sessionId });
  expect((await prompt).result).toEqual({ stopReason: "cancelled" });
  expect(said("$/cancel_request")).toBe(true);
  created.resolve({ terminalId: "late" });
  await waitFor("it is given back", () => said("terminal/release"));
});

test("half of a character waits for its other half", async () => {
  const bed = open({
    async runTurn({ editor }) {
      for (const text of ["a\ud83d", "\ude00b", "c\ud83d"]) editor.tell({ type: "text", text });
      editor.tell({ type: "thought", text: "t" });
      return END;
    },
  });
  await run(bed);
  const text = bed.updates().flatMap(({ content }) => content.map((block) => block.text));
  expect(text).toEqual(["a", "😀b", "c", "\ufffd"]);
});

test("a client that does not read stops the model, and loses nothing", async () => {
  const piece = "x".repeat(10_000);
  const count = 2_000;
  let produced = 0;
  let goOn: (() => void) | undefined;
  let reads = true;
  async function* generate(): AsyncGenerator<GenerationEvent, void> {
    for (let index = 0; index < count; index++) {
      produced++;
      yield { type: "delta", index: 0, text: piece };
    }
  }
  const bed = open({
    models: { generate },
    async runTurn({ editor, model, signal }: TurnParts) {
      for await (const event of model.generate({} as never, { signal })) {
        if (event.type === "delta") editor.tell({ type: "text", text: event.text });
      }
      return END;
    },
    write() {
      if (reads) return undefined;
      return new Promise<void>((resolve) => {
        goOn = resolve;
      });
    },
  });
  await bed.initialize();
  const sessionId = await bed.newSession();
  reads = false;
  const prompt = bed.begin("p", "session/prompt", { sessionId, prompt: [{ text: "a" }] });
  await waitFor("the model has begun", () => produced > 10);
  await Bun.sleep(50);
  const stoppedAt = produced;
  expect(stoppedAt).toBeLessThan(200); // a mebibyte, in lines of 20,000 bytes
  await Bun.sleep(50);
  expect(produced).toBe(stoppedAt);
  reads = true;
  goOn?.();
  expect((await prompt).result).toMatchObject(END);
  expect(bed.updates().flatMap(({ content }) => content)).toHaveLength(count);
});

test("a cancel reaches a turn that waits for a client that does not read", async () => {
  let reads = true;
  const never = new Promise<void>(() => {});
  let ended: unknown;
  const bed = open({
    offered: MODELS,
    models: {
      async *generate() {
        for (;;) yield { type: "delta", index: 0, text: "x".repeat(100_000) } as const;
      },
    },
    async runTurn({ editor, model, signal }) {
      try {
        for await (const _ of model.generate({} as never, { signal }))
          editor.tell({ type: "text", text: "x".repeat(100_000) });
      } catch (error) {
        ended = error;
        throw error;
      }
      return END;
    },
    write: () => (reads ? undefined : never),
  });
  await bed.initialize();
  const sessionId = await bed.newSession();
  reads = false;
  bed.notify("session/cancel", { sessionId });
  void bed.begin("p", "session/prompt", { sessionId, prompt: [{ text: "a" }] });
  await Bun.sleep(30);
  bed.notify("session/cancel", { sessionId });
  await waitFor("the turn has ended", () => ended !== undefined, { timeoutMs: 200 });
});
