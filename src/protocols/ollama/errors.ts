// Errors of the Ollama format: a text, whole or as the last line of a stream.

import type { JsonObject } from "../../lib/json.ts";
import type { ClientError } from "../protocol.ts";

export function errorBody({ message }: Pick<ClientError, "message">): JsonObject {
  return { error: message };
}

export function errorEvent(error: Pick<ClientError, "message">): string {
  return `data: ${JSON.stringify(errorBody(error))}\n\n`;
}
