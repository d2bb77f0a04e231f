// The official MCP client, loaded when the first server is opened: it costs some fifty milliseconds and fifteen
// megabytes, which a process without servers does not pay.

export type Library = typeof import("@modelcontextprotocol/client");

export function loadLibrary(): Promise<Library> {
  return import("@modelcontextprotocol/client");
}
