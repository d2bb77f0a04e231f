// Agent mode: an editor speaks ACP over standard input and output, and a gateway without listeners stands behind it.

import type { AcpServer, CreateAcpServer } from "../acp/parts.ts";
import { tellSessions } from "../acp/running-sessions.ts";
import { keepOutputForLines } from "../cli/lines-only.ts";
import { resolvePath } from "../config/values/paths.ts";
import { inTime } from "../lib/abortable-delay.ts";
import { systemClock } from "../lib/clock.ts";
import { keepLoopbackFromProxies } from "../lib/proxy-environment.ts";
import type { Logger } from "../logging/logger.ts";
import { SERVICE_NAME } from "../names.ts";
import { openAgentConfiguration, StartProblem } from "../runtime/open-configuration.ts";
import { untilSignalled } from "../runtime/shutdown.ts";
import { createAgentGateway } from "./gateway.ts";
import { createLineOutput } from "./line-output.ts";
import { createAgentModels } from "./models.ts";
import { agentOptionsOf } from "./options.ts";

interface AgentCommand {
  config: string | undefined;
  modelMetadata: string | undefined;
  ignoreSaved: boolean;
}

interface AgentModeParts {
  command: AgentCommand;
  env: Record<string, string | undefined>;
  loadServer(): Promise<{ createAcpServer: CreateAcpServer }>;
}

/** An editor that says nothing at first keeps the gateway from being composed no longer than this. */
const QUIET_START_MS = 50;
/** Tool servers get this long to end, whatever server.shutdown_timeout says: none may be left behind. */
const TOOL_SERVERS_MS = 7_000;
/** For the last lines, to an editor that may not read any more. */
const LAST_LINES_MS = 1_000;

/** Returns the exit code and, when it could not start, why. */
export async function runAgent(parts: AgentModeParts): Promise<{ exitCode: number; message?: string }> {
  const { command, env } = parts;
  keepOutputForLines();
  keepLoopbackFromProxies(env);
  const [configuration, { createAcpServer }] = await Promise.all([
    openAgentConfiguration(command, env),
    parts.loadServer(),
  ]);
  if (!configuration.ok) return { exitCode: 1, message: configuration.message };
  const { store, log } = configuration;
  const { settings, path, baseDir } = store.current;
  if (!settings.acp.enabled) return { exitCode: 1, message: switchedOff(path) };

  const output = createLineOutput();
  const gateway = createAgentGateway({ configuration, env, clock: systemClock });
  const telling = tellSessions({ dataDir: resolvePath(settings.server.data_dir, baseDir, env.HOME), log });
  const optionsOf = agentOptionsOf(env.HOME);
  const server = createAcpServer({
    options: () => optionsOf(store.current),
    models: createAgentModels({ gateway: gateway.compose, snapshot: () => store.current }),
    clock: systemClock,
    log,
    cwd: process.cwd(),
    write: output.write,
    sessionsChanged: telling.tell,
  });
  log.info({ configuration: path ?? "none" }, "speaking ACP over standard input and output");
  const signalled = untilSignalled(["SIGTERM", "SIGINT", "SIGHUP"]).then(() => "a signal");
  const gone = output.broken.then(() => "standard output was closed");
  const ended = read(server, () => setImmediate(compose)).then(() => "standard input ended");
  const quiet = setTimeout(compose, QUIET_START_MS);

  function compose(): void {
    clearTimeout(quiet);
    void gateway.compose().catch(() => {}); // gateway.failed tells it
  }

  try {
    const reason = await Promise.race([ended, signalled, gone, gateway.failed]);
    log.info({ reason }, "stopping");
    return { exitCode: 0 };
  } catch (error) {
    return { exitCode: 1, message: messageOf(error, log) };
  } finally {
    clearTimeout(quiet);
    const stopMs = Math.max(store.current.settings.server.shutdown_timeout, TOOL_SERVERS_MS);
    const stopped = server.stop().then(() => true);
    if (!(await inTime(stopped, stopMs))) log.warn({ timeout_ms: stopMs }, "the sessions did not end in time");
    await inTime(output.flushed(), LAST_LINES_MS);
    await telling.stop();
    await gateway.stop();
    store.close();
  }
}

function switchedOff(path: string | undefined): string {
  return `${SERVICE_NAME}: acp.enabled is false${path === undefined ? "" : ` (${path})`}; agents do not start`;
}

/** To its end. Reads on when the server has taken what came. */
async function read(server: AcpServer, received: () => void): Promise<void> {
  const reader = Bun.stdin.stream().getReader();
  for (;;) {
    // A terminal that was closed is an input that has ended.
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done || value === undefined) return;
    await server.receive(value);
    received();
  }
}

function messageOf(error: unknown, log: Logger): string {
  if (error instanceof StartProblem) return error.message;
  log.error({ err: error }, "the agent cannot go on");
  return `${SERVICE_NAME}: the agent cannot go on, see the line before`;
}
