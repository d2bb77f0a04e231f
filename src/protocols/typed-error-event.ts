// The error event of streams whose events have types, as of images and audio: the official SDKs throw what its data holds.

import type { ClientError } from "./protocol.ts";
import { encodeErrorBody } from "./standard-error.ts";

export function typedErrorEvent(error: ClientError): string {
  return `event: error\ndata: ${JSON.stringify({ type: "error", ...encodeErrorBody(error) })}\n\n`;
}
