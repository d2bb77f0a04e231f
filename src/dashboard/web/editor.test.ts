// Editing a section: what becomes of the text while answers are still under way.

import { expect, test } from "bun:test";
import { waitFor } from "../../../test/support/wait-for.ts";
import { createDrafts } from "./app/drafts.ts";
import type { CurlRequest } from "./curl.ts";
import { createEditor, isDirty } from "./editor.ts";

/** An editor of the section logging whose exports are answered one by one; every check is fine. */
function bench() {
  const exports: ((content: string) => void)[] = [];
  let checks = 0;
  const api = {
    ask({ path }: CurlRequest) {
      if (path.endsWith("/export")) {
        return new Promise<never>((resolve) => exports.push((content) => resolve({ content, version: 1 } as never)));
      }
      checks++;
      return Promise.resolve({ valid: true, errors: [], warnings: [], changes_preview: {} } as never);
    },
  };
  const editor = createEditor({ api, drafts: createDrafts() }, "logging");
  async function loaded(content: string): Promise<void> {
    await waitFor("the text is asked for", () => exports.length > 0);
    exports.shift()?.(content);
    await waitFor("the text is there", () => editor.state.value.text !== undefined);
  }
  return { editor, loaded, exports, checks: () => checks };
}

const IN_FORCE = "level: info\n";

test("edits that are undone while they wait for their check are gone, however late the text comes", async () => {
  const { editor, loaded, exports } = bench();
  await loaded(IN_FORCE);
  editor.type("level: debug\n");
  expect(isDirty(editor.state.value)).toBe(true);
  editor.reset();
  editor.check(); // as the timer does that began with the edit
  await waitFor("the text is asked for again", () => exports.length > 0);
  exports.shift()?.(IN_FORCE);
  await waitFor("the edit is gone", () => editor.state.value.text === IN_FORCE);
  expect(isDirty(editor.state.value)).toBe(false);
});

test("the text of another format is not mixed with a check of the one before", async () => {
  const { editor, loaded, checks } = bench();
  await loaded(IN_FORCE);
  editor.type("level: debug\n");
  editor.choose("json");
  editor.check();
  await loaded("{}\n");
  await waitFor("it is the other format's", () => editor.state.value.text === "{}\n");
  expect(checks()).toBe(0);
});
