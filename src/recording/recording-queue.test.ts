import { expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import type { FinishedRecording } from "./recorder.ts";
import { createRecordingQueue } from "./recording-queue.ts";

function started() {
  const seen = { batches: [] as string[][], heldBytes: 0, underWay: 0, most: 0 };
  const gate = Promise.withResolvers<void>();
  const queue = createRecordingQueue({
    async keep(recordings) {
      seen.most = Math.max(seen.most, ++seen.underWay);
      seen.batches.push(recordings.map(({ path }) => path));
      await gate.promise;
      seen.underWay--;
    },
    giveBack(bytes) {
      seen.heldBytes -= bytes;
    },
  });
  const add = (path: string, bytes = 10) => {
    seen.heldBytes += bytes;
    queue.add({ path } as FinishedRecording, bytes);
  };
  return { seen, queue, add, open: gate.resolve };
}

test("recordings wait for each other, and are kept after a moment", async () => {
  const { seen, add, open } = started();
  open();
  for (const path of ["one", "two"]) add(path);
  expect(seen.batches).toEqual([]);
  await waitFor("they are kept", () => seen.heldBytes === 0);
  expect(seen.batches).toEqual([["one", "two"]]);
});

test("many recordings, and large ones, do not wait", async () => {
  const { seen, add, queue, open } = started();
  for (let count = 0; count < 64; count++) add(`${count}`);
  add("large", 2 * 1024 ** 2);
  add("late");
  open();
  await queue.settle();
  expect(seen.batches.map(({ length }) => length)).toEqual([64, 1, 1]);
  expect(seen).toMatchObject({ heldBytes: 0, most: 1 });
});

test("who settles it waits for all that came before, and for nothing where nothing came", async () => {
  const { seen, add, queue, open } = started();
  await queue.settle();
  expect(seen.batches).toEqual([]);
  add("one");
  let isSettled = false;
  const settled = queue.settle().then(() => {
    isSettled = true;
  });
  await waitFor("it is under way", () => seen.underWay === 1);
  expect([isSettled, seen.heldBytes]).toEqual([false, 10]);
  open();
  await settled;
  expect(seen.heldBytes).toBe(0);
});
