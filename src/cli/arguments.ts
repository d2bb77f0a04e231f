// The command line: one table of options, from which parsing and help text are made.

import { expandHome } from "../config/values/paths.ts";
import { nearest } from "../lib/nearest.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";

interface StartOptions {
  config: string | undefined;
  modelMetadata: string | undefined;
  ignoreSaved: boolean;
}

export type Command =
  | ({ command: "serve" } & StartOptions)
  /** Speaks over standard input and output. */
  | ({ command: "agent" } & StartOptions)
  | { command: "check-config"; config: string | undefined; modelMetadata: string | undefined; asJson: boolean }
  | { command: "health-check"; url: string | undefined; config: string | undefined }
  | { command: "backup"; folder: string; config: string | undefined; modelMetadata: string | undefined }
  | { command: "restore"; folder: string; config: string | undefined }
  | { command: "update-facts"; file: string; config: string | undefined }
  | { command: "test-hook"; module: string; request: string; config: string | undefined }
  | ReplayCommand
  | { command: "help" }
  | { command: "version" }
  | { command: "generate-config" };

export type ParsedArguments = Command | { error: string };

/** Of `signalbox replay`; all but the address and the form are what POST /admin/replays takes. */
export interface ReplayCommand {
  command: "replay";
  url: string;
  filter: string;
  /** A file. */
  rubric: string | undefined;
  judge: string | undefined;
  asked: Readonly<Record<string, string>>;
  asJson: boolean;
}

interface Option {
  name: string;
  short?: string;
  /** Name of its value in the help text; an option without one is a switch. */
  value?: string;
  /** A path whose `~` is expanded. */
  isPath?: boolean;
  help: string;
}

const OPTIONS = [
  {
    name: "--config",
    value: "path",
    isPath: true,
    help: "Configuration file, YAML or TOML. Without it config.yaml, config.yml or config.toml is looked for in the working folder, in ~/.config/signalbox and in /etc/signalbox.",
  },
  {
    name: "--mode",
    value: "mode",
    help: "stdio: run as the agent of an editor (ACP) over standard input and output, without listening anywhere.",
  },
  { name: "--generate-config", help: "Print a default configuration with comments, and exit." },
  {
    name: "--check-config",
    help: "Say everything that is wrong with the configuration without starting: exit 0 when nothing is, else 1.",
  },
  { name: "--json", help: "For --check-config: the answer as one JSON object." },
  { name: "--health-check", help: "Ask a running gateway for its health: exit 0 when healthy, else 1." },
  {
    name: "--health-check-url",
    value: "url",
    help: "Address for --health-check, which it implies. Default: /health at the first configured bind_address.",
  },
  {
    name: "--backup",
    value: "folder",
    isPath: true,
    help: "Copy the data folder and the files that the configuration names into a new folder, also while a gateway runs.",
  },
  {
    name: "--restore",
    value: "folder",
    isPath: true,
    help: "Put a backup back: its data into an empty data folder, its configuration where --config says.",
  },
  {
    name: "--model-metadata",
    value: "path",
    isPath: true,
    help: "File with facts about models (names, limits, prices) for GET /v1/models/{model}.",
  },
  {
    name: "--update-facts",
    value: "file",
    isPath: true,
    help: "Merge LiteLLM's public list of models (model_prices_and_context_window.json) into the facts of the data folder, and say what has changed.",
  },
  {
    name: "--test-hook",
    value: "file",
    isPath: true,
    help: "Try the module of a hook: call it with the body of a request, whose file follows, and print its verdict, changes and time. With --config, by the options that it has there.",
  },
  {
    name: "--ignore-saved",
    help: "Start from the configuration file alone; changes that were made through the admin API stay in the history.",
  },
  { name: "--help", short: "-h", help: "Print this text, and exit." },
  { name: "--version", short: "-V", help: "Print the version, and exit." },
] as const satisfies readonly Option[];

/** Of the command replay. */
const REPLAY_OPTIONS = [
  {
    name: "--filter",
    value: "filter",
    help: "Recordings that are asked again, such as 'model=gpt-4o text=\"refund policy\" window=24h limit=50'.",
  },
  { name: "--model", value: "model", help: "The model that is asked." },
  { name: "--route", value: "route", help: "In place of a model: a route." },
  { name: "--arm", value: "target", help: "A target of this route." },
  {
    name: "--prompt",
    value: "file",
    help: "A prompt file of the gateway, in place of the instructions of the requests.",
  },
  { name: "--instructions", value: "text", help: "The same, as a text of your own." },
  { name: "--key", value: "id", help: "Id of the key as whose the requests are asked." },
  { name: "--judge", value: "model", help: "A model that says which answers are better; needs --rubric." },
  { name: "--rubric", value: "file", isPath: true, help: "What the judge judges by: a file of text." },
  {
    name: "--url",
    value: "url",
    help: "Address of the gateway. Default: http://127.0.0.1:8080. SIGNALBOX_ADMIN_TOKEN is sent as the bearer token.",
  },
  { name: "--json", help: "The replay as one JSON object, in place of a table." },
] as const satisfies readonly Option[];

const REPLAY = "replay";
const USUAL_URL = "http://127.0.0.1:8080";

type OptionName = (typeof OPTIONS)[number]["name"];

const AGENT_MODE = "stdio";
/** What follows --test-hook and its value. */
const REQUEST_FILE = "request";

/** `words` is the command line without the program itself. The last of a repeated option wins. */
export function parseArguments(words: readonly string[], home: string | undefined): ParsedArguments {
  if (words[0] === REPLAY) {
    if (words.includes("--help") || words.includes("-h")) return { command: "help" };
    const read = readOptions(words.slice(1), REPLAY_OPTIONS, home);
    return read instanceof Map ? toReplay(read) : read;
  }
  const read = readOptions(words, OPTIONS, home);
  return read instanceof Map ? toCommand(read as ReadonlyMap<OptionName, string>) : read;
}

function readOptions(
  words: readonly string[],
  options: readonly Option[],
  home: string | undefined,
): Map<string, string> | { error: string } {
  const given = new Map<string, string>();
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string;
    // Only the request of --test-hook stands alone.
    if (given.has("--test-hook") && !given.has(REQUEST_FILE) && !word.startsWith("-")) {
      given.set(REQUEST_FILE, expandHome(word, home));
      continue;
    }
    if (!word.startsWith("-") || word === "-")
      return { error: `unexpected argument "${word}"; there are only options` };
    const equals = word.startsWith("--") ? word.indexOf("=") : -1;
    const name = equals === -1 ? word : word.slice(0, equals);
    const option = options.find((candidate) => candidate.name === name || candidate.short === name);
    if (option === undefined) return { error: unknownOption(name, options) };
    if (option.value === undefined) {
      if (equals !== -1) return { error: `${option.name} takes no value` };
      given.set(option.name, "");
      continue;
    }
    const value = equals === -1 ? words[++index] : word.slice(equals + 1);
    // "--config --mode" is a forgotten value; a path that does start with a dash can be given as --config=-path.
    if (value === undefined || value === "" || (equals === -1 && value.startsWith("-"))) {
      return { error: `${option.name} needs a value: ${option.name} <${option.value}>` };
    }
    given.set(option.name, option.isPath ? expandHome(value, home) : value);
  }
  return given;
}

function toReplay(given: ReadonlyMap<string, string>): ReplayCommand | { error: string } {
  const [filter, judge, rubric] = ["--filter", "--judge", "--rubric"].map((name) => given.get(name));
  const url = given.get("--url") ?? USUAL_URL;
  if (filter === undefined) return { error: "replay needs --filter, which says what is asked again" };
  if (!["--model", "--route", "--prompt", "--instructions"].some((name) => given.has(name))) {
    return { error: "replay needs --model, --route, --prompt or --instructions" };
  }
  if ((judge === undefined) !== (rubric === undefined)) return { error: "--judge and --rubric need each other" };
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    return { error: "--url: expected a URL that starts with http:// or https://" };
  const names = ["model", "route", "arm", "prompt", "instructions", "key"].filter((name) => given.has(`--${name}`));
  const asked = Object.fromEntries(names.map((name) => [name, given.get(`--${name}`) as string]));
  return { command: "replay", url, filter, judge, rubric, asked, asJson: given.has("--json") };
}

function toCommand(given: ReadonlyMap<OptionName | typeof REQUEST_FILE, string>): ParsedArguments {
  if (given.has("--help")) return { command: "help" };
  const module = given.get("--test-hook");
  const request = given.get(REQUEST_FILE);
  if (module !== undefined) {
    if (request === undefined)
      return { error: "--test-hook needs the file of a request: --test-hook <file> <request>" };
    return { command: "test-hook", module, request, config: given.get("--config") };
  }
  if (given.has("--version")) return { command: "version" };
  const mode = given.get("--mode");
  if (mode !== undefined && mode !== AGENT_MODE) {
    return { error: `unknown mode "${mode}"; the only one is stdio, and without --mode the gateway serves HTTP` };
  }
  if (given.has("--generate-config")) return { command: "generate-config" };
  const url = given.get("--health-check-url");
  const config = given.get("--config");
  const modelMetadata = given.get("--model-metadata");
  const asJson = given.has("--json");
  if (given.has("--check-config")) return { command: "check-config", config, modelMetadata, asJson };
  if (asJson) return { error: "--json belongs to --check-config" };
  if (url !== undefined && !isProbeUrl(url)) {
    return { error: `--health-check-url: expected a URL that starts with http://, https:// or unix:/` };
  }
  const backup = given.get("--backup");
  const restore = given.get("--restore");
  if (backup !== undefined && restore !== undefined) return { error: "--backup and --restore exclude each other" };
  if (backup !== undefined) return { command: "backup", folder: backup, config, modelMetadata };
  if (restore !== undefined) return { command: "restore", folder: restore, config };
  const facts = given.get("--update-facts");
  if (facts !== undefined) return { command: "update-facts", file: facts, config };
  if (url !== undefined || given.has("--health-check")) return { command: "health-check", url, config };
  return {
    command: mode === AGENT_MODE ? "agent" : "serve",
    config,
    modelMetadata,
    ignoreSaved: given.has("--ignore-saved"),
  };
}

function isProbeUrl(text: string): boolean {
  return /^unix:\/./.test(text) || (/^https?:\/\//.test(text) && URL.canParse(text));
}

function unknownOption(name: string, options: readonly Option[]): string {
  const suggestion = nearest(
    name,
    options.map((option) => option.name),
  );
  return suggestion === undefined
    ? `unknown option ${name}; --help lists the options`
    : `unknown option ${name}; did you mean ${suggestion}?`;
}

const HELP_WIDTH = 80;
const HELP_COLUMN = 30;

export function helpText(): string {
  return [
    `${SERVICE_NAME} ${VERSION}: a model routing gateway, one address in front of many model servers.`,
    "",
    `Usage: ${SERVICE_NAME} [options]`,
    `       ${SERVICE_NAME} ${REPLAY} --filter <filter> --model <model> [options]`,
    "",
    "Options:",
    ...linesOf(OPTIONS),
    "",
    `Options of ${REPLAY}, which asks recorded requests of a running gateway again:`,
    ...linesOf(REPLAY_OPTIONS),
    "",
    "Every setting can also be given in the environment, e.g. the key bind_address of",
    "the section server as SIGNALBOX_SERVER__BIND_ADDRESS.",
    "",
  ].join("\n");
}

function linesOf(options: readonly Option[]): string[] {
  return options.flatMap((option) => {
    const short = option.short === undefined ? "    " : `${option.short}, `;
    const left = `  ${short}${option.name}${option.value === undefined ? "" : ` <${option.value}>`}`;
    const [first, ...rest] = wrap(option.help, HELP_WIDTH - HELP_COLUMN - 2);
    const indent = " ".repeat(HELP_COLUMN + 2);
    const head = left.length <= HELP_COLUMN ? [left.padEnd(HELP_COLUMN + 2) + first] : [left, indent + first];
    return [...head, ...rest.map((line) => indent + line)];
  });
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
