// A model edits a real project through an editor with the official client library: it reads, asks, edits, runs the tests in a
// terminal, and answers.

import { afterEach, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectEditor, initializeParams } from "../support/acp-editor.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { scriptedTurns } from "../support/scripted-turns.ts";
import { WatchedAgent } from "../support/watched-agent.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const BUN = join(import.meta.dir, "..", "..", "bin", "bun");

test("a project is mended", async () => {
  const backend = new FakeBackend({ models: ["m"] });
  cleanups.push(() => backend.stop());
  const agent = new WatchedAgent({ config: { backends: [{ name: "gpu", type: "vllm", url: backend.url }] } });
  cleanups.push(() => agent.close());
  const project = join(agent.folder, "project");
  mkdirSync(project);
  const source = join(project, "add.ts");
  writeFileSync(source, "export const add = (a: number, b: number) => a - b;\n");
  writeFileSync(
    join(project, "add.test.ts"),
    'import { expect, test } from "bun:test";\nimport { add } from "./add.ts";\ntest("adds", () => expect(add(2, 2)).toBe(4));\n',
  );
  backend.answer = scriptedTurns([
    {
      thought: "I look at it first.",
      text: "I read the source.",
      calls: [{ name: "read_text_file", arguments: { path: "add.ts" } }],
    },
    { calls: [{ name: "edit_text_file", arguments: { path: source, old_text: "a - b", new_text: "a + b" } }] },
    { calls: [{ name: "run_command", arguments: { command: `sh "${BUN}" test` } }] },
    { text: "It adds now." },
  ]);

  const editor = connectEditor(agent);
  const { agent: signalbox } = editor.connection;
  await signalbox.request("initialize", initializeParams());
  const { sessionId } = await signalbox.request("session/new", { cwd: project, mcpServers: [] });
  const { stopReason } = await signalbox.request("session/prompt", {
    sessionId,
    prompt: [{ type: "text", text: "Mend the addition." }],
  });

  expect(stopReason).toBe("end_turn");
  expect(readFileSync(source, "utf8")).toBe("export const add = (a: number, b: number) => a + b;\n");
  // Reading is allowed; editing and running are asked for, each with what it will do.
  expect(editor.asked.map(({ toolCall }) => toolCall.kind)).toEqual(["edit", "execute"]);
  expect(editor.asked[0]?.toolCall.content).toMatchObject([{ type: "diff", path: source }]);
  expect(editor.asked[0]?.options.map(({ optionId }) => optionId)).toEqual([
    "allow_once",
    "allow_always",
    "reject_once",
    "reject_always",
  ]);
  expect(editor.commands).toMatchObject([{ command: "sh" }]);
  expect([...editor.terminals]).toEqual([]);
  // The model has seen the source and the outcome of the tests.
  const asked = backend.requests.map(({ text }) => text);
  expect(asked).toHaveLength(4);
  expect(asked[1]).toContain("a - b");
  expect(asked[3]).toContain("1 pass");
  const kinds = editor.updates.map(({ update }) => update.sessionUpdate);
  expect(kinds).toContain("agent_thought_chunk");
  expect(kinds.filter((kind) => kind === "tool_call")).toHaveLength(3);
  const words = editor.updates.flatMap(({ update }) =>
    update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? [update.content.text] : [],
  );
  expect(words.join("")).toContain("It adds now.");
});
