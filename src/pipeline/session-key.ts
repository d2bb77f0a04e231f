// What the requests of one session have in common: for strategies that keep it on one backend, and for routes that keep it with
// one target.

import { endUserOf } from "../protocols/request-summary.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest } from "./model-request.ts";

/** What keeps a conversation on one backend: its own key, else who the client is. */
export function sessionKey(context: RequestContext, request: ModelRequest): string {
  return conversationKey(context, request) ?? context.caller?.keyId ?? context.peerAddress() ?? context.id;
}

/** The configured header, else the client's own fields or the conversation's start; undefined for what is no conversation. */
export function conversationKey(context: RequestContext, request: ModelRequest): string | undefined {
  const { header } = context.settings.routing.session_affinity;
  return context.clientHeaders.get(header) ?? request.affinity(request.body.value);
}

/** The users of a request: the one that the key names, and the one that the request names. */
export function usersOf({ caller }: RequestContext, { body }: ModelRequest): readonly (string | undefined)[] {
  return [caller?.userId, endUserOf(body.value)];
}
