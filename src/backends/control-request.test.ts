import { describe, expect, test } from "bun:test";
import { createPacer, failureText, timerMs } from "./control-request.ts";

describe("the pacer", () => {
  test("lets a number begin at once and the next ones later, in order", async () => {
    const pacer = createPacer(2, 20);
    const begun: number[] = [];
    const all = Promise.all([0, 1, 2, 3, 4].map((index) => pacer.enter().then(() => begun.push(index))));
    await Promise.resolve();
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    await all;
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  test("closed, it holds nobody back", async () => {
    const pacer = createPacer(1, 3_600_000);
    const waiting = [pacer.enter(), pacer.enter(), pacer.enter()];
    pacer.close();
    await Promise.all([...waiting, pacer.enter()]);
  });
});

test("failures are told by their codes, never by messages that may quote secrets", () => {
  expect(failureText({ code: "ECONNREFUSED", message: "secret" })).toBe("connection refused");
  expect(failureText({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" })).toContain("certificate");
  expect(failureText({ code: "EODD", message: "secret" })).toBe("the request failed (EODD)");
  expect(failureText(new TypeError("Header has value secret"))).toBe("the request could not be sent");
  expect(failureText({ code: "constructor" })).toBe("the request failed (constructor)");
  expect(failureText(null)).toBe("the request could not be sent");
});

test("no timer is asked to wait longer than it can", () => {
  expect(timerMs(1e15)).toBe(2 ** 31 - 1);
  expect(timerMs(-5)).toBe(0);
});
