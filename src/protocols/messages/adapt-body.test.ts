// Bodies of Messages clients on their way to Messages backends.

import { expect, test } from "bun:test";
import type { JsonObject } from "../../lib/json.ts";
import { adaptMessagesBody } from "./adapt-body.ts";
import { wrapSeal, wrapSnippet } from "./foreign-seal.ts";

const body = (model: string, more: JsonObject = {}, ...content: JsonObject[]) => ({
  model,
  max_tokens: 8_000,
  messages: [{ role: "user", content: "hi" }, ...(content.length > 0 ? [{ role: "assistant", content }] : [])],
  ...more,
});

test("a body with nothing of ours, for the model it names, passes", () => {
  const native = [
    { type: "thinking", thinking: "a", signature: "s" },
    { type: "text", text: "x", citations: [{ type: "web_search_result_location", encrypted_index: "E" }] },
  ];
  const more = { thinking: { type: "enabled", budget_tokens: 2_048 }, temperature: 0.2 };
  expect(
    adaptMessagesBody(body("claude-opus-5-5", more, ...native), "claude-opus-5-5", "claude-opus-5-5"),
  ).toBeUndefined();
});

test("blocks that the gateway made are taken out or told as text", () => {
  const citation = { type: "web_search_result_location", url: "u" };
  const changes = adaptMessagesBody(
    body(
      "m",
      {},
      { type: "thinking", thinking: "a", signature: wrapSeal({}) },
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", url: "u", title: "t", encrypted_content: wrapSnippet("s") }],
      },
      { type: "text", text: "x", citations: [{ ...citation, encrypted_index: wrapSeal({}) }] },
      {
        type: "text",
        text: "y",
        citations: [
          { ...citation, encrypted_index: wrapSeal({}) },
          { ...citation, encrypted_index: "E" },
        ],
      },
    ),
    "m",
    "m",
  );
  expect(changes).toEqual({
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Results of a web search:\n- t (u): s" },
          { type: "text", text: "x" },
          { type: "text", text: "y", citations: [{ ...citation, encrypted_index: "E" }] },
        ],
      },
    ],
  });
});

test("a turn that held nothing else goes", () => {
  const changes = adaptMessagesBody(
    body("m", {}, { type: "thinking", thinking: "a", signature: wrapSeal({}) }),
    "m",
    "m",
  );
  expect(changes).toEqual({ messages: [{ role: "user", content: "hi" }] });
});

const rerouted: [title: string, model: string, more: JsonObject, expected: JsonObject | undefined][] = [
  ["nothing to change", "claude-haiku-4-5", { temperature: 0.2 }, undefined],
  [
    "adaptive thinking for a model with a budget",
    "claude-haiku-4-5",
    { thinking: { type: "adaptive" }, output_config: { effort: "high", task_budget: { total: 1 } } },
    { thinking: { type: "enabled", budget_tokens: 4_000 }, output_config: { task_budget: { total: 1 } } },
  ],
  [
    "a budget for an adaptive model",
    "claude-opus-5",
    { thinking: { type: "enabled", budget_tokens: 7_000, display: "omitted" }, temperature: 1, top_k: 4 },
    {
      thinking: { type: "adaptive", display: "omitted" },
      output_config: { effort: "medium" },
      temperature: undefined,
      top_k: undefined,
    },
  ],
  [
    "an effort that the model has not",
    "claude-sonnet-4-6",
    { output_config: { effort: "xhigh" } },
    { thinking: undefined, output_config: { effort: "high" } },
  ],
  [
    "no thinking for a model that always thinks",
    "claude-opus-5-5",
    { thinking: { type: "disabled" } },
    { thinking: undefined, output_config: { effort: "low" } },
  ],
  ["more tokens than the model has", "claude-3-haiku-20240307", {}, { max_tokens: 4_096 }],
];
test.each(rerouted)("another model: %s", (_title, model, more, expected) => {
  expect(adaptMessagesBody(body("claude-asked-for", more), model, "claude-asked-for")).toEqual(expected);
});

test("odd messages do no harm", () => {
  for (const messages of [undefined, "x", [null], [{ role: "user" }], [{ role: "user", content: [null, 1] }]]) {
    expect(adaptMessagesBody({ model: "m", messages }, "m", "m")).toBeUndefined();
    expect(adaptMessagesBody({ model: "m", messages, thinking: { type: "adaptive" } }, "x", "m")).toBeDefined();
  }
});
