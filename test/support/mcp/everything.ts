// The reference server of MCP, which has one tool of every sort, over each of its transports.

import { installedProgram, MCP_EVERYTHING } from "../../../scripts/npm-programs.ts";
import { freePort } from "../free-port.ts";
import { startServerProgram } from "../server-program.ts";

/** As a command line for whoever starts it over stdio. */
export async function everythingCommand(): Promise<{ command: string; args: string[] }> {
  return { command: await installedProgram(MCP_EVERYTHING), args: ["stdio"] };
}

/** Over HTTP, with its address. `port`: the one that an earlier one had. */
export async function startEverything(transport: "streamableHttp" | "sse", port?: number) {
  const command = await installedProgram(MCP_EVERYTHING);
  const chosen = port ?? (await freePort());
  const url = `http://127.0.0.1:${chosen}/${transport === "sse" ? "sse" : "mcp"}`;
  const program = await startServerProgram({
    name: "server-everything",
    prepare: () => ["env", `PORT=${chosen}`, command, transport],
    // Any path tells that it listens.
    isReady: () =>
      fetch(`http://127.0.0.1:${chosen}/ready`).then(
        () => true,
        () => false,
      ),
  });
  return { url, port: chosen, stop: program.stop };
}
