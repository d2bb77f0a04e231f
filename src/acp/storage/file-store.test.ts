// The folder's limits: the oldest go first, but neither those that are held nor those that somebody may want to repair.

import { afterEach, expect, test } from "bun:test";
import { existsSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../../test/support/acp-bed.ts";
import { silentLogger } from "../../logging/logger.ts";
import { fileStore } from "./file-store.ts";

const made = temporaryFolder();
afterEach(made.remove);

test("old sessions make room, held and damaged ones stay", async () => {
  const store = fileStore(made.path, silentLogger(), { maxSessions: 4, maxBytes: 1024 ** 2, maxFileBytes: 1024 ** 2 });
  const create = async (isKept = false) => {
    const sessionId = crypto.randomUUID();
    const at = new Date().toISOString();
    const log = await store.create({
      sessionId,
      createdAt: at,
      updatedAt: at,
      cwd: "/",
      additionalDirectories: [],
      title: undefined,
      mode: "code",
      model: undefined,
      effort: undefined,
    });
    if (!isKept) log.close();
    return { sessionId, log };
  };
  const path = (sessionId: string) => join(made.path, `${sessionId}.jsonl`);
  const age = (sessionId: string, seconds: number) => utimesSync(path(sessionId), 1_000 + seconds, 1_000 + seconds);
  const held = await create(true);
  const damaged = await create();
  const oldest = await create();
  const newer = await create();
  writeFileSync(path(damaged.sessionId), "nonsense\n");
  for (const [index, { sessionId }] of [held, damaged, oldest, newer].entries()) age(sessionId, index);
  await create();
  expect([held, damaged, oldest, newer].map(({ sessionId }) => existsSync(path(sessionId)))).toEqual([
    true,
    true,
    false,
    true,
  ]);
  held.log.close();
  expect(await store.open("../../etc/passwd")).toBeUndefined();
  expect(store.delete(`../${held.sessionId}`)).toBe(false);
});
