// The official client's transports over HTTP, made for a server of a session: its headers, bounds, and no redirect to
// another origin.

import type { Transport } from "@modelcontextprotocol/client";
import { createBoundedFetch } from "./bounded-fetch.ts";
import type { Library } from "./library.ts";
import type { McpServerSpec } from "./servers.ts";

type HttpServerSpec = Extract<McpServerSpec, { type: "http" | "sse" }>;

/** Throws an Error that says what is wrong with the address or the headers, without their values. */
export function createHttpTransport(spec: HttpServerSpec, library: Library, answerWithinMs: number): Transport {
  const url = URL.parse(spec.url);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new Error(`MCP server ${spec.name} cannot be reached: its url is no http or https address`);
  const options = { requestInit: { headers: readHeaders(spec) }, fetch: createBoundedFetch({ answerWithinMs }) };
  return spec.type === "http"
    ? new library.StreamableHTTPClientTransport(url, options)
    : new library.SSEClientTransport(url, options);
}

function readHeaders({ name, headers }: HttpServerSpec): Headers {
  const read = new Headers();
  for (const [header, value] of Object.entries(headers)) {
    try {
      read.append(header, value);
    } catch {
      // The system's own message quotes the value.
      throw new Error(`MCP server ${name} cannot be reached: the header ${JSON.stringify(header)} is not valid`);
    }
  }
  return read;
}
