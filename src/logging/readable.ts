// Log lines for people: time, level and message in columns, then the fields as key=value.

/** A line of the logger. */
interface LogEntry {
  time?: string;
  level?: string;
  msg?: string;
  err?: { stack?: string };
  [field: string]: unknown;
}

const MESSAGE_WIDTH = 24;
/** The longest name is "error". */
const LEVEL_WIDTH = 5;

const RESET = "\u001b[0m";
const DIM = "\u001b[2m";
const LEVEL_COLORS: Readonly<Record<string, string>> = {
  trace: DIM,
  debug: DIM,
  info: "\u001b[32m",
  warn: "\u001b[33m",
  error: "\u001b[31m",
  fatal: "\u001b[31m",
};

/** `text` for files and terminals alike: one line, the whole time, no colours. */
export function textLine(line: string): string {
  const { time = "", level = "", msg = "", ...fields } = JSON.parse(line) as LogEntry;
  return `${time} ${level.toUpperCase().padEnd(LEVEL_WIDTH)} ${message(msg, fields)}${pairs(fields)}\n`;
}

/** `pretty` for terminals: the time of day, colours, and the stack of an error below its line. */
export function prettyLine(line: string): string {
  const { time = "", level = "", msg = "", err, ...fields } = JSON.parse(line) as LogEntry;
  const shownLevel = `${LEVEL_COLORS[level] ?? ""}${level.toUpperCase().padEnd(LEVEL_WIDTH)}${RESET}`;
  const shownFields = pairs(fields, (name) => `${DIM}${name}=${RESET}`);
  const stack = err?.stack === undefined ? "" : `${err.stack.split("\n").map(indented).join("")}`;
  return `${DIM}${timeOfDay(time)}${RESET} ${shownLevel} ${message(msg, fields)}${shownFields}\n${stack}`;
}

function message(text: string, fields: object): string {
  const shown = harmless(text);
  return Object.keys(fields).length === 0 ? shown : shown.padEnd(MESSAGE_WIDTH);
}

function pairs(fields: object, label = (name: string) => `${name}=`): string {
  return Object.entries(fields)
    .map(([name, value]) => ` ${label(harmless(name))}${shown(value)}`)
    .join("");
}

/** Texts that could be mistaken for more than one value are quoted. */
function shown(value: unknown): string {
  if (typeof value === "string" && /^[\w.:/+@%~,()-]+$/.test(value)) return value;
  return harmless(JSON.stringify(value));
}

/** Characters that a terminal or a reader of lines would obey are escaped, so that no value can forge a line. */
function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function indented(line: string): string {
  return `    ${harmless(line.trim())}\n`;
}

/** In the time zone of the reader. */
function timeOfDay(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return harmless(time);
  const two = (part: number) => String(part).padStart(2, "0");
  const millis = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${millis}`;
}
