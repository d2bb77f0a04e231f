import { describe, expect, test } from "bun:test";
import { NO_SUMS } from "./batch-store.ts";
import { MESSAGE_FORMAT } from "./message-format.ts";

const answer = (status: number, body: string) => ({
  ...{ status, body, requestId: "r", isOutage: false, retryAfterMs: undefined },
  sums: NO_SUMS,
});

function told(status: number, body: string, isAskedAgain = false) {
  const { isError, text } = MESSAGE_FORMAT.answered("a", answer(status, body), isAskedAgain);
  expect(text).not.toContain("\n");
  return { isError, value: JSON.parse(text) };
}

describe("results of message batches", () => {
  test("an answer stays what it is, large numbers included", () => {
    const body = '{"type":"message","n":12345678901234567890}';
    const { text } = MESSAGE_FORMAT.answered("a", answer(200, body), false);
    expect(text).toBe(`{"custom_id":"a","result":{"type":"succeeded","message":${body}}}`);
  });

  test("an error stands in its own shape, and what is no JSON in one that clients read", () => {
    const error = { type: "error", error: { type: "not_found_error", message: "no" }, request_id: "r" };
    expect(told(404, JSON.stringify(error))).toEqual({
      isError: true,
      value: { custom_id: "a", result: { type: "errored", error } },
    });
    expect(told(400, '"<html>"').value.result.error).toMatchObject({ type: "error", error: { type: "api_error" } });
  });

  test("a request that a crash had interrupted says so", () => {
    expect(told(200, "{}", true).value.asked_again).toBe(true);
    expect(told(200, "{}").value).not.toHaveProperty("asked_again");
  });

  test.each([
    ["cancelled", "canceled"],
    ["expired", "expired"],
  ] as const)("without an answer, because the batch is %s", (why, type) => {
    const { isError, text } = MESSAGE_FORMAT.unanswered("a", why);
    expect([isError, JSON.parse(text)]).toEqual([true, { custom_id: "a", result: { type } }]);
  });
});
