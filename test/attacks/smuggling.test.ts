// Smuggled requests over raw sockets: each form is refused, or is exactly one request, and nothing that it hides is served.

import { beforeAll, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { type Attacked, attack, logBarrier } from "./smuggle.ts";
import { FORMS } from "./smuggling-forms.ts";

const bed = createTestBed();
const backend = bed.backend({ models: ["m"], answer: chat("hello") });
let gateway: Gateway;
let attacked: Attacked[];

beforeAll(async () => {
  gateway = await bed.gateway({ config: { backends: [{ name: "b", type: "vllm", url: backend.url }] } });
  // All at once: some are answered with silence until the gateway closes the connection.
  attacked = await Promise.all(FORMS.map((form, index) => attack(gateway.port, form, index)));
  await logBarrier(gateway);
});

test("there are more than 80 forms", () => expect(FORMS.length).toBeGreaterThan(80));

describe("is refused, or is one request", () => {
  test.each(FORMS.map(({ name }, index) => [name, index] as const))("%s", (_, index) => {
    const { statuses, hiddenPath, marker } = attacked[index] as Attacked;
    const { served = false } = FORMS[index] as (typeof FORMS)[number];
    const logged = gateway.printed.logEntries.filter(({ msg }) => msg === "request");
    expect(logged.filter(({ path }) => path === hiddenPath)).toEqual([]);
    expect(statuses.filter((status) => status < 400)).toHaveLength(served ? 1 : 0);
    expect(backend.requests.filter(({ text }) => text.includes(hiddenPath))).toEqual([]);
    expect(backend.requests.filter(({ text }) => text.includes(marker)).length).toBeLessThanOrEqual(1);
  });
});

test("none of them harms those who come after", async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.chat()));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  await gateway.waitUntilIdle();
});
