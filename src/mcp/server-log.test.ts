// What servers print, as log lines: bounded, one by one, without secrets.

import { expect, test } from "bun:test";
import { maskingOf, oneLine, secretsOf } from "./masked.ts";
import { boundedLog, logStream } from "./server-log.ts";

function streamOf(...pieces: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

test("lines are let through, bounded in length, control characters taken out", async () => {
  const lines: string[] = [];
  const pieces = [
    "one\n\n  \ntw",
    "o\u001b[31m red\u0007\n",
    `${"x".repeat(5_000)}\n`,
    `${"y".repeat(20_000)}\n`,
    "without end",
  ];
  await logStream(
    streamOf(...pieces),
    (text) => text,
    (line) => lines.push(line),
  );
  expect(lines).toEqual([
    "one",
    "two [31m red",
    `${"x".repeat(1_000)} …`,
    "(a very long line was left out)",
    "without end",
  ]);
});

test("a flood is counted instead of written", () => {
  const lines: string[] = [];
  let nowMs = 0;
  const log = boundedLog(
    (line) => lines.push(line),
    () => nowMs,
  );
  for (let index = 0; index < 1_000; index++) log(`line ${index}`);
  expect(lines.length).toBe(50);
  nowMs = 10_000;
  log("later");
  expect(lines.slice(50)).toEqual(["(950 lines were left out)", "later"]);
});

test("secrets of environment, headers and addresses are masked, the lines of a key one by one", () => {
  const mask = maskingOf(
    secretsOf({
      env: { KEY: "-----BEGIN-----\nsekret-line-1\nsekret-line-2", FLAG: "1", LONGER: "sekret-line-1-and-more" },
      headers: { Authorization: "Bearer sekret-token" },
      url: "https://me:sekret-password@host/mcp?key=sekret-query",
    }),
  );
  expect(mask("a sekret-line-2 b sekret-line-1-and-more c 1")).toBe("a *** b *** c 1");
  expect(mask("Bearer sekret-token, sekret-token; sekret-query, sekret-password")).toBe("***, ***; ***, ***");
});

test("one line of what others wrote", () => {
  expect(oneLine(" a\r\n\tb\u2028c\u0085d ")).toBe("a b c d");
  expect(oneLine("x".repeat(600))).toBe(`${"x".repeat(500)} …`);
});
