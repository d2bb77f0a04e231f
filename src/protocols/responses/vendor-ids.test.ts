// The ids of answers that pass untouched.

import { describe, expect, test } from "bun:test";
import { outputItemIds, responseIdAtStart } from "./vendor-ids.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("the id of an answer", () => {
  test.each([
    ['{"id":"resp_1","object":"response"}', "resp_1"],
    ['\n { "object" : "response", "created_at": 1.5e3, "error": null, "id" : "r" }', "r"],
    ['{"instructions":"say \\"id\\":\\"resp_x\\"","id":"resp_1"}', "resp_1"],
    ['{"metadata":{"id":"resp_x"},"id":"resp_1"}', undefined],
    ['{"response":{"id":"resp_x"}}', undefined],
    [`{"instructions":"${"x".repeat(5000)}","id":"resp_1"}`, undefined],
    ["[]", undefined],
    ["", undefined],
  ])("plain: %s", (text, id) => {
    expect(responseIdAtStart(bytes(text), "plain")).toBe(id);
  });

  test.each([
    ['event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n', "resp_1"],
    [
      ': hello\n\ndata: {"type":"response.created","sequence_number":0,"response":{"object":"r","id":"resp_1"}}\n\n',
      "resp_1",
    ],
    ['data: {"type":"response.created","response":{"metadata":{"id":"resp_x"},"id":"resp_1"}}\n\n', undefined],
    ['data: {"type":"response.output_text.delta","item_id":"msg_1"}\n\n', undefined],
  ])("streamed: %s", (text, id) => {
    expect(responseIdAtStart(bytes(text), "stream")).toBe(id);
  });
});

test("the ids of items", () => {
  expect(outputItemIds({ output: [{ id: "msg_1" }, {}, null, { id: 1 }, { id: "rs_1" }] })).toEqual(["msg_1", "rs_1"]);
  expect(outputItemIds({ output: "none" })).toEqual([]);
});
