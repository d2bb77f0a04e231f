// Agent mode with a server that does what its lines say, in place of ACP: for what is around a server. Run as a process.

import type { AcpParts, AcpServer } from "../../src/acp/parts.ts";
import { runAgent } from "../../src/agent-mode/run.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import type { GenerationRequest } from "../../src/generation/request.ts";

type Ask = { ask: string; model?: string; count?: number; sessions?: Parameters<AcpParts["sessionsChanged"]>[0] };

function createScriptedServer(parts: AcpParts): AcpServer {
  const stop = new AbortController();
  const decoder = new TextDecoder();
  let rest = "";
  let isPaused = false;
  const tell = (value: unknown) => parts.write(new TextEncoder().encode(`${JSON.stringify(value)}\n`));

  async function answer({ ask, model = "m", count = 0, sessions = [] }: Ask): Promise<void> {
    const { signal } = stop;
    if (ask === "echo") await tell({ echo: true });
    if (ask === "models") await tell(await parts.models.offered(signal));
    if (ask === "window") await tell(parts.models.contextWindow(model) ?? null);
    if (ask === "options") {
      const { permission, ...options } = parts.options();
      await tell({ ...options, execute: permission("execute"), cwd: parts.cwd });
    }
    if (ask === "sessions") parts.sessionsChanged(sessions);
    if (ask === "pause") {
      isPaused = true;
      await tell({ paused: true });
    }
    if (ask === "print") printEverywhere();
    if (ask === "flood") for (let n = 0; n < count; n++) await tell({ n, text: "x".repeat(1_000) });
    if (ask === "generate") await tell(await textOf(model, signal));
  }

  async function textOf(model: string, signal: AbortSignal): Promise<string> {
    let text = "";
    try {
      for await (const event of parts.models.generate({ ...REQUEST, model }, { signal })) {
        if (event.type === "delta") text += event.text ?? "";
        if (event.type === "failure") text += `failure: ${event.failure.message}`;
      }
    } catch (error) {
      text += `refused: ${(error as Error).message}`;
    }
    return text;
  }

  return {
    receive(bytes) {
      if (isPaused) return new Promise(() => {});
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) void answer(JSON.parse(line) as Ask);
    },
    async stop() {
      stop.abort();
      await tell({ stopped: true });
    },
  };
}

const REQUEST: GenerationRequest = {
  model: "m",
  system: [],
  messages: [{ role: "user", parts: [{ type: "text", text: "hi" }] }],
  tools: [],
  sampling: {},
  reasoning: {},
  stream: true,
  origin: { protocol: "chat", body: {} },
  extensions: {},
};

/** As libraries do that think they run in a terminal. */
function printEverywhere(): void {
  console.log("printed");
  console.info("printed");
  console.debug("printed");
  console.table([{ printed: 1 }]);
  console.dir({ printed: 1 });
  console.group("printed");
  console.groupEnd();
  console.count("printed");
  console.time("printed");
  console.timeEnd("printed");
  process.stdout.write("printed\n");
  (console as unknown as { write(text: string): void }).write("printed\n");
}

async function main(): Promise<number> {
  const command = parseArguments(["--mode", "stdio", ...process.argv.slice(2)], process.env.HOME);
  if ("error" in command || command.command !== "agent") throw new Error("wrong arguments");
  const { exitCode, message } = await runAgent({
    command,
    env: process.env,
    loadServer: async () => ({ createAcpServer: createScriptedServer }),
  });
  if (message !== undefined) process.stderr.write(`${message}\n`);
  return exitCode;
}

// A bundle with bytecode has no await at its top.
void main().then((exitCode) => process.exit(exitCode));
