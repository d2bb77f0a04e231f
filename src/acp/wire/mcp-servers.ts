// The MCP servers that a client names in session/new, load and resume.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import type { McpServerSpec } from "../../mcp/servers.ts";
import { optionalList, optionalText, requiredText } from "../params.ts";
import { invalidParams, shortened } from "../rpc-error.ts";

/** More are a mistake: each is a process or a connection. */
const MAX_SERVERS = 64;

/** `left`: names of those that the client would have to be asked for (type acp), which are not opened. */
export function decodeMcpServers(params: JsonObject): { servers: McpServerSpec[]; left: string[] } {
  const entries = optionalList(params, "mcpServers") ?? [];
  if (entries.length > MAX_SERVERS) throw invalidParams(`mcpServers must have at most ${MAX_SERVERS} entries.`);
  const servers: McpServerSpec[] = [];
  const left: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const field = `mcpServers[${index}]`;
    if (!isObject(entry)) throw invalidParams(`${field} must be an object.`);
    const name = requiredText(entry, "name", `${field}.name`);
    const type = optionalText(entry, "type", `${field}.type`) ?? (isPresent(entry.url) ? "http" : "stdio");
    if (type === "acp") left.push(shortened(name));
    else servers.push(decodeServer(entry, { type, name, field }));
  }
  return { servers, left };
}

function decodeServer(
  entry: JsonObject,
  { type, name, field }: { type: string; name: string; field: string },
): McpServerSpec {
  if (type === "stdio") {
    const command = requiredText(entry, "command", `${field}.command`);
    const args = (optionalList(entry, "args", `${field}.args`) ?? []).map((each, index) => {
      if (typeof each !== "string") throw invalidParams(`${field}.args[${index}] must be a string.`);
      return each;
    });
    return { type, name, command, args, env: pairs(entry, "env", field) };
  }
  if (type !== "http" && type !== "sse") throw invalidParams(`${field}.type must be stdio, http, sse or acp.`);
  const url = requiredText(entry, "url", `${field}.url`);
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw invalidParams(`${field}.url must be a URL that begins with http:// or https://.`);
  }
  return { type, name, url, headers: pairs(entry, "headers", field) };
}

/** [{name, value}], or an object as configuration files have it. The values are secrets: no message repeats one. */
function pairs(entry: JsonObject, name: string, field: string): Record<string, string> {
  const given = entry[name];
  if (!isPresent(given)) return {};
  const list = isObject(given) ? Object.entries(given).map(([key, value]) => ({ name: key, value })) : given;
  if (!Array.isArray(list)) throw invalidParams(`${field}.${name} must be a list of {name, value}.`);
  const found = list.map((each: unknown, index) => {
    if (!isObject(each) || typeof each.name !== "string" || typeof each.value !== "string") {
      throw invalidParams(`${field}.${name}[${index}] must be {name, value}, both strings.`);
    }
    return [each.name, each.value] as const;
  });
  return Object.fromEntries(found);
}
