// How refusals of the admin API read.

import { expect, test } from "bun:test";
import { invalidFields } from "./refusals.ts";

test("a refusal that ends in a question gets no full stop behind it", () => {
  const asked = { field: "retry.max_attempt", message: "unknown key `max_attempt`; did you mean `max_attempts`?" };
  expect(invalidFields([asked]).message).toBe(`${asked.field}: ${asked.message}`);
  expect(invalidFields([asked, asked]).message).toBe(`${asked.field}: ${asked.message} (and 1 more).`);
});
