// Names of MCP tools that every backend takes, [A-Za-z][A-Za-z0-9_-]{0,63}: "server__tool" where that fits, else with a
// digest of the true names. No tool of the agent itself has a double underscore, so that none is ever hidden.

const MAX_LENGTH = 64;
const DIGEST_LENGTH = 8;
/** Names of tools that a server has taken back; they are remembered so that a tool that returns has its name again. */
const MAX_KNOWN = 4_096;
const SEPARATOR = "__";

interface ToolNames {
  /** The same for the same tool as long as it is known; no two tools have the same. */
  nameOf(server: string, tool: string): string;
}

/** `server` tells servers apart: labels of two servers differ. */
export function createToolNames(): ToolNames {
  const names = new Map<string, string>();
  const taken = new Set<string>();

  function forgetOldest(): void {
    const [oldest] = names;
    if (oldest === undefined) return;
    names.delete(oldest[0]);
    taken.delete(oldest[1]);
  }

  return {
    nameOf(server, tool) {
      const key = JSON.stringify([server, tool]);
      const known = names.get(key);
      if (known !== undefined) return known;
      if (names.size >= MAX_KNOWN) forgetOldest();
      let name = nameFor(server, tool, 0);
      // A configured name may look like another one with its digest.
      for (let attempt = 1; taken.has(name); attempt++) name = nameFor(server, tool, attempt);
      names.set(key, name);
      taken.add(name);
      return name;
    },
  };
}

function nameFor(server: string, tool: string, attempt: number): string {
  const cleanServer = cleanServerName(server);
  const cleanTool = tool.replaceAll(/[^A-Za-z0-9_-]+/g, "_");
  const name = `${cleanServer}${SEPARATOR}${cleanTool}`;
  if (attempt === 0 && cleanServer === server && cleanTool === tool && tool !== "" && name.length <= MAX_LENGTH)
    return name;
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify([server, tool, attempt])).digest("hex");
  const end = `_${digest.slice(0, DIGEST_LENGTH)}`;
  // A long name of a server leaves room for that of the tool, which says more.
  const head =
    name.length + end.length <= MAX_LENGTH
      ? name
      : `${cleanServer.slice(0, 20).replace(/_+$/, "")}${SEPARATOR}${cleanTool}`;
  return `${head.slice(0, MAX_LENGTH - end.length)}${end}`;
}

/** Without a double underscore and none at its end, so that the first double one of a name is where the server ends. */
function cleanServerName(server: string): string {
  const clean = server
    .replaceAll(/[^A-Za-z0-9-]+/g, "_")
    .replace(/^_/, "")
    .replace(/_$/, "");
  return /^[A-Za-z]/.test(clean) ? clean : `mcp${clean === "" ? "" : `_${clean}`}`;
}

/** A label for each server, which tells the second one of a name from the first. */
export function serverLabels(names: readonly string[]): string[] {
  const used = new Set<string>();
  return names.map((name) => {
    let label = name;
    for (let count = 2; used.has(label); count++) label = `${name}-${count}`;
    used.add(label);
    return label;
  });
}
