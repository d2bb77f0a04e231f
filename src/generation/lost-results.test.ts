// Which calls are given a result that says that there is none.

import { describe, expect, test } from "bun:test";
import type { Message } from "./content.ts";
import { DropList } from "./dropped.ts";
import { pairedResults, withLostResults } from "./lost-results.ts";

const call = (...ids: string[]): Message => ({
  role: "assistant",
  parts: ids.map((id) => ({ type: "tool-call", id, name: "f", arguments: "" })),
});
const result = (...ids: string[]): Message => ({
  role: "user",
  parts: ids.map((callId) => ({ type: "tool-result", callId, parts: [] })),
});
const says = (role: Message["role"]): Message => ({ role, parts: [{ type: "text", text: "hi" }] });
const search: Message = {
  role: "assistant",
  parts: [{ type: "tool-call", id: "s", name: "web_search", arguments: "", serverSide: true }],
};

describe("complete conversations stay as they are", () => {
  test.each<[string, Message[]]>([
    ["all results", [says("user"), call("a", "b"), result("b", "a"), says("assistant")]],
    ["results in several messages", [call("a", "b"), result("a"), says("system"), result("b")]],
    ["calls of neighbouring messages", [call("a"), call("b"), result("a", "b")]],
    ["a search that the vendor made", [search, says("user")]],
    ["no calls", [says("user")]],
  ])("%s", (_, messages) => {
    const dropped = new DropList();
    expect(withLostResults(messages, dropped)).toBe(messages);
    expect(dropped.entries).toEqual([]);
  });
});

describe("lost results are given behind the calls", () => {
  const idsOf = (message: Message) => message.parts.flatMap((part) => (part.type === "tool-result" ? part.callId : []));
  test.each<[string, Message[], number, string[]]>([
    ["none came", [call("a", "b"), says("user")], 1, ["a", "b"]],
    ["some came", [call("a", "b"), result("a")], 1, ["b"]],
    ["the calls are the end", [says("user"), call("a")], 2, ["a"]],
    ["a result that came after the next answer", [call("a"), says("user"), says("assistant"), result("a")], 1, ["a"]],
  ])("%s", (_, messages, place, ids) => {
    const dropped = new DropList();
    const complete = withLostResults(messages, dropped);
    expect(complete.length).toBe(messages.length + 1);
    expect(idsOf(complete[place] as Message)).toEqual(ids);
    expect(complete[place]?.parts[0]).toMatchObject({ isError: true, parts: [{ type: "text" }] });
    expect(dropped.entries.map(({ feature }) => feature)).toEqual(["tool_calls"]);
  });
});

describe("results without their calls are told as text", () => {
  const hosted: Message = {
    role: "assistant",
    parts: [{ type: "opaque", protocol: "responses", value: { type: "tool_search_call", call_id: "s" } }],
  };
  test.each<[string, Message[]]>([
    ["the call is one of a hosted tool", [says("user"), hosted, result("s")]],
    ["the history was cut off", [result("s"), says("assistant")]],
    ["the call is in an earlier turn", [call("s"), result("s"), says("assistant"), result("s")]],
  ])("%s", (_, messages) => {
    const dropped = new DropList();
    const last = pairedResults(messages, dropped).findLast(({ role }) => role === "user");
    expect(last?.parts).toEqual([{ type: "text", text: "Result of the tool call s:" }]);
    expect(dropped.entries.map(({ feature }) => feature)).toEqual(["tool result"]);
  });

  test("what they say is kept", () => {
    const failed: Message = {
      role: "user",
      parts: [{ type: "tool-result", callId: "s", parts: [{ type: "text", text: "no" }], isError: true }],
    };
    expect(pairedResults([failed], new DropList())[0]?.parts).toEqual([
      { type: "text", text: "Error of the tool call s:" },
      { type: "text", text: "no" },
    ]);
  });
});
