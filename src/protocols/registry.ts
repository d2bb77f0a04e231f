// Protocol name -> codec.

import type { ProtocolName } from "../generation/content.ts";
import type { Failure } from "../generation/result.ts";
import { chatBackend, chatClient } from "./chat/index.ts";
import { chatJoin } from "./chat/join.ts";
import { completionsClient } from "./completions/index.ts";
import { completionsJoin } from "./completions/join.ts";
import { generateContentBackend } from "./generate-content/index.ts";
import { messagesBackend, messagesClient } from "./messages/index.ts";
import { messagesJoin } from "./messages/join.ts";
import type { BackendProtocol, ClientProtocol } from "./protocol.ts";
import { responsesBackend, responsesClient } from "./responses/index.ts";
import { responsesJoin } from "./responses/join.ts";
import type { StreamJoin } from "./stream-join.ts";

const CLIENTS: Readonly<Partial<Record<ProtocolName, ClientProtocol>>> = {
  chat: chatClient,
  completions: completionsClient,
  responses: responsesClient,
  messages: messagesClient,
};

const BACKENDS: Readonly<Partial<Record<ProtocolName, BackendProtocol>>> = {
  chat: chatBackend,
  responses: responsesBackend,
  messages: messagesBackend,
  "generate-content": generateContentBackend,
};

const JOINS: Readonly<Partial<Record<ProtocolName, StreamJoin>>> = {
  chat: chatJoin,
  completions: completionsJoin,
  messages: messagesJoin,
  responses: responsesJoin,
};

/** How two streams of a format become one; undefined where they cannot. */
export function streamJoin(name: ProtocolName | undefined): StreamJoin | undefined {
  return name === undefined ? undefined : JOINS[name];
}

/** The client half of a format; what has no format of its own speaks as chat does. */
export function clientProtocol(name: ProtocolName | undefined): ClientProtocol {
  return (name === undefined ? undefined : CLIENTS[name]) ?? chatClient;
}

/** The backend half of a format. */
export function backendProtocol(name: ProtocolName): BackendProtocol {
  const protocol = BACKENDS[name];
  if (protocol === undefined) throw new Error(`no backend is spoken to as ${name}`);
  return protocol;
}

/** An error that an answer or a stream of a format tells inside a 200; engines tell those of text completions as chat's. */
export function errorToldIn(name: ProtocolName, body: unknown): Failure {
  return (BACKENDS[name] ?? chatBackend).decodeError(200, body);
}
