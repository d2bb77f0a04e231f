// Why no other backend was asked: a failure names what the backend said and the rules that ended the tries, in the story, in the log
// line and in the list of errors.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Answer } from "../support/fake-backend.ts";
import { freePort } from "../support/free-port.ts";
import { chatStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const KEY = "sk-sekret-operator-0123456789";
const bad = bed.backend();
const gateway = await bed.gateway({
  config: {
    backends: [
      { name: "gpu-1", type: "vllm", url: bad.url, api_key: KEY, models: ["m", "first", "chained", "s"] },
      { name: "closed", type: "vllm", url: `http://127.0.0.1:${await freePort()}`, models: ["closed"] },
    ],
    health_checks: { enabled: false },
    circuit_breaker: { enabled: false },
    retry: { base_delay: "1ms", max_attempts: 2 },
    fallback: { enabled: true, fallback_chains: { first: ["m"], chained: ["m"] } },
  },
});
const admin = new AdminClient(gateway);

interface Told {
  summary: string;
  explanation: string[];
  ended_by: string | null;
  line: Record<string, unknown>;
  error: { ended_by: string | null; attempts: { detail?: string }[] };
}

/** All that is told of one request. */
async function told(answer: Answer, body: Record<string, unknown> = {}): Promise<Told> {
  bad.answer = answer;
  const response = await gateway.chat(body);
  await response.text().catch(() => "");
  const id = response.headers.get("x-signalbox-request-id");
  const story = await waitFor("the request is over", async () => {
    const found = await admin.get(`/admin/requests/${id}`);
    return found.finished === true && found;
  });
  const line = await waitFor("its line is written", () =>
    gateway.printed.logEntries.find((entry) => entry.id === id && entry.status !== undefined),
  );
  const error = await admin.get(`/admin/errors/${id}`);
  return { ...story, line, error } as unknown as Told;
}

test("a status that is not retried, and no chain", async () => {
  const rules = "HTTP 500 is not in retry.status_codes; there is no fallback chain for m";
  const { summary, explanation, ended_by, line, error } = await told(failure(500, "CUDA out of memory"));
  expect(summary).toBe(`gpu-1 failed (status 500), saying "CUDA out of memory"; no other backend was asked: ${rules}.`);
  expect(explanation).toContain(`No other backend was asked: ${rules}.`);
  expect(ended_by).toBe(rules);
  expect(line).toMatchObject({ status: 500, backend_error: "CUDA out of memory", ended_by: rules });
  expect(error).toMatchObject({ ended_by: rules, attempts: [{ backend: "gpu-1", detail: "CUDA out of memory" }] });
});

test.each([
  [
    "attempts that are used up",
    failure(503),
    { model: "m" },
    "retry.max_attempts is 2; there is no fallback chain for m",
  ],
  ["a backend that refuses the credential", failure(401), { model: "m" }, "no other backend of the model can be asked"],
  ["a backend that is away", failure(500), { model: "closed" }, "retry.max_attempts is 2; there is no fallback"],
  ["a chain that was walked", failure(503), { model: "first" }, "every model of the fallback chain was asked"],
  ["a failure that leads to no other model", failure(501), { model: "chained" }, "status_501 is none of fallback."],
  [
    "a stream that nobody could go on with",
    chatStream(["one"], { finishReason: null, done: false }),
    { model: "s", stream: true },
    "no other backend and no fallback chain can go on with this stream",
  ],
])("%s", async (_title, answer, body, rule) => {
  const { ended_by, line, error } = await told(answer, body);
  expect(ended_by).toContain(rule);
  expect(line.ended_by).toBe(ended_by);
  expect(error.ended_by).toBe(ended_by);
});

test("what is answered, or refused as the client's mistake, has no such rule; no secret is told", async () => {
  const mistake = await told(failure(400, `Bad request with ${KEY}`));
  expect(mistake).toMatchObject({
    ended_by: null,
    summary: 'gpu-1 refused the request (status 400), saying "Bad request with ********".',
  });
  expect(mistake.line.backend_error).toBeUndefined();
  await told(failure(500, `The key ${KEY} broke it`));
  expect(gateway.printed.stderr).not.toContain("sekret");
  expect(JSON.stringify(await admin.get("/admin/errors/recent"))).not.toContain("sekret");
});
