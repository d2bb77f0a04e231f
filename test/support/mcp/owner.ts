// A process that owns MCP servers, for tests that kill it: starts the command of its arguments as a server, and says when
// it runs.

import { startServerProcess } from "../../../src/mcp/child-process.ts";

const [command = "", ...args] = process.argv.slice(2);
const server = startServerProcess(
  { name: "owned", command, args, env: {}, cwd: "/tmp" },
  { receive: () => undefined, mask: (text) => text, log: (_level, message) => process.stdout.write(`${message}\n`) },
);
process.stdout.write(`started ${server.pid}\n`);
setInterval(() => undefined, 1_000_000);
