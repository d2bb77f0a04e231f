// A child process as a transport of the official MCP client.

import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import {
  type ProcessParts,
  type ProcessSpec,
  ServerEnded,
  type ServerProcess,
  startServerProcess,
} from "./child-process.ts";

interface StdioTransport extends Transport {
  /** How the process ended, once it has. */
  readonly ending: string | undefined;
}

export function createStdioTransport(spec: ProcessSpec, parts: Omit<ProcessParts, "receive">): StdioTransport {
  let server: ServerProcess | undefined;
  let ending: string | undefined;
  let isClosed = false;

  const transport: StdioTransport = {
    get ending() {
      return ending;
    },
    async start() {
      server = startServerProcess(spec, {
        ...parts,
        receive: (message) => transport.onmessage?.(message as unknown as JSONRPCMessage),
      });
      void server.ended.then((how) => {
        ending = how;
        tellClosed();
      });
    },
    async send(message) {
      if (server === undefined) throw new Error("the server has not been started");
      try {
        await server.send(message);
      } catch (error) {
        // A pending call is to fail with how the process ended.
        if (error instanceof ServerEnded) await server.ended;
        throw error;
      }
    },
    async close() {
      // Pending calls fail at once; the process may take its time.
      tellClosed();
      await server?.close();
    },
  };

  function tellClosed(): void {
    if (isClosed) return;
    isClosed = true;
    transport.onclose?.();
  }
  return transport;
}
