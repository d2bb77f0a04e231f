// Which reasoning items of a client's body must not reach a Responses backend.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../lib/json.ts";
import { adaptResponsesBody } from "./adapt-body.ts";
import { sealToken } from "./reasoning-seal.ts";
import { itemId } from "./sequence.ts";

const user = { role: "user", content: "hi" };
const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
const ownId = itemId("rs", { nonce: "0123456789abcdef".repeat(2), model: "m", createdAt: 0, request: {} as never }, 17);
const reasoning = (more: JsonObject) => ({ type: "reasoning", id: "rs_1", summary: [], ...more });

describe("thoughts of another backend are taken out", () => {
  test.each([
    ["sealed by the gateway", reasoning({ encrypted_content: sealToken({ origin: "messages", signature: "s" }) })],
    ["without a seal, with an id of the gateway", reasoning({ id: ownId })],
    ["with an empty seal", reasoning({ id: ownId, encrypted_content: null })],
  ])("%s", (_, item) => {
    expect(adaptResponsesBody({ input: [user, item, call] })).toEqual({ input: [user, call] });
  });
});

describe("everything else passes", () => {
  test.each([
    ["the backend's own seal", [reasoning({ encrypted_content: "gAAAA" })]],
    ["its own seal under an id of the gateway", [reasoning({ id: ownId, encrypted_content: "gAAAA" })]],
    ["an item that the backend keeps", [reasoning({ id: "rs_68af4030baa48193b0b43b4c2a176a1a0e6967a53a28ad6c" })]],
    ["no thoughts", [user, call]],
    ["things that are no items", [null, 1, "x"]],
    ["a text", "hi"],
  ])("%s", (_, input) => {
    expect(adaptResponsesBody({ input })).toBeUndefined();
  });
});
