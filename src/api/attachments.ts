// What a request brings or names besides text, before a backend is looked for: files and links are checked the same way in
// every format, and whoever the backend is.

import { conventionsOf } from "../backends/kinds.ts";
import { checkGivenData } from "../media/given-data.ts";
import { checkLink, type OpenHosts } from "../media/links.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import type { Attachment } from "../protocols/attachments.ts";
import { clientProtocol } from "../protocols/registry.ts";
import type { Call } from "../server/endpoint.ts";

export interface AttachmentParts {
  /** Where links may lead though it is not public. */
  openHosts: OpenHosts;
}

/** The request itself where there is nothing to do, which it is at once then. Throws 400 with the field. */
export function arrangeAttachments(
  _call: Call,
  asked: ModelRequest,
  { openHosts }: AttachmentParts,
): ModelRequest | Promise<ModelRequest> {
  const attachments = clientProtocol(conventionsOf(asked.operation)).attachments?.(asked.body.value);
  if (attachments === undefined || attachments.length === 0) return asked;
  for (const attachment of attachments) check(attachment, openHosts);
  return asked;
}

function check(attachment: Attachment, openHosts: OpenHosts): void {
  if (attachment.kind === "link") checkLink(attachment.value, attachment.param, openHosts);
  else if (attachment.kind === "data") checkGivenData(attachment);
}
