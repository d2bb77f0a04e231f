// How calls of the agent's own tools are shown when a conversation is told again.

import { expect, test } from "bun:test";
import type { Message } from "../generation/content.ts";
import { replayOf } from "./replay.ts";
import type { CallNote } from "./storage/store.ts";

const PATH = "/project/a.ts";

function shown(name: string, args: object, { isError = false, note = true } = {}): unknown {
  const history: Message[] = [
    { role: "assistant", parts: [{ type: "tool-call", id: "c", name, arguments: JSON.stringify(args) }] },
    { role: "user", parts: [{ type: "tool-result", callId: "c", parts: [{ type: "text", text: "Done." }], isError }] },
  ];
  const looks: CallNote = { title: "Edit a.ts", kind: "edit", locations: [{ path: PATH, line: 3 }] };
  const [replayed] = replayOf(history, new Map(note ? [["c", looks]] : []));
  return replayed?.update.content;
}

const TEXT = [{ type: "content", content: { type: "text", text: "Done." } }];
const EDIT = { path: "a.ts", old_text: "a", new_text: "b" };

test("an edit is the difference that it made", () => {
  expect(shown("edit_text_file", EDIT)).toEqual([{ type: "diff", path: PATH, oldText: "a", newText: "b" }]);
});

test("a written file is its text", () => {
  expect(shown("write_text_file", { path: "a.ts", content: "all" })).toEqual([
    { type: "diff", path: PATH, newText: "all" },
  ]);
});

test("what changed nothing, and what is not known any more, is its result", () => {
  expect(shown("edit_text_file", EDIT, { isError: true })).toEqual(TEXT);
  expect(shown("edit_text_file", EDIT, { note: false })).toEqual(TEXT);
  expect(shown("read_text_file", { path: "a.ts" })).toEqual(TEXT);
});
