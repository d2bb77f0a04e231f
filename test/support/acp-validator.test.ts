// The validator sees what is wrong: each rule broken once, in a conversation that is right without it.

import { expect, test } from "bun:test";
import { complaintsOf, type Said } from "./acp-validator.ts";

const client = (message: object): Said => ({ from: "client", message: { jsonrpc: "2.0", ...message } });
const agent = (message: object): Said => ({ from: "agent", message: { jsonrpc: "2.0", ...message } });
const update = (told: object, more: object = { content: [] }) =>
  agent({ method: "session/update", params: { sessionId: "s", update: told, ...more } });
const chunk = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "a" } };
const call = { sessionUpdate: "tool_call", toolCallId: "t", title: "T", status: "pending" };
const ended = { sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed" };

const begin: Said[] = [
  client({ id: 0, method: "initialize", params: { protocolVersion: 1 } }),
  agent({ id: 0, result: { protocolVersion: 1 } }),
  client({ id: 1, method: "session/new", params: {} }),
  agent({ id: 1, result: { sessionId: "s" } }),
];
const prompt = client({ id: 2, method: "session/prompt", params: { sessionId: "s", prompt: [] } });
const end = agent({ id: 2, result: { stopReason: "end_turn" } });
const ask = (more: object = {}) =>
  agent({
    id: 0,
    method: "session/request_permission",
    params: {
      sessionId: "s",
      toolCall: { toolCallId: "t" },
      options: [{ optionId: "allow_once", name: "A", kind: "allow_once" }],
      toolCallId: "t",
      title: "T",
      kind: "edit",
      locations: [],
      ...more,
    },
  });

test("nothing is wrong with what is right", () => {
  expect(complaintsOf([...begin, prompt, update(chunk), update(call), ask(), update(ended), end])).toEqual([]);
});

const WRONG: [string, Said[]][] = [
  ["before initialize", [update(chunk)]],
  ["which nobody has asked", [...begin, end]],
  ["which nobody has asked or which is answered", [...begin, prompt, end, end]],
  ["must have either result or error", [...begin, prompt, agent({ id: 2 })]],
  ["no data.reason", [...begin, prompt, agent({ id: 2, error: { code: -32603, message: "a" } })]],
  ["while no prompt is open", [...begin, update(chunk)]],
  ["while no prompt is open", [...begin, prompt, end, update(chunk)]],
  ["repeats the client's words", [...begin, prompt, update({ ...chunk, sessionUpdate: "user_message_chunk" }), end]],
  ["does not know", [...begin.slice(0, 3), update(chunk)]],
  ["no content[]", [...begin, prompt, update(chunk, {}), end]],
  ["never announced", [...begin, prompt, update(ended), end]],
  ["announced twice", [...begin, prompt, update(call), update(call), update(ended), end]],
  ["has ended before", [...begin, prompt, update(call), update(ended), update(ended), end]],
  ["is pending when its turn ends", [...begin, prompt, update(call), end]],
  ["which is not announced", [...begin, prompt, ask(), end]],
  ["which is completed", [...begin, prompt, update(call), update(ended), ask(), end]],
  ["lacks title, kind or locations", [...begin, prompt, update(call), ask({ kind: undefined }), update(ended), end]],
  ["breaks the schema", [...begin, prompt, update({ sessionUpdate: "usage_update", used: 1 }), end]],
  ["breaks the schema", [...begin, prompt, update({ ...chunk, content: [chunk.content] }), end]],
  ["breaks the schema", [...begin, prompt, agent({ id: 2, result: { stopReason: "done" } })]],
  ["no method of clients", [...begin, agent({ method: "session/shout", params: {} })]],
  [
    "not offered this",
    [...begin, agent({ id: 0, method: "fs/read_text_file", params: { sessionId: "s", path: "/a" } })],
  ],
  [
    "not offered terminals",
    [...begin, agent({ id: 0, method: "terminal/create", params: { sessionId: "s", command: "a" } })],
  ],
  ["is used again", [...begin, prompt, update(call), ask(), ask(), update(ended), end]],
  ["was never asked", [...begin, agent({ method: "$/cancel_request", params: { requestId: 9 } })]],
];

for (const [index, [complaint, traffic]] of WRONG.entries()) {
  test(`rule ${index + 1}: ${complaint}`, () => expect(complaintsOf(traffic).join("\n")).toContain(complaint));
}

test("a terminal that is not given back", () => {
  const can = client({
    id: 0,
    method: "initialize",
    params: { protocolVersion: 1, clientCapabilities: { terminal: true } },
  });
  const made = [
    agent({ id: 5, method: "terminal/create", params: { sessionId: "s", command: "a" } }),
    client({ id: 5, result: { terminalId: "x" } }),
  ];
  expect(complaintsOf([can, ...begin.slice(1), ...made])).toEqual(["the end: terminal x was never released"]);
});
