// Every known answer over real sockets: what becomes of it, and of the connection that it came over.

import { afterAll, describe, expect, test } from "bun:test";
import { waitFor, within } from "../support/wait-for.ts";
import { answerOf, BAD_ANSWERS, GOOD_ANSWERS, type KnownAnswer } from "./answers.ts";
import { outcomeOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import type { Step } from "./server-connection.ts";
import { ask, backendAt, newClient } from "./subject.ts";

const client = newClient();
afterAll(() => client.close());

/** Answers the first request with these bytes, and any other with "next". */
function serverOf({ bytes, ending }: KnownAnswer): ScriptedServer {
  let count = 0;
  const first: Step[] = ending === "keep" ? [bytes] : [bytes, ending];
  return new ScriptedServer(() => (count++ === 0 ? first : [answerOf("next")]));
}

async function next(server: ScriptedServer): Promise<void> {
  const outcome = await within("the next answer", outcomeOf(ask(client.transport, backendAt(server.url))));
  expect(outcome).toMatchObject({ end: "complete", status: 200, body: Buffer.from("next") });
  expect(server.requests).toHaveLength(2);
  expect(server.violations).toEqual([]);
}

describe("an answer is read as it is meant:", () => {
  test.each(GOOD_ANSWERS.map((answer) => [answer.name, answer] as const))("%s", async (_name, answer) => {
    using server = serverOf(answer);
    const { method } = answer;
    const question = method === undefined ? {} : { method };
    const outcome = await within("an answer", outcomeOf(ask(client.transport, backendAt(server.url), question)));
    if (answer.outcome === "refused") throw new Error("not among the good answers");
    const { status, body, headers = {}, isKept } = answer.outcome;
    expect(outcome).toMatchObject({ end: "complete", status });
    if (outcome.end === "no answer") return;
    expect(outcome.body.toString()).toBe(body);
    for (const [name, value] of Object.entries(headers)) expect(outcome.header(name)).toBe(value);
    await next(server);
    if (isKept !== undefined) expect(server.connections).toHaveLength(isKept ? 1 : 2);
  });
});

describe("an answer is refused, and its connection closed:", () => {
  test.each(BAD_ANSWERS.map((answer) => [answer.name, answer] as const))("%s", async (_name, answer) => {
    using server = serverOf(answer);
    const outcome = await within("a failure", outcomeOf(ask(client.transport, backendAt(server.url))));
    expect(outcome.end).not.toBe("complete");
    if (answer.isWellFramed !== true) await waitFor("the connection is closed", () => server.connections[0]?.isClosed);
    await next(server);
    if (answer.isWellFramed !== true) expect(server.connections).toHaveLength(2);
  });
});
