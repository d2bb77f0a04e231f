// Every fixture as each client gets it: compared with reviewed files, one for each fixture. A stream is shown as the kinds
// of its events in order and as what a client reads of it; the client must read the same of the whole answer.

import { describe, expect, test } from "bun:test";
import type { AnswerContext } from "../../src/protocols/protocol.ts";
import { backendProtocol, clientProtocol } from "../../src/protocols/registry.ts";
import { createTranslation } from "../../src/protocols/translate.ts";
import { splitSse } from "../support/sse-reader.ts";
import type { JsonObject, Reading, WireClient, WireEvent } from "./ask.ts";
import { expectAsReviewed } from "./expected.ts";
import { asks } from "./features/words.ts";
import { FIXTURES, type Fixture } from "./fixtures.ts";
import { CLIENTS } from "./run.ts";

const NONCE = "0123456789abcdef0123456789abcdef";

function translationFor(client: WireClient, { format }: Fixture) {
  const codec = clientProtocol(client.name);
  const value = client.write(asks({ more: NOTHING_HIDDEN[client.name] ?? {} }), "asked-model", true);
  const context: AnswerContext = {
    model: "asked-model",
    createdAt: 1_790_000_000,
    elapsedMs: () => 250,
    nonce: NONCE,
    request: codec.decodeRequest(value),
  };
  const backend = backendProtocol(format === "local" ? "chat" : format);
  return createTranslation({ client: codec, backend, context, transforms: [] });
}

/** Sealed thoughts are shown to those who ask for them. */
const NOTHING_HIDDEN: Partial<Record<string, JsonObject>> = {
  responses: { include: ["reasoning.encrypted_content"], store: false },
};

const utf8 = new TextDecoder();

function streamed(client: WireClient, fixture: Fixture): { text: string; events: WireEvent[] } {
  const translator = translationFor(client, fixture).stream();
  const pieces = [translator.push(fixture.stream), translator.end()];
  const text = pieces.map((piece) => (piece === undefined ? "" : utf8.decode(piece))).join("");
  const { events } = splitSse(text);
  return { text, events: events.flatMap(({ event, data }) => (data === undefined ? [] : [{ name: event, data }])) };
}

/** "a b×3 c" */
function kinds(events: readonly WireEvent[]): string {
  const runs: { kind: string; times: number }[] = [];
  for (const { name, data } of events) {
    const kind = name ?? (data === "[DONE]" ? data : kindOf(JSON.parse(data) as JsonObject));
    const last = runs.at(-1);
    if (last?.kind === kind) last.times++;
    else runs.push({ kind, times: 1 });
  }
  return runs.map(({ kind, times }) => (times === 1 ? kind : `${kind}×${times}`)).join(" ");
}

function kindOf(chunk: JsonObject): string {
  if (chunk.done === true) return `done:${chunk.done_reason}`;
  if (chunk.message !== undefined) return Object.keys(chunk.message as JsonObject).at(-1) as string;
  const [choice] = (chunk.choices ?? []) as JsonObject[];
  if (choice === undefined) return chunk.error === undefined ? "usage" : "error";
  if (typeof choice.finish_reason === "string") return `finish:${choice.finish_reason}`;
  return choice.delta === undefined ? "text" : Object.keys(choice.delta as JsonObject).join("+");
}

function shown({ parts, finish, usage, model, end, offences }: Reading): object {
  return { parts, finish, usage, model, end, offences };
}

const inOrderOfType = ({ parts, ...rest }: Reading): object => ({
  ...shown({ parts, ...rest }),
  parts: [...parts].sort((one, other) => one.type.localeCompare(other.type)),
});

describe("what each client reads of", () => {
  test.each(FIXTURES.map((fixture) => [fixture.name, fixture] as const))("%s", (name, fixture) => {
    const readings: Record<string, object> = {};
    for (const client of CLIENTS) {
      const { events } = streamed(client, fixture);
      const reading = client.readStream(events);
      expect(reading.offences).toEqual([]);
      readings[client.name] = { events: kinds(events), ...shown(reading) };
      const body = translationFor(client, fixture).plain(new TextEncoder().encode(fixture.whole)).body;
      const whole = client.readWhole(JSON.parse(utf8.decode(body)) as JsonObject);
      expect(inOrderOfType(whole)).toEqual(inOrderOfType(reading));
    }
    expectAsReviewed(`${name}.json`, JSON.stringify(readings, undefined, 2));
  });
});

/** One fixture with thoughts, text and two calls, byte for byte. */
describe("the bytes of", () => {
  const fixtures = FIXTURES.filter(({ name }) => name === "messages/tools" || name === "local/tools");
  for (const client of CLIENTS) {
    test.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
      `%s for a ${client.name} client`,
      (name, fixture) => {
        expectAsReviewed(`${name}.${client.name}.sse`, streamed(client, fixture).text);
        const body = translationFor(client, fixture).plain(new TextEncoder().encode(fixture.whole)).body;
        expectAsReviewed(`${name}.${client.name}.json`, utf8.decode(body));
      },
    );
  }
});
