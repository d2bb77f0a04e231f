// Turns with a scripted model and a scripted editor: what is told, what is kept, what the model is asked next.

import { describe, expect, test } from "bun:test";
import { CWD, checkHistory, checkUpdates, noticesTold, TestSession, textTold } from "../../test/support/agent-turns.ts";
import { ScriptedEditor } from "../../test/support/scripted-editor.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../test/support/scripted-model.ts";
import { within } from "../../test/support/wait-for.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ToolResultPart } from "../generation/content.ts";
import type { Permission, StopReason } from "./agent.ts";
import type { PermissionAnswer } from "./editor.ts";
import { ModelFailure } from "./model-failure.ts";
import type { AgentTool } from "./tool.ts";
import type { ToolKind } from "./updates.ts";

const read = (path: string, id?: string) => ({
  name: "read_text_file",
  arguments: { path },
  ...(id !== undefined && { id }),
});
const usage = (input: number, output: number) => ({ input: { total: input }, output: { total: output } });

function check(session: TestSession): void {
  checkHistory(session.history);
  checkUpdates(session.editor.told);
  expect(session.kept).toEqual(session.history);
}

function results(session: TestSession): ToolResultPart[] {
  return session.history.flatMap(({ parts }) => parts.filter((part) => part.type === "tool-result"));
}

const statuses = (editor: ScriptedEditor, id: string) =>
  editor.told.flatMap((update) => {
    if (update.type === "tool-call" && update.call.toolCallId === id) return [update.call.status];
    if (update.type === "tool-call-change" && update.toolCallId === id) return [update.change.status ?? "shown"];
    return [];
  });

describe("an answer", () => {
  test("is told as it comes, with thoughts and counts, and is kept with its proofs", async () => {
    const editor = new ScriptedEditor();
    const session = new TestSession(editor, { choices: { effort: "high", temperature: 0.5, maxOutputTokens: 100 } });
    const signed = { origin: "messages", signature: "proof" };
    const model = new ScriptedModel(
      [{ thought: "let me see", signed, text: "Hello you.", usage: usage(40, 5) }, { text: "Again." }],
      { window: 1_000 },
    );
    expect(await session.run(model, "hi")).toEqual({ stopReason: "end_turn", usage: { input: 40, output: 5 } });
    expect(textTold(editor.told)).toBe("Hello you.");
    expect(textTold(editor.told, "thought")).toBe("let me see");
    expect(editor.told.at(-1)).toEqual({ type: "usage", used: 45, size: 1_000 });
    await session.run(model, "more");
    const [first, second] = model.requests;
    expect(first).toMatchObject({
      model: "m",
      stream: true,
      sampling: { temperature: 0.5 },
      maxOutputTokens: 100,
      reasoning: { effort: "high", visible: true },
      promptCacheKey: "session",
    });
    expect(second?.messages[1]).toEqual({
      role: "assistant",
      parts: [
        { type: "reasoning", text: "let me see", origin: "messages", signature: "proof" },
        { type: "text", text: "Hello you." },
      ],
    });
    check(session);
  });

  test("that is nothing leaves nothing", async () => {
    const session = new TestSession(new ScriptedEditor());
    expect(await session.run(new ScriptedModel([{}]), "hi")).toEqual({ stopReason: "end_turn" });
    expect(session.history).toHaveLength(1);
    const thinking = new ScriptedModel([{ thought: "hm" }]);
    await session.run(thinking, "hi");
    expect(session.history).toHaveLength(2);
  });

  test.each<[ScriptedAnswer, StopReason]>([
    [{ text: "x", finish: "length" }, "max_tokens"],
    [{ text: "x", finish: "content-filter" }, "refusal"],
    [{ refusal: "I will not." }, "refusal"],
    [{ text: "x", finish: "stop-sequence" }, "end_turn"],
  ])("%j ends the turn as %s", async (answer, stopReason) => {
    const session = new TestSession(new ScriptedEditor());
    expect(await session.run(new ScriptedModel([answer]), "hi")).toMatchObject({ stopReason });
    expect(textTold(session.editor.told)).toBe(answer.refusal ?? answer.text ?? "");
    check(session);
  });

  test("that pauses goes on", async () => {
    const session = new TestSession(new ScriptedEditor());
    const model = new ScriptedModel([{ text: "one, ", finish: "pause" }, { text: "two" }]);
    expect(await session.run(model, "count")).toEqual({ stopReason: "end_turn" });
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "assistant", parts: [{ text: "one, " }] });
    expect(textTold(session.editor.told)).toBe("one, two");
  });

  test("cut off in a call: the call is not carried out, and the model is told so", async () => {
    const session = new TestSession(new ScriptedEditor());
    const calls = [{ name: "write_text_file", arguments: '{"path":"a","content":"half of' }];
    const model = new ScriptedModel([{ calls, finish: "length" }, { text: "ok" }]);
    expect(await session.run(model, "write")).toEqual({ stopReason: "max_tokens" });
    expect(session.history[1]?.parts).toMatchObject([{ type: "tool-call", arguments: "{}" }]);
    expect(session.lastResult).toContain("limit of tokens");
    expect(session.editor.files.size).toBe(0);
    check(session);
  });

  test("of calls without an end stops at the limit, and the next turn goes on", async () => {
    const session = new TestSession(new ScriptedEditor({ files: { "/project/a": "A" } }), { maxTurns: 3 });
    const model = new ScriptedModel([...Array(3)].map(() => ({ calls: [read("a")] })));
    expect(await session.run(model, "go")).toEqual({ stopReason: "max_turn_requests" });
    expect(model.requests).toHaveLength(3);
    expect(results(session)).toHaveLength(3);
    expect(await session.run(new ScriptedModel([{ text: "done" }]), "go on")).toEqual({ stopReason: "end_turn" });
    check(session);
  });
});

describe("trouble with the model", () => {
  test.each([
    [{ failure: { message: "overloaded", status: 529, type: "overloaded_error" } }, 529, "overloaded_error"],
    [{ thrown: new GatewayError(ERRORS.allBackendsUnhealthy, "down") }, 503, "service_unavailable"],
    [{ finish: "none" as const }, 502, "backend_error"],
  ])("%j is a ModelFailure", async (answer, status, type) => {
    const session = new TestSession(new ScriptedEditor());
    const ended = session.run(new ScriptedModel([answer]), "hi");
    await expect(ended).rejects.toBeInstanceOf(ModelFailure);
    await expect(ended).rejects.toMatchObject({ status, type });
    expect(session.history).toHaveLength(1);
    check(session);
  });

  test("in the middle of an answer leaves the words that were read, and none of the calls", async () => {
    const session = new TestSession(new ScriptedEditor());
    const failure = { message: "broken", status: 502 };
    const model = new ScriptedModel([{ thought: "hm", text: "I will", calls: [read("a")], failure }, { text: "ok" }]);
    await expect(session.run(model, "hi")).rejects.toMatchObject({ status: 502, message: "broken" });
    expect(session.history[1]).toEqual({ role: "assistant", parts: [{ type: "text", text: "I will" }] });
    expect(await session.run(model, "go on")).toEqual({ stopReason: "end_turn" });
    check(session);
  });

  test("a prompt that no backend understands is forgotten, so that the session goes on", async () => {
    const session = new TestSession(new ScriptedEditor());
    const failure = { message: "this model reads no images", status: 400 };
    const model = new ScriptedModel([{ failure }, { text: "ok" }]);
    const image = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AAAA" } } as const;
    await expect(session.run(model, [image])).rejects.toMatchObject({ status: 400 });
    expect(session.history).toEqual([]);
    await session.run(model, "only words");
    expect(model.requests[1]?.messages).toHaveLength(1);
  });

  test("one that takes no tools talks without them, and the person is told", async () => {
    const session = new TestSession(new ScriptedEditor());
    const failure = { message: "registry.example/m does not support tools", status: 400 };
    const model = new ScriptedModel([{ failure }, { text: "ok" }]);
    expect(await session.run(model, "hi")).toEqual({ stopReason: "end_turn" });
    expect(model.requests.map(({ tools }) => tools.length > 0)).toEqual([true, false]);
    expect(noticesTold(session.editor.told)).toHaveLength(1);
  });

  test("too long a conversation is shortened and sent once more", async () => {
    const text = "line of the file\n".repeat(2_000);
    const session = new TestSession(new ScriptedEditor({ files: { "/project/a": text, "/project/b": "B" } }));
    const failure = { message: "prompt is too long: 9 tokens > 8 maximum", status: 400, type: "invalid_request_error" };
    const model = new ScriptedModel([{ calls: [read("a")] }, { calls: [read("b")] }, { failure }, { text: "ok" }]);
    expect(await session.run(model, "read")).toEqual({ stopReason: "end_turn" });
    const sizes = model.requests.map((request) => JSON.stringify(request.messages).length);
    expect(sizes[3]).toBeLessThan((sizes[2] as number) * 0.6);
    expect(JSON.stringify(session.history)).toContain(JSON.stringify(text).slice(1, -1));
    expect(noticesTold(session.editor.told)).toHaveLength(1);
    await session.run(new ScriptedModel([{ failure }, { failure }, { text: "not asked" }]), "again").then(
      () => expect.unreachable(),
      (error) => expect(error).toMatchObject({ status: 400 }),
    );
    check(session);
  });
});

describe("calls", () => {
  test("are told from pending to completed, and their results go back in order", async () => {
    const editor = new ScriptedEditor({ files: { "/project/a": "A", "/project/b": "B" } });
    const session = new TestSession(editor);
    const model = new ScriptedModel([
      { text: "I look.", calls: [{ ...read("a", "one"), signature: "sig" }, read("b", "two")] },
      { text: "Done." },
    ]);
    expect(await session.run(model, "look")).toEqual({ stopReason: "end_turn" });
    expect(statuses(editor, "one")).toEqual(["pending", "in_progress", "completed"]);
    expect(results(session)).toEqual([
      { type: "tool-result", callId: "one", name: "read_text_file", parts: [{ type: "text", text: "A" }] },
      { type: "tool-result", callId: "two", name: "read_text_file", parts: [{ type: "text", text: "B" }] },
    ]);
    expect(model.requests[1]?.messages[1]?.parts[1]).toMatchObject({ id: "one", signature: "sig" });
    expect(editor.told.find((update) => update.type === "tool-call")).toMatchObject({
      call: { title: "Read a", kind: "read", locations: [{ path: "/project/a" }], rawInput: { path: "a" } },
    });
    check(session);
  });

  test("that only look run at the same time; what changes something waits for them, and is waited for", async () => {
    const gate = Promise.withResolvers<void>();
    const order: string[] = [];
    const editor = new ScriptedEditor({
      files: { "/project/a": "A", "/project/b": "B" },
      delay: async (what, path) => {
        order.push(`${what} ${path.at(-1)}`);
        if (what === "read" && order.length === 2) gate.resolve();
        if (what === "read" && order.length <= 2) await gate.promise;
      },
    });
    const session = new TestSession(editor, { permissions: { edit: "allow" } });
    const write = { name: "write_text_file", arguments: { path: "a", content: "new" } };
    const model = new ScriptedModel([{ calls: [read("a"), read("b"), write, read("a")] }, { text: "ok" }]);
    await within("both reads are under way together", session.run(model, "go"));
    expect(order.slice(0, 2).sort()).toEqual(["read a", "read b"]);
    expect(results(session).map(({ parts }) => parts[0])).toMatchObject([
      { text: "A" },
      { text: "B" },
      { text: "Written: a, 1 line." },
      { text: "new" },
    ]);
    check(session);
  });

  test("that are wrong are error results that say what is wrong", async () => {
    const session = new TestSession(new ScriptedEditor());
    const calls = [
      { name: "read_text_fil", arguments: {} },
      { name: "read_text_file", arguments: "{no json" },
      { name: "read_text_file", arguments: {} },
      { name: "read_text_file", arguments: { path: 7 } },
      { name: "read_text_file", arguments: { path: "gone" } },
      { name: "edit_text_file", arguments: { path: "gone", old_text: "a", new_text: "b" } },
    ];
    const model = new ScriptedModel([{ calls }, { text: "ok" }]);
    await session.run(model, "go");
    const texts = results(session).map(({ parts, isError }) => [isError, JSON.stringify(parts)]);
    expect(texts.map(([isError]) => isError)).toEqual(calls.map(() => true));
    expect(texts[0]?.[1]).toContain("Did you mean read_text_file? The tools are: read_text_file, list_directory");
    expect(texts[1]?.[1]).toContain("no valid JSON");
    expect(texts[2]?.[1]).toContain("path is missing");
    expect(texts[3]?.[1]).toContain("path must be string, not number");
    expect(texts[4]?.[1]).toContain("no such file");
    expect(session.editor.asked).toEqual([]);
    check(session);
  });

  test("have ids of their own, whatever the model writes", async () => {
    const session = new TestSession(new ScriptedEditor({ files: { "/project/a": "A" } }));
    const calls = [read("a", "same"), read("a", "same"), read("a", "")];
    await session.run(new ScriptedModel([{ calls }, { calls }, { text: "ok" }]), "go");
    check(session);
    expect(results(session)).toHaveLength(6);
  });

  test("beyond the limit of an answer are not carried out", async () => {
    const session = new TestSession(new ScriptedEditor({ files: { "/project/a": "A" } }));
    const calls = [...Array(70)].map((_, index) => read("a", `c${index}`));
    await session.run(new ScriptedModel([{ calls }, { text: "ok" }]), "go");
    expect(results(session).filter(({ isError }) => isError)).toHaveLength(6);
    check(session);
  });

  test("with a huge result are cut in the middle", async () => {
    const tool = serverTool(async () => ({ parts: [{ type: "text", text: `begin${"x".repeat(400_000)}end` }] }));
    const session = new TestSession(new ScriptedEditor(), { serverTools: [tool], permissions: { other: "allow" } });
    await session.run(new ScriptedModel([{ calls: [{ name: "server_tool" }] }, { text: "ok" }]), "go");
    const [{ parts }] = results(session) as [ToolResultPart];
    const { text } = parts[0] as { text: string };
    expect(text.length).toBeLessThanOrEqual(256 * 1024);
    expect(text).toMatch(/^begin[\s\S]*characters were left out[\s\S]*end$/);
  });

  test("of tools that fail or throw are error results", async () => {
    const tool = serverTool(() => Promise.reject(new Error("the server is gone")));
    const session = new TestSession(new ScriptedEditor(), { serverTools: [tool], permissions: { other: "allow" } });
    await session.run(new ScriptedModel([{ calls: [{ name: "server_tool" }] }, { text: "ok" }]), "go");
    expect(session.lastResult).toBe("The tool failed: the server is gone");
    check(session);
  });
});

function serverTool(run: AgentTool["run"], kind: AgentTool["kind"] = "other"): AgentTool {
  return {
    name: "server_tool",
    description: "d",
    parameters: { type: "object" },
    kind,
    preview: () => ({ title: "t" }),
    run,
  };
}

describe("permissions", () => {
  const write = { name: "write_text_file", arguments: { path: "a", content: "new" } };
  const twice = () => new ScriptedModel([{ calls: [write] }, { calls: [write] }, { text: "ok" }]);

  test("are asked with the diff, before anything is done", async () => {
    const seen: (string | undefined)[] = [];
    const editor = new ScriptedEditor({
      files: { "/project/a": "old" },
      answer: () => {
        seen.push(editor.files.get("/project/a"));
        return "allow_once";
      },
    });
    const session = new TestSession(editor);
    await session.run(new ScriptedModel([{ calls: [write] }, { text: "ok" }]), "go");
    expect(seen).toEqual(["old"]);
    expect(editor.asked[0]?.content).toEqual([{ type: "diff", path: "/project/a", oldText: "old", newText: "new" }]);
    expect(editor.files.get("/project/a")).toBe("new");
    check(session);
  });

  test.each([
    ["allow_once", 2, "new"],
    ["allow_always", 1, "new"],
    ["reject_once", 2, undefined],
    ["reject_always", 1, undefined],
  ] as const)("%s: the second call leads to %d questions in all", async (answer, questions, content) => {
    const editor = new ScriptedEditor({ answer: () => answer });
    const session = new TestSession(editor);
    expect(await session.run(twice(), "go")).toEqual({ stopReason: "end_turn" });
    expect(editor.asked).toHaveLength(questions);
    expect(editor.files.get("/project/a")).toBe(content as string);
    if (content === undefined) expect(session.lastResult).toContain("Do not try it again");
    check(session);
  });

  test("an answer of cancelled ends the turn, and closes what was open", async () => {
    const editor = new ScriptedEditor({ answer: () => "cancelled" });
    const session = new TestSession(editor);
    const model = new ScriptedModel([{ calls: [write, write] }, { text: "never" }]);
    expect(await session.run(model, "go")).toEqual({ stopReason: "cancelled" });
    expect(results(session)).toHaveLength(2);
    expect(session.lastResult).toContain("cancelled by the user");
    check(session);
    expect(await session.run(new ScriptedModel([{ text: "ok" }]), "go on")).toEqual({ stopReason: "end_turn" });
  });

  const writes = (...paths: string[]) => paths.map((path) => ({ ...write, arguments: { path, content: "x" } }));
  const asking = (answer: PermissionAnswer, files: Record<string, string> = {}) =>
    new ScriptedEditor({ files, answer: () => answer });

  test("what is outside of the folder is asked for each time, whatever the configuration allows", async () => {
    const editor = asking("allow_once", { "/out/a": "A" });
    const session = new TestSession(editor);
    const calls = [read("/out/a"), read("../out/a"), read("../project/../out/a")];
    await session.run(new ScriptedModel([{ calls }, { text: "ok" }]), "go");
    expect(editor.asked.map(({ locations }) => locations[0]?.path)).toEqual(["/out/a", "/out/a", "/out/a"]);
    expect(editor.askedFor).toEqual([["/out"], ["/out"], ["/out"]]);
    expect(results(session).every(({ isError }) => isError !== true)).toBe(true);
    check(session);
  });

  test("an always for a place outside holds for that tool in that folder and below, and nowhere else", async () => {
    const editor = asking("allow_always", { "/out/a": "A", "/out/below/c": "C", "/outer/d": "D" });
    const session = new TestSession(editor);
    const calls = [
      ...writes("/out/a", "/out/b", "../out/below/c"), // one question
      read("/out/a"), // another tool
      ...writes("/outer/d", "/out/../e"), // another folder, and one above
      ...writes("inside"), // and never for the session's own
    ];
    await session.run(new ScriptedModel([{ calls }, { text: "ok" }]), "go");
    expect(editor.asked.map(({ locations }) => locations[0]?.path)).toEqual([
      ...["/out/a", "/out/a", "/outer/d", "/e", "/project/inside"],
    ]);
    expect(editor.askedFor).toEqual([["/out"], ["/out"], ["/outer"], ["/"], []]);
    check(session);
  });

  test("an always from inside holds for no place outside", async () => {
    const editor = asking("allow_always");
    const session = new TestSession(editor);
    await session.run(new ScriptedModel([{ calls: writes("a", "b", "/out/c") }, { text: "ok" }]), "go");
    expect(editor.askedFor).toEqual([[], ["/out"]]);
    check(session);
  });

  test("a rejection for a place outside holds there, and the session's own folder stays open", async () => {
    const editor = asking("reject_always", { "/project/a": "A" });
    const session = new TestSession(editor);
    const model = new ScriptedModel([{ calls: [read("/out/b"), read("/out/c"), read("a")] }, { text: "ok" }]);
    await session.run(model, "go");
    expect(editor.askedFor).toEqual([["/out"]]);
    expect(results(session).map(({ isError }) => isError === true)).toEqual([true, true, false]);
    expect(JSON.stringify(results(session)[1])).toContain("has rejected this tool in /out for the whole session");
    check(session);
  });

  test("what the configuration denies is denied outside, too, whatever was answered before", async () => {
    const editor = asking("allow_always");
    const permissions: Partial<Record<ToolKind, Permission>> = {};
    const session = new TestSession(editor, { permissions });
    const model = new ScriptedModel([
      { calls: writes("/out/a") },
      () => {
        permissions.edit = "deny";
        return { calls: writes("/out/b") };
      },
      { text: "ok" },
    ]);
    await session.run(model, "go");
    expect([...editor.files.keys()]).toEqual(["/out/a"]);
    expect(editor.asked).toHaveLength(1);
    check(session);
  });

  test("what is in another folder of the project is not outside, and the model knows of it", async () => {
    const files = { "/lib/a": "A", "/library/a": "A", "/lib/../etc/a": "A" };
    const editor = new ScriptedEditor({ files, answer: () => "reject_once" });
    const session = new TestSession(editor, { directories: ["/lib", "/more/"] });
    const model = new ScriptedModel([{ calls: Object.keys(files).map((path) => read(path)) }, { text: "ok" }]);
    await session.run(model, "go");
    expect(editor.asked.map(({ locations }) => locations[0]?.path).sort()).toEqual(["/etc/a", "/library/a"]);
    expect(model.requests[0]?.system[0]?.text).toContain("These folders belong to it, too: /lib, /more/.");
    check(session);
  });

  test("mode architect changes nothing, whatever the configuration and the memory say, and remembers nothing", async () => {
    const tool = serverTool(async () => ({ parts: [] }));
    const editor = new ScriptedEditor({ answer: () => "allow_always" });
    const session = new TestSession(editor, {
      choices: { mode: "architect" },
      serverTools: [tool],
      permissions: { edit: "allow", execute: "allow" },
    });
    session.memory.set("write_text_file", "allow");
    const run = { name: "run_command", arguments: { command: "rm -rf x" } };
    const other = { name: "server_tool" };
    const model = new ScriptedModel([{ calls: [write, run, other, other] }, { text: "ok" }]);
    await session.run(model, "go");
    expect(results(session).map(({ isError }) => isError === true)).toEqual([true, true, false, false]);
    expect(editor.files.size).toBe(0);
    expect(editor.commands).toEqual([]);
    expect(editor.asked).toHaveLength(2);
    expect(session.memory.get("server_tool")).toBeUndefined();
    const offered = model.requests[0]?.tools.map(({ name }) => name);
    expect(offered).toEqual(["read_text_file", "list_directory", "search_files", "update_plan", "server_tool"]);
    check(session);
  });

  test("mode architect offers no tool of a server that says that it changes something", async () => {
    const tool = (name: string, more: Partial<AgentTool> = {}) => ({
      ...serverTool(async () => ({ parts: [] })),
      name,
      ...more,
    });
    const editor = new ScriptedEditor();
    const session = new TestSession(editor, {
      choices: { mode: "architect" },
      serverTools: [tool("unmarked"), tool("changing", { isChanging: true })],
    });
    const model = new ScriptedModel([{ calls: [{ name: "changing" }, { name: "unmarked" }] }, { text: "ok" }]);
    await session.run(model, "go");
    const offered = model.requests[0]?.tools.map(({ name }) => name);
    expect([offered?.includes("unmarked"), offered?.includes("changing")]).toEqual([true, false]);
    expect(results(session).map(({ isError }) => isError === true)).toEqual([true, false]);
    expect(editor.asked).toHaveLength(1);
    check(session);
    session.choices.mode = "code";
    const coding = new ScriptedModel([{ text: "ok" }]);
    await session.run(coding, "go");
    expect(coding.requests[0]?.tools.map(({ name }) => name)).toContain("changing");
  });

  test("mode ask looks only; a change of the mode counts from the next call on", async () => {
    const editor = new ScriptedEditor({ files: { "/project/a": "A" } });
    const session = new TestSession(editor, {
      choices: { mode: "ask" },
      serverTools: [serverTool(async () => ({ parts: [] }))],
    });
    const model = new ScriptedModel([
      () => {
        session.choices.mode = "code";
        session.choices.model = "other";
        return { calls: [write, read("a")] };
      },
      { calls: [write] },
      { text: "ok" },
    ]);
    await session.run(model, "go");
    expect(model.requests.map(({ model }) => model)).toEqual(["m", "other", "other"]);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual([
      "read_text_file",
      "list_directory",
      "search_files",
      "update_plan",
    ]);
    expect(results(session).map(({ isError }) => isError === true)).toEqual([true, false, false]);
    expect(editor.files.get("/project/a")).toBe("new");
    check(session);
  });

  test("a kind that the configuration denies is neither offered nor carried out", async () => {
    const session = new TestSession(new ScriptedEditor(), { permissions: { edit: "deny" } });
    const model = new ScriptedModel([{ calls: [write] }, { text: "ok" }]);
    await session.run(model, "go");
    expect(model.requests[0]?.tools.map(({ name }) => name)).not.toContain("write_text_file");
    expect(session.lastResult).toContain("the configuration does not allow tools of the kind edit");
    check(session);
  });
});

describe("an editor that can do nothing", () => {
  const can = { readTextFile: false, writeTextFile: false, terminal: false };

  test("has a chat without tools", async () => {
    const session = new TestSession(new ScriptedEditor({ can }));
    const model = new ScriptedModel([{ text: "hi" }]);
    expect(await session.run(model, "hi")).toEqual({ stopReason: "end_turn" });
    expect(model.requests[0]?.tools).toEqual([]);
    expect(model.requests[0]?.system[0]?.text).toContain("You have no tools");
  });

  test("has the tools of its servers", async () => {
    const session = new TestSession(new ScriptedEditor({ can }), {
      serverTools: [serverTool(async () => ({ parts: [] }))],
    });
    const model = new ScriptedModel([{ calls: [{ name: "server_tool" }] }, { text: "hi" }]);
    await session.run(model, "hi");
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["update_plan", "server_tool"]);
    expect(session.lastResult).toBe("(The tool gave no output.)");
  });
});

describe("cancelled", () => {
  /** Fails when the turn takes longer than the promised time, with room for a busy machine. */
  const promptly = <Result>(turn: Promise<Result>) => within("the turn settles", turn, 1_000);
  const never = new Promise<never>(() => {});

  test("while the model speaks: what was read stays", async () => {
    const editor = new ScriptedEditor();
    const session = new TestSession(editor);
    const controller = new AbortController();
    const model = new ScriptedModel([{ thought: "hm", text: "half of it", calls: [read("a")], holds: never }]);
    const turn = session.run(model, "go", controller.signal);
    while (textTold(editor.told) !== "half of it") await Bun.sleep(1);
    controller.abort();
    expect(await promptly(turn)).toEqual({ stopReason: "cancelled" });
    expect(session.history[1]).toEqual({ role: "assistant", parts: [{ type: "text", text: "half of it" }] });
    await Bun.sleep(0);
    expect(model.ended).toBe(1);
    check(session);
  });

  test("before it began", async () => {
    const session = new TestSession(new ScriptedEditor());
    const model = new ScriptedModel([{ text: "never" }]);
    expect(await session.run(model, "go", AbortSignal.abort())).toEqual({ stopReason: "cancelled" });
    expect(model.requests).toEqual([]);
    expect(session.history).toHaveLength(1);
  });

  test("in a question", async () => {
    const controller = new AbortController();
    const editor = new ScriptedEditor({
      answer: () => {
        queueMicrotask(() => controller.abort());
        return never;
      },
    });
    const session = new TestSession(editor);
    const calls = [{ name: "run_command", arguments: { command: "x" } }, read("a")];
    expect(await promptly(session.run(new ScriptedModel([{ calls }]), "go", controller.signal))).toEqual({
      stopReason: "cancelled",
    });
    expect(editor.commands).toEqual([]);
    check(session);
  });

  test("in a command: it is killed, and its terminal released", async () => {
    const controller = new AbortController();
    const editor = new ScriptedEditor({ run: () => ({ until: never }) });
    const session = new TestSession(editor, { permissions: { execute: "allow" } });
    const calls = [{ name: "run_command", arguments: { command: "sleep 100" } }];
    const turn = session.run(new ScriptedModel([{ calls }]), "go", controller.signal);
    while (editor.told.every((update) => update.type !== "tool-call-change" || update.change.content === undefined)) {
      await Bun.sleep(1);
    }
    controller.abort();
    expect(await promptly(turn)).toEqual({ stopReason: "cancelled" });
    await Bun.sleep(1);
    expect(editor.terminals).toMatchObject([{ isKilled: true, isReleased: true }]);
    check(session);
  });

  test("while a terminal opens: it is closed when it is there", async () => {
    const controller = new AbortController();
    const opens = Promise.withResolvers<void>();
    const editor = new ScriptedEditor({ run: () => ({ until: never, opens: opens.promise }) });
    const session = new TestSession(editor, { permissions: { execute: "allow" } });
    const calls = [{ name: "run_command", arguments: { command: "sleep 100" } }];
    const turn = session.run(new ScriptedModel([{ calls }]), "go", controller.signal);
    while (editor.commands.length === 0) await Bun.sleep(1);
    controller.abort();
    expect(await promptly(turn)).toEqual({ stopReason: "cancelled" });
    opens.resolve();
    await Bun.sleep(2);
    expect(editor.terminals).toMatchObject([{ isKilled: true, isReleased: true }]);
  });

  test("in a tool that does not listen: nothing is told of it, and nothing asked for it, when the turn is over", async () => {
    const controller = new AbortController();
    const goOn = Promise.withResolvers<void>();
    const over = Promise.withResolvers<unknown>();
    const tool = serverTool(async (_, { editor, show, signal }) => {
      controller.abort();
      await goOn.promise;
      show([{ type: "part", part: { type: "text", text: "late" } }]);
      editor.tell({ type: "text", text: "late" });
      await editor
        .writeTextFile({ path: "/project/late", content: "" }, new AbortController().signal)
        .catch(over.resolve);
      return { parts: [{ type: "text", text: String(signal.aborted) }] };
    });
    const editor = new ScriptedEditor();
    const session = new TestSession(editor, { serverTools: [tool], permissions: { other: "allow" } });
    const model = new ScriptedModel([{ calls: [{ name: "server_tool" }, read("a")] }]);
    expect(await promptly(session.run(model, "go", controller.signal))).toEqual({ stopReason: "cancelled" });
    const told = editor.told.length;
    goOn.resolve();
    await within("the late write is refused", over.promise);
    expect(editor.told).toHaveLength(told);
    expect(editor.files.size).toBe(0);
    expect(results(session)).toHaveLength(2);
    check(session);
    expect(await session.run(new ScriptedModel([{ text: "ok" }]), "go on")).toEqual({ stopReason: "end_turn" });
  });
});

describe("a model that reads no images", () => {
  test("is told of them in words; the conversation keeps them", async () => {
    const image = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AAAA" } } as const;
    const tool = serverTool(async () => ({ parts: [image] }));
    const session = new TestSession(new ScriptedEditor(), { serverTools: [tool], permissions: { other: "allow" } });
    const model = new ScriptedModel([{ calls: [{ name: "server_tool" }] }, { text: "ok" }]);
    Object.assign(model, { readsImages: () => false });
    await session.run(model, [{ type: "text", text: "see" }, image]);
    expect(JSON.stringify(model.requests)).not.toContain("image/png");
    expect(JSON.stringify(session.history).match(/image\/png/g)).toHaveLength(2);
  });
});

test("the prompt names the mode, the folder and the tools", async () => {
  const session = new TestSession(new ScriptedEditor(), { choices: { mode: "architect" } });
  const model = new ScriptedModel([{ text: "ok" }]);
  await session.run(model, "hi");
  const text = model.requests[0]?.system[0]?.text ?? "";
  expect(text).toContain("software architect");
  expect(text).toContain(CWD);
  expect(text).toContain("read_text_file, list_directory, search_files, update_plan.");
  expect(text).not.toContain("Read a file before you change it");
});
