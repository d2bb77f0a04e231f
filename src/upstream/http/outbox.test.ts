import { expect, test } from "bun:test";
import fc from "fast-check";
import { RequestOutbox } from "./outbox.ts";

const SCRATCH_BYTES = 64;

/** A socket that takes as many bytes of each write as it is told, one number per write, and then all. */
function socketTaking(counts: readonly number[]) {
  const left = [...counts];
  const taken: number[] = [];
  return {
    taken,
    writes: 0,
    write(bytes: Uint8Array, from = 0, length = bytes.length - from) {
      this.writes++;
      const count = Math.min(left.shift() ?? length, length);
      taken.push(...bytes.subarray(from, from + Math.max(0, count)));
      return count;
    },
  };
}

test("a request arrives whole and in order, however little the socket takes at a time", () => {
  const body = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: "grapheme", maxLength: 80 }));
  const counts = fc.array(fc.integer({ min: -1, max: 90 }), { maxLength: 12 });
  fc.assert(
    fc.property(fc.nat(100), fc.option(body, { nil: undefined }), counts, (headBytes, sent, taking) => {
      const head = "\xe4".repeat(headBytes);
      const socket = socketTaking(taking);
      const outbox = new RequestOutbox();
      const scratch = Buffer.alloc(SCRATCH_BYTES);
      const bytes = Buffer.from((sent ?? "") as string);
      outbox.send({ isHead: false, head, body: sent, bodyBytes: bytes.length }, socket, scratch);
      scratch.fill(0); // the next request
      for (let flushes = 0; flushes <= taking.length && !outbox.isEmpty; flushes++) outbox.flush(socket);
      expect(outbox.isEmpty).toBe(true);
      expect(socket.taken).toEqual([...Buffer.from(head, "latin1"), ...bytes]);
    }),
  );
});

test("a small request leaves in one write", () => {
  const socket = socketTaking([]);
  new RequestOutbox().send({ isHead: false, head: "head", body: "body", bodyBytes: 4 }, socket, Buffer.alloc(8));
  expect(socket.writes).toBe(1);
});
