// The few lines that the server prints on start: where it listens, what is behind it, and a first command to paste.

import { BACKEND_KINDS } from "../backends/kinds.ts";
import type { FoundBackend, UnrecognisedServer } from "../discovery/discover.ts";

/** Configured ones were not found: nothing is said of how. */
type BannerBackend = Omit<FoundBackend, "how"> & Partial<Pick<FoundBackend, "how">>;

export interface BannerOptions {
  version: string;
  /** "host:port", "[v6]:port" or "unix:/path", with the ports that were really taken. */
  addresses: readonly string[];
  /** Their URLs are printed as they are. */
  backends: readonly BannerBackend[];
  /** Servers of this machine that answer and are not used. */
  unrecognised?: readonly UnrecognisedServer[];
  /** Left out when there is no configuration file. */
  configPath?: string;
  /** A chat model for the example; without one the example lists models. */
  model?: string;
  apiKeyRequired?: boolean;
  colour?: boolean;
}

const MAX_BACKENDS = 8;

export function renderBanner(options: BannerOptions): string {
  const paint = (on: number, off: number) => (text: string) =>
    options.colour ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  const bold = paint(1, 22);
  const dim = paint(2, 22);
  const [firstAddress = "127.0.0.1:8080"] = options.addresses;
  const lines = [
    `${bold(`Signalbox ${options.version}`)} listens on ${options.addresses.map((address) => printable(displayAddress(address))).join(" and ")}`,
    options.configPath === undefined
      ? dim("No configuration file; using what was found on this machine.")
      : dim(`Configuration: ${printable(options.configPath)}`),
    ...backendLines(options.backends, dim),
    ...unrecognisedLines(options.unrecognised ?? [], dim),
    "",
    options.apiKeyRequired ? "Try it, with one of your keys in API_KEY:" : "Try it:",
    `  ${renderCurl(firstAddress, options.model, options.apiKeyRequired ?? false)}`,
  ];
  return `${lines.join("\n")}\n`;
}

function backendLines(backends: readonly BannerBackend[], dim: (text: string) => string): string[] {
  if (backends.length === 0) return ["No backends yet: requests are answered with 503."];
  const shown = backends.slice(0, MAX_BACKENDS);
  const width = Math.max(...shown.map((backend) => backend.name.length));
  const lines = shown.map(({ name, kind, url, how }) => {
    // An embedded backend has no address; a name that says the kind need not be followed by it.
    const place = BACKEND_KINDS[kind].isEmbedded ? "the built-in demo model" : printable(url);
    const notes = [kind === name ? undefined : kind, how === "built in" ? undefined : how].filter(Boolean);
    return `  ${name.padEnd(width)}  ${place}${notes.length > 0 ? dim(` (${notes.join(", ")})`) : ""}`;
  });
  const hidden = backends.length - shown.length;
  return ["Backends:", ...lines, ...(hidden > 0 ? [`  and ${hidden} more`] : [])];
}

/** Only its owner can say if it is a model server; the printed line is a whole configuration, or a part of one. */
function unrecognisedLines(servers: readonly UnrecognisedServer[], dim: (text: string) => string): string[] {
  if (servers.length === 0) return [];
  const entries = servers.map(({ backend }) => {
    const members = Object.entries(backend).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
    return `{${members.join(", ")}}`;
  });
  return [
    "Not used, because it is not recognised:",
    ...servers.map(({ address, said }) => `  ${address}${dim(` (${said})`)}`),
    "If that is a model server, this line in config.yaml uses it, beside other backends that you list there:",
    `  backends: [${entries.join(", ")}]`,
  ];
}

/** One line for a POSIX shell that asks the gateway a first question. */
function renderCurl(address: string, model: string | undefined, apiKeyRequired: boolean): string {
  const words = ["curl"];
  if (address.startsWith("unix:")) words.push("--unix-socket", shellWord(address.slice("unix:".length)));
  words.push(shellWord(`${reachableUrl(address)}${model === undefined ? "/v1/models" : "/v1/chat/completions"}`));
  // Double quotes, so that the shell fills in the variable.
  if (apiKeyRequired) words.push("-H", '"Authorization: Bearer $API_KEY"');
  if (model !== undefined) {
    const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello!" }] });
    words.push("-H", shellWord("Content-Type: application/json"), "-d", shellWord(escapeControlCharacters(body)));
  }
  return words.join(" ");
}

/** Addresses that mean "every interface" cannot be called; this machine is one of them. */
const CALLABLE_HOSTS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "[::]": "[::1]" };

function reachableUrl(address: string): string {
  if (address.startsWith("unix:")) return "http://localhost";
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon);
  return `http://${CALLABLE_HOSTS[host] ?? host}${address.slice(colon)}`;
}

export function displayAddress(address: string): string {
  return address.startsWith("unix:") ? address : `http://${address}`;
}

/** Quoted where the shell would read more than the plain text, e.g. the brackets of an IPv6 address in zsh. */
function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Paths and addresses may hold anything; they must not steer the terminal. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "?");
}

/** The same for model names, which come from backends; JSON.stringify has escaped the lower control characters. */
function escapeControlCharacters(json: string): string {
  return json.replaceAll(/\p{Cc}/gu, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}
