// Standard output for protocol lines alone: whatever else would be printed there, by a library too, goes to standard error.

/** Methods of console that print to standard output. */
const PRINTERS = [
  "log",
  "info",
  "debug",
  "table",
  "dir",
  "dirxml",
  "group",
  "groupCollapsed",
  "count",
  "timeEnd",
  "timeLog",
] as const;

/** Writes to the file descriptor itself are not caught. */
export function keepOutputForLines(): void {
  const toStandardError = console.error.bind(console);
  for (const name of PRINTERS) console[name] = toStandardError;
  // Bun's own, beside those of the standard.
  (console as { write?: (...texts: unknown[]) => number }).write = (...texts) => {
    toStandardError(...texts);
    return 0;
  };
  // Made on demand: streams of Node cost a start their time.
  Object.defineProperty(process, "stdout", { get: () => process.stderr, configurable: true });
}
