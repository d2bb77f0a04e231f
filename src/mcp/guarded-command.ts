// The command line that runs an MCP server under a guard: a second shell of some hundred kilobytes in the same process
// group, which waits at a pipe that only the gateway holds, and ends the group when the gateway has died, however it died.
// A process that leaves the group is not ended.

/**
 * The guard is there before the server is, so that no moment exists in which the gateway's death goes unseen. As a member
 * it keeps the number of the group from being used again, also when the server has gone and only its children are left.
 * It holds nothing of the protocol, and ignores the signals that a server may send to its own group.
 *
 * A word on the pipe: the gateway wants the group dead now. No word: the gateway is gone.
 */
const GUARD = `
(
  trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM TSTP TTIN TTOU
  (
    word=
    read -r word <&3
    if [ -z "$word" ]; then
      kill -TERM 0
      sleep 1
    fi
    kill -KILL 0
  ) </dev/null >/dev/null 2>&1 &
)
exec 3<&-
`;

/** Shells add these to the environment themselves. */
const ADDED_BY_SHELLS = ["PWD", "OLDPWD", "SHLVL"];
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** `program` is an absolute path. The pipe of the guard is descriptor 3. */
export function guardedCommand(program: string, args: readonly string[], names: readonly string[]): string[] {
  const added = ADDED_BY_SHELLS.filter((name) => !names.includes(name)).join(" ");
  const unset = added === "" ? "" : `unset ${added}\n`;
  // Bash also sets `_`, which it cannot be talked out of; env would take a program whose path has a = for a variable.
  const run = names.includes("_") || program.includes("=") ? "" : `[ -z "$BASH_VERSION" ] || exec env -u _ "$@"\n`;
  // Names that are no identifiers (npm has some) do not survive a small shell; bash lets them through.
  // Without --norc it takes the pipe of a server for a remote login, and runs what the person has in .bashrc.
  const shell = names.every((name) => IDENTIFIER.test(name)) ? ["/bin/sh"] : ["/bin/bash", "--norc"];
  const script = `${GUARD}${unset}${run}exec "$@"\n`;
  return [...shell, "-c", script, "mcp-server", program, ...args];
}
