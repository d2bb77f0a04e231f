// The few shapes that the parts of the Converse format share. A block is a union: an object with one member, whose name
// says what it is.

import type { JsonObject } from "../../lib/json.ts";

export type ConverseBlock = JsonObject;

export interface ConverseMessage {
  role: "user" | "assistant";
  content: ConverseBlock[];
}
