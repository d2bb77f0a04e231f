// What a vendor keeps for all callers of the gateway together is reached by its owner only.

import { beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { eventStream, sseEvent } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const vendor = bed.backend();

const A = "sekret-of-tenant-a";
const B = "sekret-of-tenant-b";
const TENANTS: ConfigDocument["api_keys"] = {
  mode: "blocking",
  keys: [
    { key: A, id: "a" },
    { key: B, id: "b" },
  ],
};

const RESPONSE = {
  id: "resp_of_a",
  object: "response",
  status: "completed",
  output: [{ type: "message", id: "msg_of_a", role: "assistant", content: [] }],
};
const PLAIN = { headers: { "content-type": "application/json" }, body: JSON.stringify(RESPONSE) };
const STREAM = eventStream([
  sseEvent({ type: "response.created", response: { ...RESPONSE, output: [], status: "in_progress" } }),
  sseEvent({ type: "response.output_text.delta", item_id: "msg_of_a", delta: "x" }),
  sseEvent({ type: "response.completed", response: RESPONSE }),
]);

const KINDS = ["openai", "azure", "federated"] as const;

beforeEach(() => vendor.reset(PLAIN));

function start(type: (typeof KINDS)[number], more: ConfigDocument = {}): Promise<Gateway> {
  return startGateway({
    config: { backends: [{ name: "vendor", type, url: vendor.url, models: ["m"] }], api_keys: TENANTS, ...more },
  });
}

async function ask(gateway: Gateway, key: string | undefined, more: object): Promise<Response> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await gateway.post("/v1/responses", { model: "m", input: "x", ...more }, { headers });
  const text = await response.text();
  return new Response(text, response);
}

const reference = (id: string) => ({ input: [{ type: "item_reference", id }] });

/** Requests that name something, and how a refusal of each is told. */
const NAMING: [more: (id: { response: string; item: string }) => object, code: string, param: string][] = [
  [({ response }) => ({ previous_response_id: response }), "previous_response_not_found", "previous_response_id"],
  [({ item }) => reference(item), "item_not_found", "input[0].id"],
  [({ item }) => ({ input: [{ role: "user", content: "x" }, { id: item }] }), "item_not_found", "input[1].id"],
  [({ item }) => ({ input: [{ type: "reasoning", id: item, summary: [] }] }), "item_not_found", "input[0].id"],
  [({ item }) => ({ input: [{ type: "image_generation_call", id: item }] }), "item_not_found", "input[0].id"],
];

const OWN = { response: "resp_of_a", item: "msg_of_a" };
const UNKNOWN = { response: "resp_unknown", item: "msg_unknown" };

describe.each(KINDS)("%s", (type) => {
  test.each(["plain", "streamed"])("an answer that has passed %s belongs to its owner alone", async (form) => {
    await using gateway = await start(type);
    if (form === "streamed") vendor.queue(STREAM);
    expect((await ask(gateway, A, { stream: form === "streamed" })).status).toBe(200);
    for (const [more, code, param] of NAMING) {
      expect((await ask(gateway, A, more(OWN))).status).toBe(200);
      const seen = vendor.requests.length;
      for (const ids of [OWN, UNKNOWN]) {
        const error = await expectError(await ask(gateway, B, more(ids)), 404);
        expect(error).toMatchObject({ code, param });
      }
      await expectError(await ask(gateway, A, more(UNKNOWN)), 404);
      expect(vendor.requests).toHaveLength(seen);
    }
  });

  test("share_vendor_state lets pass what is not known, but not what is known to be another's", async () => {
    await using gateway = await start(type, { responses: { share_vendor_state: true } });
    await ask(gateway, A, {});
    for (const [more] of NAMING) {
      expect((await ask(gateway, B, more(UNKNOWN))).status).toBe(200);
      await expectError(await ask(gateway, B, more(OWN)), 404);
    }
    expect((await ask(gateway, B, { conversation: "conv_1" })).status).toBe(200);
  });
});

test("conversations at the vendor are refused where there are several owners", async () => {
  await using gateway = await start("openai");
  for (const conversation of ["conv_1", { id: "conv_1" }]) {
    const error = await expectError(await ask(gateway, A, { conversation }), 404);
    expect(error).toMatchObject({ code: "conversation_not_found", param: "conversation" });
  }
  expect(vendor.requests).toHaveLength(0);
});

test("keys of one organisation are one owner, and with one owner everything passes", async () => {
  const keys = [
    { key: A, organization_id: "o" },
    { key: B, organization_id: "o" },
  ];
  await using gateway = await start("openai", { api_keys: { mode: "blocking", keys } });
  await ask(gateway, A, {});
  for (const [more] of NAMING) {
    for (const ids of [OWN, UNKNOWN]) expect((await ask(gateway, B, more(ids))).status).toBe(200);
  }
  expect((await ask(gateway, B, { conversation: "conv_1" })).status).toBe(200);
});

test("callers without a key are an owner too: they do not reach what a key's answers left", async () => {
  await using gateway = await start("openai", { api_keys: { mode: "permissive", keys: [{ key: A }] } });
  await ask(gateway, A, {});
  for (const [more] of NAMING) {
    for (const ids of [OWN, UNKNOWN]) await expectError(await ask(gateway, undefined, more(ids)), 404);
  }
});

test("what a client has echoed is not taken for the id of its answer", async () => {
  await using gateway = await start("openai", { responses: { share_vendor_state: true } });
  vendor.queue({
    ...PLAIN,
    body: JSON.stringify({ metadata: { id: "resp_unknown" }, ...RESPONSE }),
  });
  expect((await ask(gateway, B, { metadata: { id: "resp_unknown" } })).status).toBe(200);
  expect((await ask(gateway, A, { previous_response_id: "resp_unknown" })).status).toBe(200);
});

test("what a client sends whole names nothing", async () => {
  await using gateway = await start("openai");
  for (const whole of [{ encrypted_content: "x" }, { content: [{ type: "reasoning_text", text: "x" }] }]) {
    const input = [{ type: "reasoning", id: "rs_unknown", summary: [], ...whole }];
    expect((await ask(gateway, B, { input })).status).toBe(200);
  }
  const input = [{ type: "image_generation_call", id: "ig_unknown", status: "completed", result: "aW1hZ2U=" }];
  expect((await ask(gateway, B, { input })).status).toBe(200);
});
