// What stands between load generator and upstream: nothing, nginx, a relay on the same runtime, Signalbox, or a peer.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { programPath, providePackages } from "../scripts/debian-packages.ts";
import { commandPath, installedProgram, PORTKEY } from "../scripts/npm-programs.ts";
import { installPythonProgram, LITELLM, pythonCommandPath } from "../scripts/python-programs.ts";
import { childrenOf, endProcess, findFreePort, readFirstLine, startProcess } from "./processes.ts";
import type { GatewayParts } from "./scenarios.ts";
import { type Answer, modelFor } from "./wire.ts";

/** What may stand between, and its title. Those from raw to fetch-duties are rungs of the ladder (relays/main.ts). */
export const SUBJECT_TITLES = {
  direct: "direct",
  nginx: "nginx",
  raw: "raw sockets",
  serve: "Bun.serve alone",
  bare: "bare fetch",
  "fetch-duties": "fetch, duties",
  client: "own client",
  "client-duties": "own client, duties",
  "signalbox-fetch": "Signalbox over fetch",
  signalbox: "Signalbox",
  portkey: "Portkey on Node",
  litellm: "LiteLLM on Python",
} as const;
export type SubjectName = keyof typeof SUBJECT_TITLES;

/** passed: the Signalbox that another one is compared with, which is measured beside it. */
export type MeasuredName = SubjectName | "passed";

export interface Subject {
  name: MeasuredName;
  port: number;
  /** What its requests need beyond those of the others. */
  headers?: Readonly<Record<string, string>>;
  /** Undefined for direct: nothing stands between. */
  running?: { child: Subprocess; command: readonly string[]; directory: string };
}

/** Every process that works for a subject. */
export function pidsOf({ running }: Subject): number[] {
  return running ? [running.child.pid, ...childrenOf(running.child.pid)] : [];
}

export async function stopSubject({ running }: Subject): Promise<void> {
  if (running) await endProcess(running.child);
}

export interface Surroundings {
  upstreamPort: number;
  temporaryFolder: string;
  /** Models of the gateway's configuration; see wire.ts for what their names mean. */
  models: readonly string[];
}

const THIS_TREE = join(import.meta.dir, "..");
/** Python loads for ten seconds and more. */
const READY_LIMIT_MS = 60_000;
const READY_ANSWER: Answer = { kind: "plain", bytes: 1024 };

export async function startUpstream(): Promise<{ port: number; stop: () => Promise<void> }> {
  const child = startHelper("upstream.ts");
  return { port: Number(await readFirstLine(child)), stop: () => endProcess(child) };
}

/** Starts a file of this folder; it ends when the benchmark does. */
export function startHelper(file: string, ...more: string[]): Subprocess {
  return startProcess([process.execPath, join(import.meta.dir, file), ...more], {
    holdInput: true,
    readOutput: true,
  });
}

/** Whether it can be measured here; says in one line why not. */
export async function provideSubject(name: SubjectName): Promise<boolean> {
  switch (name) {
    case "nginx":
      return providePackages("nginx");
    case "portkey":
      return isInstalled(name, installedProgram(PORTKEY));
    case "litellm":
      return isInstalled(name, installPythonProgram(LITELLM));
    default:
      return true;
  }
}

async function isInstalled(name: SubjectName, installation: Promise<unknown>): Promise<boolean> {
  try {
    await installation;
    return true;
  } catch (error) {
    console.error(`${SUBJECT_TITLES[name]} is not measured: ${(error as Error).message.split("\n")[0]}`);
    return false;
  }
}

/** The subject's command is started, but may not answer yet. */
export function startSubject(name: SubjectName, surroundings: Surroundings, gateway: GatewayParts = {}): Subject {
  switch (name) {
    case "direct":
      return { name, port: surroundings.upstreamPort };
    case "nginx":
      return startNginx(surroundings);
    case "signalbox":
      return startSignalbox(name, surroundings, gateway);
    case "signalbox-fetch":
      return startSignalbox(name, surroundings, { ...gateway, settings: { server: { upstream_client: "fetch" } } });
    case "portkey":
      return startPortkey(surroundings);
    case "litellm":
      return startLiteLlm(surroundings);
    default:
      return startRelay(name, surroundings);
  }
}

export function startNginx({ upstreamPort, temporaryFolder }: Surroundings, workers = 1): Subject {
  const port = findFreePort();
  const folder = join(temporaryFolder, `nginx-${port}`);
  mkdirSync(folder, { recursive: true });
  const configuration = join(folder, "nginx.conf");
  writeFileSync(
    configuration,
    `worker_processes ${workers};
worker_rlimit_nofile 8192;
daemon off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_max_body_size 100m;
  client_body_buffer_size 1m;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((area) => `${area}_temp_path ${folder}/${area};`).join(" ")}
  upstream model_server { server 127.0.0.1:${upstreamPort}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000000;
    location / {
      proxy_pass http://model_server;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }
  }
}
`,
  );
  return run("nginx", port, [programPath("nginx"), "-p", folder, "-c", configuration], folder);
}

function startRelay(rung: SubjectName, { upstreamPort, temporaryFolder }: Surroundings): Subject {
  const port = findFreePort();
  const program = join(import.meta.dir, "relays/main.ts");
  return run(rung, port, [process.execPath, program, rung, String(upstreamPort), String(port)], temporaryFolder);
}

function startPortkey({ upstreamPort, temporaryFolder }: Surroundings): Subject {
  const port = findFreePort();
  const command = ["node", commandPath(PORTKEY), `--port=${port}`, "--headless"];
  const headers = {
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`,
  };
  return { ...run("portkey", port, command, temporaryFolder), headers };
}

/** One worker, without a database, as its documentation starts it. */
function startLiteLlm({ upstreamPort, temporaryFolder, models }: Surroundings): Subject {
  const port = findFreePort();
  const configuration = join(temporaryFolder, `litellm-${port}.yaml`);
  const model_list = models.map((model) => ({
    model_name: model,
    litellm_params: {
      model: `openai/${model}`,
      api_base: `http://127.0.0.1:${upstreamPort}/v1`,
      api_key: "sk-bench-upstream",
    },
  }));
  writeFileSync(configuration, JSON.stringify({ model_list })); // JSON is YAML too
  const command = [
    pythonCommandPath(LITELLM),
    "--config",
    configuration,
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
  ];
  return run("litellm", port, [...command, "--num_workers", "1"], temporaryFolder, {
    LITELLM_LOCAL_MODEL_COST_MAP: "True", // else it asks the internet first
    LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true", // the others check no key either
  });
}

function gatewayCommand(tree: string): string[] {
  return ["sh", join(tree, "bin/signalbox")];
}

function startSignalbox(name: SubjectName, surroundings: Surroundings, gateway: GatewayParts): Subject {
  const { backendType = "openai", tree = THIS_TREE, settings } = gateway;
  const port = findFreePort();
  const configuration = join(surroundings.temporaryFolder, `signalbox-${port}.yaml`);
  const backend = {
    name: "upstream",
    type: backendType,
    url: `http://127.0.0.1:${surroundings.upstreamPort}/v1`,
    api_key: "sk-bench-upstream",
    models: surroundings.models,
  };
  const server = { ...settings?.server, bind_address: `127.0.0.1:${port}` };
  // JSON is YAML too.
  writeFileSync(configuration, JSON.stringify({ ...settings, server, backends: [backend] }, null, 2));
  return run(name, port, [...gatewayCommand(tree), "--config", configuration], surroundings.temporaryFolder);
}

/** The gateway as a newcomer starts it: no file, no key, so that the embedded demo backend answers. */
export function startZeroConfiguration({ temporaryFolder }: Surroundings): Subject {
  const port = findFreePort();
  const folder = join(temporaryFolder, "empty-home");
  mkdirSync(folder, { recursive: true });
  return run("signalbox", port, gatewayCommand(THIS_TREE), folder, {
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    OPENAI_API_KEY: undefined,
    ANTHROPIC_API_KEY: undefined,
    GEMINI_API_KEY: undefined,
    GOOGLE_API_KEY: undefined,
    SIGNALBOX_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
  });
}

function run(
  name: SubjectName,
  port: number,
  command: readonly string[],
  directory: string,
  environment: Readonly<Record<string, string | undefined>> = {},
): Subject {
  const child = startProcess(command, { directory, environment: { ...process.env, ...environment } });
  return { name, port, running: { child, command, directory } };
}

/** Asks for chat answers until one is there; the first success ends the wait. */
export async function awaitFirstAnswer(subject: Subject, model = modelFor(READY_ANSWER)): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  let last = "nothing";
  while (performance.now() < deadline) {
    try {
      const answer = await fetch(`http://127.0.0.1:${subject.port}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", ...subject.headers },
        body,
        signal: AbortSignal.timeout(READY_LIMIT_MS),
      });
      const text = await answer.text();
      if (answer.status === 200) return;
      last = `${answer.status} ${text.slice(0, 300)}`;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (hasEnded(subject)) break;
    await Bun.sleep(2);
  }
  throw new Error(`${subject.name} gave no chat answer; last: ${last}${await explain(subject)}`);
}

/** The first model a gateway lists. */
export async function firstModelOf(subject: Subject): Promise<string> {
  const deadline = performance.now() + READY_LIMIT_MS;
  while (performance.now() < deadline) {
    try {
      const answer = await fetch(`http://127.0.0.1:${subject.port}/v1/models`);
      const list = (await answer.json()) as { data?: { id?: string }[] };
      const model = list.data?.[0]?.id;
      if (model !== undefined) return model;
    } catch {} // Not listening yet.
    if (hasEnded(subject)) break;
    await Bun.sleep(10);
  }
  throw new Error(`${subject.name} listed no model${await explain(subject)}`);
}

function hasEnded({ running }: Subject): boolean {
  return running !== undefined && (running.child.exitCode !== null || running.child.signalCode !== null);
}

/** What the command says for itself: its messages went to /dev/null, so one that ended is started once more. */
async function explain(subject: Subject): Promise<string> {
  if (!subject.running || !hasEnded(subject)) return "";
  const { command, directory } = subject.running;
  const again = Bun.spawn([...command], { cwd: directory, stdin: "ignore", stderr: "pipe", timeout: 2000 });
  const text = await new Response(again.stderr).text();
  await again.exited;
  return `; it ended with code ${again.exitCode} and said:\n${text.slice(0, 2000)}`;
}
