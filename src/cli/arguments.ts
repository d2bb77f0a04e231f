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
  | { command: "help" }
  | { command: "version" }
  | { command: "generate-config" };

export type ParsedArguments = Command | { error: string };

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

type OptionName = (typeof OPTIONS)[number]["name"];

const AGENT_MODE = "stdio";

/** `words` is the command line without the program itself. The last of a repeated option wins. */
export function parseArguments(words: readonly string[], home: string | undefined): ParsedArguments {
  const given = new Map<OptionName, string>();
  let request: string | undefined;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string;
    // Only the request of --test-hook stands alone.
    if (given.has("--test-hook") && request === undefined && !word.startsWith("-")) {
      request = expandHome(word, home);
      continue;
    }
    if (!word.startsWith("-") || word === "-")
      return { error: `unexpected argument "${word}"; there are only options` };
    const equals = word.startsWith("--") ? word.indexOf("=") : -1;
    const name = equals === -1 ? word : word.slice(0, equals);
    const option: Option | undefined = OPTIONS.find(
      (candidate: Option) => candidate.name === name || candidate.short === name,
    );
    if (option === undefined) return { error: unknownOption(name) };
    if (option.value === undefined) {
      if (equals !== -1) return { error: `${option.name} takes no value` };
      given.set(option.name as OptionName, "");
      continue;
    }
    const value = equals === -1 ? words[++index] : word.slice(equals + 1);
    // "--config --mode" is a forgotten value; a path that does start with a dash can be given as --config=-path.
    if (value === undefined || value === "" || (equals === -1 && value.startsWith("-"))) {
      return { error: `${option.name} needs a value: ${option.name} <${option.value}>` };
    }
    given.set(option.name as OptionName, option.isPath ? expandHome(value, home) : value);
  }
  return toCommand(given, request);
}

/** @param request - the file that follows --test-hook */
function toCommand(given: ReadonlyMap<OptionName, string>, request: string | undefined): ParsedArguments {
  if (given.has("--help")) return { command: "help" };
  const module = given.get("--test-hook");
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

function unknownOption(name: string): string {
  const suggestion = nearest(
    name,
    OPTIONS.map((option) => option.name),
  );
  return suggestion === undefined
    ? `unknown option ${name}; --help lists the options`
    : `unknown option ${name}; did you mean ${suggestion}?`;
}

const HELP_WIDTH = 80;
const HELP_COLUMN = 30;

export function helpText(): string {
  const lines = OPTIONS.flatMap((option: Option) => {
    const short = option.short === undefined ? "    " : `${option.short}, `;
    const left = `  ${short}${option.name}${option.value === undefined ? "" : ` <${option.value}>`}`;
    const [first, ...rest] = wrap(option.help, HELP_WIDTH - HELP_COLUMN - 2);
    const indent = " ".repeat(HELP_COLUMN + 2);
    const head = left.length <= HELP_COLUMN ? [left.padEnd(HELP_COLUMN + 2) + first] : [left, indent + first];
    return [...head, ...rest.map((line) => indent + line)];
  });
  return [
    `${SERVICE_NAME} ${VERSION}: a model routing gateway, one address in front of many model servers.`,
    "",
    `Usage: ${SERVICE_NAME} [options]`,
    "",
    "Options:",
    ...lines,
    "",
    "Every setting can also be given in the environment, e.g. the key bind_address of",
    "the section server as SIGNALBOX_SERVER__BIND_ADDRESS.",
    "",
  ].join("\n");
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
