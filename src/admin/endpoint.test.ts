// What the compiler holds endpoints to.

import { expect, test } from "bun:test";
import {
  component,
  count,
  namedShape,
  oneOfTexts,
  orNull,
  schemasOf,
  strictRequest,
  text,
} from "../openapi/json-schema.ts";
import { jsonAnswer } from "../openapi/operation.ts";
import { adminGroup, answer } from "./endpoint.ts";

const Row = namedShape("Row", { name: text, size: orNull(count), kind: oneOfTexts("a", "b") });
const Wanted = component("Wanted", strictRequest({ name: text }, { size: count }));
const endpoint = adminGroup("Observation", schemasOf(Row, Wanted));

const common = { id: "x", role: "viewer" as const, summary: "X", answers: [jsonAnswer(Row, "The row.")] };

test("a handler that forgets a member, or gives another type, does not compile", () => {
  const declared = [
    endpoint("GET /admin/health", { ...common, handle: (call) => answer(call, { name: "n", size: null, kind: "a" }) }),
    endpoint("GET /admin/health", {
      ...common,
      // @ts-expect-error size is missing
      handle: (call) => answer(call, { name: "n", kind: "a" }),
    }),
    endpoint("GET /admin/health", {
      ...common,
      // @ts-expect-error "c" is no kind
      handle: (call) => answer(call, { name: "n", size: 1, kind: "c" }),
    }),
    endpoint("GET /admin/health", {
      ...common,
      // @ts-expect-error a response of unknown content
      handle: () => new Response("{}"),
    }),
  ];
  expect(declared.length).toBe(4);
});

test("a body is read with the types of its schema", () => {
  endpoint("POST /admin/stats/reset", {
    ...common,
    body: { schema: Wanted },
    async handle(call, read) {
      const { name, size = 0 } = await read();
      // @ts-expect-error a text is no number
      const wrong: number = name;
      return answer(call, { name, size: size + wrong, kind: "b" });
    },
  });
});
