// The filter of `signalbox replay`: names and values, as in model=gpt-4o text="refund policy".

const PAIR = /\s*([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))(?=\s|$)/y;

/** A value with spaces stands in quotes, in which a backslash takes the next sign as it is. */
export function parseReplayFilter(text: string): Readonly<Record<string, string>> | { error: string } {
  const pairs = new Map<string, string>();
  PAIR.lastIndex = 0;
  while (text.slice(PAIR.lastIndex).trim() !== "") {
    const from = PAIR.lastIndex;
    const match = PAIR.exec(text);
    if (match === null) {
      const rest = text.slice(from).trim().slice(0, 40);
      return { error: `--filter: expected name=value or name="value with spaces" at: ${rest}` };
    }
    const [, name = "", quoted, plain = ""] = match;
    if (pairs.has(name)) return { error: `--filter: ${name} stands there twice` };
    pairs.set(name, quoted === undefined ? plain : quoted.replaceAll(/\\(.)/gs, "$1"));
  }
  return Object.fromEntries(pairs);
}
