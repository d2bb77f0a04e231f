// A file that somebody else holds for a while is worked on when it is free.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDurableDatabase, whenFree } from "./durable-database.ts";

const folder = mkdtempSync(join(tmpdir(), "signalbox-database-"));
afterAll(() => rmSync(folder, { recursive: true }));

const schema = { version: 1, sql: "CREATE TABLE notes (text TEXT)" };

test("what finds it locked for longer than SQLite waits is done all the same, and once", async () => {
  const path = join(folder, "shared.db");
  const [holder, other] = [openDurableDatabase(path, schema), openDurableDatabase(path, schema)];
  let tries = 0;
  const note = () => {
    tries++;
    return other.run("INSERT INTO notes VALUES ('kept')").changes;
  };
  holder.run("BEGIN IMMEDIATE");
  const noted = whenFree(note);
  // SQLite itself has given up once when this process is heard again.
  expect(tries).toBe(1);
  holder.run("COMMIT");
  expect(await noted).toBe(1);
  expect(tries).toBe(2);
  expect(holder.query("SELECT text FROM notes").all()).toEqual([{ text: "kept" }]);
  holder.close();
  other.close();
});

test("every other trouble is told at once", async () => {
  let tries = 0;
  const work = () => {
    tries++;
    throw new Error("broken");
  };
  await expect(whenFree(work)).rejects.toThrow("broken");
  expect(tries).toBe(1);
});
