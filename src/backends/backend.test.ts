// Which endpoints a backend is asked at.

import { describe, expect, test } from "bun:test";
import { backendSchema } from "../config/sections/backends.ts";
import { toBackend } from "./backend.ts";
import { servedBy } from "./kinds.ts";

type Formats = NonNullable<ReturnType<typeof backendSchema.parse>["protocols"]>;

describe("the legacy completions endpoint", () => {
  const cases: [protocols: Formats | undefined, served: string][] = [
    [undefined, "completions"],
    [["chat"], "completions"],
    [["responses"], "responses"],
    [["messages"], "messages"],
  ];
  test.each(cases)("belongs to servers of the chat format: %j", (protocols, served) => {
    const backend = toBackend(backendSchema.parse({ name: "b", type: "openai", ...(protocols && { protocols }) }));
    expect(servedBy(backend.paths, "completions")).toBe(served as never);
  });
});
