// The agent's own tools, each as a turn calls it; commands that only look run for real.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CWD } from "../../../test/support/agent-turns.ts";
import { ScriptedEditor } from "../../../test/support/scripted-editor.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { ToolContext } from "../tool.ts";
import type { ToolContent } from "../updates.ts";
import { ownTools } from "./own-tools.ts";

const ALL = { readTextFile: true, writeTextFile: true, terminal: true };

function callTool(name: string, editor: ScriptedEditor, cwd = CWD) {
  const tool = ownTools(editor.can).find((each) => each.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const shown: ToolContent[][] = [];
  const context: ToolContext = {
    editor,
    cwd,
    signal: new AbortController().signal,
    show: (content) => shown.push(content),
  };
  return {
    shown,
    preview: async (args: JsonObject) => await tool.preview(args, context),
    run: async (args: JsonObject) => {
      const outcome = await tool.run(args, context);
      const text = outcome.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      return { ...outcome, text };
    },
  };
}

describe("what is offered", () => {
  test.each([
    [ALL, "read_text_file,list_directory,search_files,edit_text_file,write_text_file,run_command,update_plan"],
    [{ ...ALL, terminal: false }, "read_text_file,edit_text_file,write_text_file,update_plan"],
    [{ ...ALL, readTextFile: false }, "list_directory,search_files,write_text_file,run_command,update_plan"],
    [{ ...ALL, writeTextFile: false }, "read_text_file,list_directory,search_files,run_command,update_plan"],
  ])("to an editor that can %j", (can, names) => {
    expect(
      ownTools(can)
        .map(({ name }) => name)
        .join(),
    ).toBe(names);
  });

  test("has names, descriptions and schemas that every backend takes", () => {
    for (const { name, description, parameters } of ownTools(ALL)) {
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(description.length).toBeGreaterThan(20);
      expect(parameters).toMatchObject({ type: "object", additionalProperties: false });
    }
  });
});

describe("read_text_file", () => {
  const long = [...Array(10_000)].map((_, index) => `line ${index + 1}\n`).join("");
  const editor = new ScriptedEditor({
    files: { "/project/src/long": long, "/project/empty": "", "/project/short": "a\nb" },
  });

  test("reads long files in pieces that are the whole together", async () => {
    const { run } = callTool("read_text_file", editor);
    let whole = "";
    let line = 1;
    for (let count = 0; count < 10; count++) {
      const { text } = await run({ path: "src/long", line });
      const next = /\[The file goes on: read it again with line (\d+)\.\]$/.exec(text);
      whole += next === null ? text : text.slice(0, next.index);
      if (next === null) break;
      line = Number(next[1]);
    }
    expect(whole).toBe(long);
  });

  test("says what there is to say", async () => {
    const { run, preview } = callTool("read_text_file", editor);
    expect((await run({ path: "empty" })).text).toBe("(The file is empty.)");
    expect((await run({ path: "short" })).text).toBe("a\nb");
    expect((await run({ path: "short", line: 2 })).text).toBe("b");
    expect((await run({ path: "short", line: 9 })).text).toBe("(The file has no line 9.)");
    expect((await run({ path: "short", limit: 1 })).text).toBe("a\n[The file goes on: read it again with line 2.]");
    expect(await preview({ path: "./src/../short", line: 2, limit: 3 })).toEqual({
      title: "Read short (lines 2 to 4)",
      locations: [{ path: "/project/short", line: 2 }],
    });
    await expect(run({ path: "short", line: 0 })).rejects.toThrow("at least 1");
    await expect(run({ path: " " })).rejects.toThrow("The path is empty");
  });
});

describe("write_text_file", () => {
  test("shows the diff before, and writes", async () => {
    const editor = new ScriptedEditor({ files: { "/project/a": "old" } });
    const { run, preview } = callTool("write_text_file", editor);
    const args = { path: "a", content: "new\nlines\n" };
    expect(await preview(args)).toEqual({
      title: "Write a",
      locations: [{ path: "/project/a" }],
      content: [{ type: "diff", path: "/project/a", oldText: "old", newText: "new\nlines\n" }],
    });
    expect(await preview({ ...args, path: "b" })).toMatchObject({
      content: [{ type: "diff", newText: "new\nlines\n" }],
    });
    const { text, content } = await run(args);
    expect(text).toBe("Written: a, 2 lines.");
    expect(content).toMatchObject([{ type: "diff", oldText: "old" }]);
    expect(editor.files.get("/project/a")).toBe("new\nlines\n");
    expect((await run(args)).text).toBe("a has this text already.");
  });

  test("works where nothing can be read", async () => {
    const editor = new ScriptedEditor({ can: { readTextFile: false } });
    const { run, preview } = callTool("write_text_file", editor);
    const { content = [] } = await preview({ path: "a", content: "x" });
    expect(content).toEqual([{ type: "diff", path: "/project/a", newText: "x" }]);
    await run({ path: "a", content: "x" });
    expect(editor.files.get("/project/a")).toBe("x");
  });
});

test("edit_text_file edits what the file is when it is allowed, not what it was when it was asked", async () => {
  const editor = new ScriptedEditor({ files: { "/project/a": "one\ntwo\n" } });
  const { run, preview } = callTool("edit_text_file", editor);
  const args = { path: "a", old_text: "two", new_text: "2" };
  expect(await preview(args)).toEqual({
    title: "Edit a",
    locations: [{ path: "/project/a", line: 2 }],
    content: [{ type: "diff", path: "/project/a", oldText: "one\ntwo\n", newText: "one\n2\n" }],
  });
  editor.files.set("/project/a", "zero\none\ntwo\n");
  expect((await run(args)).text).toBe("Changed: a, at line 3.");
  expect(editor.files.get("/project/a")).toBe("zero\none\n2\n");
  await expect(preview(args)).rejects.toThrow("a was not changed: old_text is not in the file (0 places).");
});

describe("run_command", () => {
  test("shows the terminal, tells output and exit code, and releases", async () => {
    const editor = new ScriptedEditor({ run: () => ({ output: "3 failed\n", exit: { exitCode: 1, signal: null } }) });
    const { run, shown, preview } = callTool("run_command", editor);
    expect(await preview({ command: "npm test", cwd: "sub" })).toEqual({
      title: "npm test (in sub)",
      locations: [{ path: "/project/sub", isFolder: true }],
    });
    const outcome = await run({ command: "npm test; echo $HOME" });
    expect(outcome.text).toBe("Exit code: 1\n3 failed\n");
    expect(outcome).toMatchObject({ content: [{ type: "terminal" }], rawOutput: { exitCode: 1 } });
    expect(shown).toEqual([[{ type: "terminal", terminalId: "terminal-0" }]]);
    expect(editor.commands).toEqual([
      { command: "sh", args: ["-c", "npm test; echo $HOME"], cwd: "/project", outputByteLimit: 64 * 1024 },
    ]);
    expect(editor.terminals).toMatchObject([{ isReleased: true, isKilled: false }]);
  });

  test("keeps the end of a long output", async () => {
    const editor = new ScriptedEditor({ run: () => ({ output: `${"x".repeat(100_000)}end` }) });
    const { text } = await callTool("run_command", editor).run({ command: "x" });
    expect(text.length).toBeLessThan(66_000);
    expect(text).toMatch(/^Exit code: 0\n\[The beginning of the output was left out.\]\nx+end$/);
  });

  test("is killed when its time is up", async () => {
    const editor = new ScriptedEditor({ run: () => ({ output: "so far", until: new Promise(() => {}) }) });
    const { text, isError } = await callTool("run_command", editor).run({ command: "sleep 100", timeout_s: 1 });
    expect(text).toBe("Killed: it did not end within 1 seconds.\nso far");
    expect(isError).toBe(true);
    expect(editor.terminals).toMatchObject([{ isReleased: true, isKilled: true }]);
  });
});

test("update_plan tells the whole plan", async () => {
  const editor = new ScriptedEditor();
  const entries = [
    { content: "one", status: "completed", priority: "high" },
    { content: "two", status: "in_progress" },
  ];
  await callTool("update_plan", editor).run({ entries });
  expect(editor.told).toEqual([
    {
      type: "plan",
      entries: [
        { content: "one", status: "completed", priority: "high" },
        { content: "two", status: "in_progress", priority: "medium" },
      ],
    },
  ]);
});

describe("commands that only look", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "agent tools $(x) '"));
    await mkdir(join(folder, "sub", "node_modules"), { recursive: true });
    await mkdir(join(folder, "-n"));
    await writeFile(join(folder, "a.ts"), "const one = 1;\nneedle $HOME\n");
    await writeFile(join(folder, "sub", "b.txt"), `a Needle\n${"long ".repeat(200)}needle\n`);
    await writeFile(join(folder, "sub", "node_modules", "c.ts"), "needle\n");
    await writeFile(join(folder, "sub", "binary"), new Uint8Array([0, 1, 2, ...new TextEncoder().encode("needle")]));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Runs what is asked for, as an editor does. */
  const real = () =>
    new ScriptedEditor({
      run({ command, args, cwd }) {
        const done = Bun.spawnSync([command, ...args], { ...(cwd !== undefined && { cwd }) });
        const output = `${done.stdout}${done.stderr}`;
        return { output, exit: { exitCode: done.exitCode, signal: null } };
      },
    });

  test("list a folder", async () => {
    const { text } = await callTool("list_directory", real(), folder).run({});
    expect(text).toMatch(/a\.ts[\s\S]*sub/);
    expect((await callTool("list_directory", real(), folder).run({ path: "-n" })).text).toContain("..");
    const gone = await callTool("list_directory", real(), folder).run({ path: "gone" });
    expect(gone.text).toContain("gone");
  });

  test("search texts and names, and no shell reads what is searched for", async () => {
    const { run, preview } = callTool("search_files", real(), folder);
    const found = async (args: JsonObject) => (await run(args)).text.replaceAll(folder, "").trim().split("\n");
    const matches = await found({ pattern: "needle" });
    expect(matches).toHaveLength(2);
    expect(matches.find((line) => line.startsWith("/a.ts"))).toBe("/a.ts:2:needle $HOME");
    expect(matches.find((line) => line.startsWith("/sub/b.txt:2:"))?.length).toBeLessThan(420);
    expect(await found({ pattern: "needle \\$HOME", name: "*.ts" })).toEqual(["/a.ts:2:needle $HOME"]);
    expect(await found({ pattern: "NEEDLE$", ignore_case: true, path: "sub" })).toHaveLength(2);
    expect(await found({ name: "*.ts" })).toEqual(["/a.ts"]);
    expect(await found({ pattern: "$(touch pwned); 'x" })).toEqual(["Nothing was found."]);
    expect(await found({ pattern: "--version" })).toEqual(["Nothing was found."]);
    expect(await preview({ pattern: "x", name: "*.ts", path: "sub" })).toMatchObject({
      title: 'Search "x" in *.ts in sub',
    });
    await expect(preview({})).rejects.toThrow("Nothing to search for");
    expect(await Bun.file(join(folder, "pwned")).exists()).toBe(false);
  });
});
