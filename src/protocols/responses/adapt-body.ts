// What a Responses client's own body needs before a Responses backend gets it: thoughts of another backend's answer,
// which the gateway wrote as reasoning items, must not come back as if this backend had made them.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { isOwnToken } from "./reasoning-seal.ts";
import { isOwnItemId } from "./sequence.ts";

/** The top-level members to change; undefined when the body can pass as it is. */
export function adaptResponsesBody({ input }: JsonObject): JsonObject | undefined {
  if (!Array.isArray(input) || !input.some(isForeign)) return undefined;
  return { input: input.filter((item) => !isForeign(item)) };
}

/** An item without its sealed form is looked up by its id, and not found when the gateway made that. */
function isForeign(item: unknown): boolean {
  if (!isObject(item) || item.type !== "reasoning") return false;
  const { encrypted_content: sealed, id } = item;
  if (typeof sealed === "string" && sealed !== "") return isOwnToken(sealed);
  return typeof id === "string" && isOwnItemId(id);
}
