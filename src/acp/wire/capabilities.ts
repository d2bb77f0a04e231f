// What both sides say of themselves in initialize.

import type { EditorAbilities } from "../../agent/editor.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { SERVICE_NAME, VERSION } from "../../names.ts";
import { AGENT_CAPABILITIES } from "../capabilities.ts";
import { optionalObject } from "../params.ts";

export interface ClientAbilities extends EditorAbilities {
  /** The client knows updates of the kind "notice". */
  notices: boolean;
}

export const NO_ABILITIES: ClientAbilities = {
  readTextFile: false,
  writeTextFile: false,
  terminal: false,
  notices: false,
};

/** Files stand in `fs` or beside it; the client can when either form says so. */
export function decodeAbilities(params: JsonObject): ClientAbilities {
  const given = optionalObject(params, "clientCapabilities") ?? {};
  const fs = optionalObject(given, "fs", "clientCapabilities.fs") ?? {};
  const session = isObject(given.session) ? given.session : {};
  return {
    readTextFile: fs.readTextFile === true || given.readTextFile === true,
    writeTextFile: fs.writeTextFile === true || given.writeTextFile === true,
    terminal: given.terminal === true,
    notices: isObject(session.notices),
  };
}

/** The version of the protocol is 1, whatever is asked for: a client that cannot speak it may leave. */
export function encodeInitialized(): JsonObject {
  const { image, audio, embeddedContext } = AGENT_CAPABILITIES;
  return {
    protocolVersion: 1,
    agentCapabilities: {
      ...AGENT_CAPABILITIES,
      promptCapabilities: { image, audio, embeddedContext },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
      auth: { logout: {} },
    },
    agentInfo: { name: SERVICE_NAME, title: "Signalbox", version: VERSION },
    authMethods: [],
  };
}
