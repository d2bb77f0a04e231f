import { expect, test } from "bun:test";
import fc from "fast-check";
import { collect } from "./collect.ts";
import { customCalls, customToolNames, customToolsAsFunctions } from "./custom-tools.ts";
import type { GenerationEvent } from "./events.ts";
import type { GenerationRequest } from "./request.ts";

const request: GenerationRequest = {
  model: "m",
  system: [],
  messages: [
    {
      role: "assistant",
      parts: [
        { type: "tool-call", id: "1", name: "patch", arguments: 'say "hi"\n', custom: true },
        { type: "tool-call", id: "2", name: "weather", arguments: "{}" },
      ],
    },
  ],
  tools: [
    {
      kind: "custom",
      name: "patch",
      description: "Edits files.",
      format: { type: "grammar", syntax: "lark", definition: "start: X" },
    },
    { kind: "function", name: "weather" },
  ],
  sampling: {},
  reasoning: {},
  stream: true,
  origin: { protocol: "responses", body: {} },
  extensions: {},
};

test("a free-form tool becomes a function that takes its input as one string, and is told of the grammar", () => {
  const { tools, messages } = customToolsAsFunctions(request);
  expect(tools).toEqual([
    {
      kind: "function",
      name: "patch",
      description: "Edits files.\n\nThe input must follow this grammar (lark):\nstart: X",
      parameters: expect.objectContaining({ required: ["input"] }),
    },
    { kind: "function", name: "weather" },
  ]);
  expect(messages[0]?.parts).toEqual([
    { type: "tool-call", id: "1", name: "patch", arguments: '{"input":"say \\"hi\\"\\n"}' },
    { type: "tool-call", id: "2", name: "weather", arguments: "{}" },
  ]);
  expect([...customToolNames(request)]).toEqual(["patch"]);
});

const START: GenerationEvent = { type: "start", id: "a", model: "m", createdAt: 1 };
const FINISH: GenerationEvent = { type: "finish", finish: { reason: "tool-calls" } };

function streamed(name: string, pieces: readonly string[]): GenerationEvent[] {
  const transform = customCalls(new Set(["patch"]))();
  const events: GenerationEvent[] = [
    START,
    { type: "part-start", index: 0, part: { type: "tool-call", id: "1", name } },
    ...pieces.filter((text) => text !== "").map((text): GenerationEvent => ({ type: "delta", index: 0, text })),
    { type: "part-end", index: 0 },
    FINISH,
  ];
  return [...events.flatMap((event) => transform.push(event)), ...transform.end()];
}

test("property: a call comes back free-form, cut anywhere", () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(), fc.nat(), (input, one, other) => {
      const text = JSON.stringify({ input });
      const [from = 0, to = 0] = [one % text.length, other % text.length].sort((a, b) => a - b);
      const pieces = [text.slice(0, from), text.slice(from, to), text.slice(to)];
      const events = streamed("patch", pieces);
      expect(collect(events)?.parts).toEqual([
        { type: "tool-call", id: "1", name: "patch", arguments: input, custom: true },
      ]);
    }),
  );
});

test("other calls go on piece by piece, and what is no object with input is taken as it is", () => {
  expect(streamed("weather", ['{"a"', ":1}"]).filter((event) => event.type === "delta")).toHaveLength(2);
  expect(streamed("patch", ["*** Begin"]).find((event) => event.type === "delta")).toEqual({
    type: "delta",
    index: 0,
    text: "*** Begin",
  });
});
