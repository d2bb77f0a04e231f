// Turns of any course: whatever models, tools and people do, and whenever a turn is cancelled, the conversation stays
// well-formed, the updates keep their order, the turn settles promptly, and the session goes on.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { checkHistory, checkUpdates, TestSession } from "../../test/support/agent-turns.ts";
import { ScriptedEditor } from "../../test/support/scripted-editor.ts";
import { type ScriptedAnswer, ScriptedModel } from "../../test/support/scripted-model.ts";
import { within } from "../../test/support/wait-for.ts";
import { MODES, type Permission, type TurnEnd } from "./agent.ts";
import type { PermissionAnswer } from "./editor.ts";
import { ModelFailure } from "./model-failure.ts";
import { type AgentTool, ToolError } from "./tool.ts";

const path = fc.constantFrom("a", "b", "gone", "/etc/passwd", "");
const text = fc.constantFrom("", "A", "one\r\ntwo", "x".repeat(3_000));
const call = fc.oneof(
  fc.record({ name: fc.constant("read_text_file"), arguments: fc.record({ path }) }),
  fc.record({ name: fc.constant("write_text_file"), arguments: fc.record({ path, content: text }) }),
  fc.record({
    name: fc.constant("edit_text_file"),
    arguments: fc.record({ path, old_text: text, new_text: text }),
  }),
  fc.record({
    name: fc.constant("run_command"),
    arguments: fc.record({ command: fc.constantFrom("make", "make", "hang") }),
  }),
  fc.record({ name: fc.constant("search_files"), arguments: fc.constant({ pattern: "x" }) }),
  fc.record({
    name: fc.constant("update_plan"),
    arguments: fc.constant({ entries: [{ content: "c", status: "pending" }] }),
  }),
  fc.record({
    name: fc.constant("server_tool"),
    arguments: fc.record({ what: fc.constantFrom("ok", "ok", "fail", "throw", "hang", "stray") }),
  }),
  fc.record({ name: fc.constantFrom("nobody", "read_text_file"), arguments: fc.constantFrom("{", "[]", "", "7") }),
);
const answer: fc.Arbitrary<ScriptedAnswer> = fc.record(
  {
    thought: fc.constantFrom("hm", ""),
    text: fc.constantFrom("said", "", " "),
    calls: fc
      .array(fc.tuple(call, fc.constantFrom(undefined, "same", "")), { maxLength: 5 })
      .map((calls) => calls.map(([each, id]) => ({ ...each, ...(id !== undefined && { id }) }))),
    finish: fc.constantFrom("stop", "length", "content-filter", "pause", "tool-calls", "none"),
    refusal: fc.constant("no"),
    failure: fc.constantFrom(
      { message: "no", status: 400 },
      { message: "maximum context", status: 400 },
      { message: "down", status: 503 },
    ),
    usage: fc.constant({ input: { total: 5_000 }, output: { total: 10 } }),
  },
  { requiredKeys: [] },
);
/** Most answers only say something or call something. */
const likely = fc.oneof(
  {
    weight: 4,
    arbitrary: answer.map(({ text, calls, thought }) => ({
      ...(text && { text }),
      ...(thought && { thought }),
      ...(calls && { calls }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      text: fc.constant("so"),
      finish: fc.constantFrom("length" as const, "content-filter" as const),
    }),
  },
  { weight: 1, arbitrary: answer },
);
const permissionAnswer = fc.constantFrom<(PermissionAnswer | "hang")[]>(
  "allow_once",
  "allow_once",
  "allow_always",
  "reject_once",
  "reject_always",
  "cancelled",
  "hang",
);

const never = new Promise<never>(() => {});

function serverTool(strays: Promise<unknown>[]): AgentTool {
  return {
    name: "server_tool",
    description: "d",
    parameters: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    kind: "other",
    preview({ what }) {
      if (what === "fail") throw new ToolError("not so");
      return { title: "t" };
    },
    async run({ what }, { show, editor }) {
      if (what === "throw") throw new Error("broken");
      if (what === "hang") return await never;
      if (what === "stray") {
        // Goes on when nobody waits for it any more.
        const stray = Bun.sleep(3).then(() => {
          show([]);
          editor.tell({ type: "text", text: "STRAY" });
        });
        strays.push(stray);
      }
      return { parts: [{ type: "text", text: String(what) }] };
    },
  };
}

const scenario = fc.record({
  turns: fc.array(fc.array(likely, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
  answers: fc.array(permissionAnswer, { minLength: 1, maxLength: 6 }),
  mode: fc.constantFrom(...MODES),
  policy: fc.constantFrom<Permission[]>("allow", "ask", "deny"),
  window: fc.constantFrom(undefined, 1_500, 100_000),
  maxTurns: fc.integer({ min: 1, max: 4 }),
  /** After so many updates; what hangs is cancelled in any case. */
  cancelAfter: fc.array(fc.oneof(fc.nat(12), fc.constant(1_000)), { minLength: 3, maxLength: 3 }),
});

test("every turn keeps the rules", async () => {
  const ends = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(scenario, async ({ turns, answers, mode, policy, window, maxTurns, cancelAfter }) => {
      const strays: Promise<unknown>[] = [];
      let questions = 0;
      let cancelAt = Number.POSITIVE_INFINITY;
      let controller = new AbortController();
      const editor = new ScriptedEditor({
        files: { "/project/a": "A", "/project/b": "one\r\ntwo\r\n" },
        answer() {
          const given = answers[questions++ % answers.length] ?? "allow_once";
          return given === "hang" ? never : given;
        },
        run: ({ args }) => (args.includes("hang") ? { until: never } : { output: "out" }),
      });
      const tell = editor.tell.bind(editor);
      editor.tell = (update) => {
        tell(update);
        if (editor.told.length === cancelAt) controller.abort();
      };
      const session = new TestSession(editor, {
        choices: { mode },
        serverTools: [serverTool(strays)],
        permissions: { edit: policy, execute: policy, other: policy },
        maxTurns,
      });
      for (const [index, script] of turns.entries()) {
        controller = new AbortController();
        cancelAt = editor.told.length + 1 + (cancelAfter[index] ?? 0);
        const model = new ScriptedModel(
          [...script, ...Array(8).fill({ text: "the end" })],
          window === undefined ? {} : { window },
        );
        const running = session.run(model, `prompt ${index}`, controller.signal);
        // What hangs is ended by the person.
        const late = setTimeout(() => controller.abort(), 10);
        const end = await within("the turn settles", settled(running), 1_000);
        clearTimeout(late);
        ends.set(end, (ends.get(end) ?? 0) + 1);
        const told = editor.told.length;
        checkHistory(session.history);
        checkUpdates(editor.told);
        expect(session.kept).toEqual(session.history);
        await Promise.all(strays.splice(0));
        expect(editor.told.length).toBe(told);
        if (controller.signal.aborted) expect(editor.terminals.every(({ isReleased }) => isReleased)).toBe(true);
      }
      controller = new AbortController();
      cancelAt = Number.POSITIVE_INFINITY;
      const model = new ScriptedModel([{ text: "still here" }], window === undefined ? {} : { window });
      expect(await session.run(model, "and now?", controller.signal)).toEqual({ stopReason: "end_turn" });
      for (const { messages } of model.requests) checkSent(messages);
    }),
    { numRuns: 120 },
  );
  // All ways out were taken.
  for (const end of ["end_turn", "cancelled", "max_tokens", "refusal", "max_turn_requests", "failure"]) {
    expect([end, (ends.get(end) ?? 0) > 0]).toEqual([end, true]);
  }
});

async function settled(running: Promise<TurnEnd>): Promise<string> {
  try {
    return (await running).stopReason;
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    return "failure";
  }
}

function checkSent(messages: Parameters<typeof checkHistory>[0]): void {
  checkHistory(messages);
  expect(messages[0]?.role).toBe("user");
}
