// The wire formats, and their parts by name.

import type { ProtocolName } from "../generation/content.ts";
import type { Failure } from "../generation/result.ts";
import type { JsonObject } from "../lib/json.ts";
import { audio } from "./audio/index.ts";
import { chat } from "./chat/index.ts";
import { ChatStreamDecoder } from "./chat/stream-decoder.ts";
import { completions } from "./completions/index.ts";
import { converse } from "./converse/index.ts";
import type { Format } from "./format.ts";
import { generateContent } from "./generate-content/index.ts";
import { images } from "./images/index.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import { messages } from "./messages/index.ts";
import { ollama } from "./ollama/index.ts";
import { OllamaStreamDecoder } from "./ollama/stream-decoder.ts";
import type { BackendProtocol, ClientProtocol, ClientWords, PassThrough } from "./protocol.ts";
import { responses } from "./responses/index.ts";
import type { StreamJoin } from "./stream-join.ts";

const FORMATS: Readonly<Record<ProtocolName, Format>> = {
  chat,
  // Its backends are asked in the client's own bytes; read are only streams that take over an answer, as chat's are.
  completions: {
    ...completions,
    backend: {
      ...chat.backend,
      name: "completions",
      readsStreamsAlone: true,
      streamDecoder: (keeps) => new ChatStreamDecoder(keeps, "text"),
    },
  },
  responses,
  messages,
  "generate-content": generateContent,
  // Its backends, too, are asked in the client's own bytes, and only such streams are read.
  "ollama-api": {
    ...ollama,
    backend: {
      ...chat.backend,
      name: "ollama-api",
      readsStreamsAlone: true,
      streamDecoder: () => new OllamaStreamDecoder(),
    },
  },
  converse,
  images,
  audio,
};

/** True of the name of a format; false of any other text, such as a member that all objects have. */
export function isFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

function formatNamed(name: ProtocolName | undefined): Format | undefined {
  return name === undefined ? undefined : FORMATS[name];
}

/** What is known of answers that are kept; undefined where those of a format never are. */
export function keptAnswers(name: ProtocolName | undefined): KeptAnswers | undefined {
  return formatNamed(name)?.kept;
}

/** How two streams of a format become one; undefined where they cannot. */
export function streamJoin(name: ProtocolName | undefined): StreamJoin | undefined {
  return formatNamed(name)?.join;
}

/** The client half of a format; what has no format of its own speaks as chat does. */
export function clientProtocol(name: ProtocolName | undefined): ClientProtocol {
  return formatNamed(name)?.client ?? chat.client;
}

/** The format that a body looks like: by where its conversation stands; chat where that does not tell. */
export function formatOfBody(body: JsonObject): ProtocolName {
  const named = Object.entries(FORMATS).find(
    ([, { conversation }]) => conversation !== undefined && conversation in body,
  );
  return named?.[0] ?? chat.client.name;
}

/** The errors of a format; one without words of its own speaks as chat does. */
export function clientWords(name: ProtocolName | undefined): ClientWords {
  const format = formatNamed(name);
  return format?.words ?? format?.client ?? chat.client;
}

/** The backend half of a format. */
export function backendProtocol(name: ProtocolName): BackendProtocol {
  const protocol = formatNamed(name)?.backend;
  if (protocol === undefined) throw new Error(`no backend is spoken to as ${name}`);
  return protocol;
}

/** Both halves of a format of conversations; undefined where it has one of them, or none. */
export function bothHalves(name: ProtocolName): { client: ClientProtocol; backend: BackendProtocol } | undefined {
  const { client, backend } = formatNamed(name) ?? {};
  return client && backend && { client, backend };
}

/** What of a format passes untouched; one without a format of its own passes as chat does. */
export function passThrough(name: ProtocolName | undefined): PassThrough {
  return (formatNamed(name) ?? chat).passing;
}

/** An error that an answer or a stream of a format tells inside a 200; engines tell those of text completions as chat's. */
export function errorToldIn(name: ProtocolName | undefined, body: unknown): Failure {
  return (formatNamed(name)?.backend ?? chat.backend).decodeError(200, body);
}
