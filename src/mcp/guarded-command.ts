// The command line that runs an MCP server under a guard: a second shell of some hundred kilobytes in the same process
// group, which waits at a pipe that only the gateway holds, and ends all that the server has started when the gateway has
// died, however it died.

/** A server may start new processes while it is hunted; one that no signal ends is left after so many rounds. */
const MAX_ROUNDS = 100;

/**
 * The guard is there before the server is, so that no moment exists in which the gateway's death goes unseen. As a member
 * it keeps the number of the group from being used anew, also when the server has gone and only its children are left.
 * It holds nothing of the protocol, and ignores the signals that a server may send to its own group.
 *
 * A word on the pipe: the gateway wants the rest dead now. No word: the gateway is gone.
 *
 * The rest is the group, and on Linux every process with the mark: what leaves the group keeps it, whatever it does with its
 * session, its parents and its environment. The guard has none, so that it does not hunt itself.
 */
const guardScript = (mark: string) => `
(
  trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM TSTP TTIN TTOU
  (
    word=
    read -r word <&3
    if [ -z "$word" ]; then
      kill -TERM 0
      sleep 1
    fi
    PATH="$PATH:/usr/bin:/bin"
    living=yes
    rounds=${MAX_ROUNDS}
    while [ -n "$living" ] && [ "$rounds" -gt 0 ]; do
      living=
      rounds=$((rounds - 1))
      for file in $(grep -l '^Max file locks  *${mark} ' /proc/[0-9]*/limits); do
        pid=\${file#/proc/}
        pid=\${pid%/limits}
        stat=
        read -r stat <"/proc/$pid/stat"
        # Behind the name, which may hold anything: the dead whom nobody has collected yet have the mark as well.
        case "\${stat##*) }" in
          '' | [ZX]*) ;;
          *) living=yes; kill -KILL "$pid" ;;
        esac
      done
    done
    kill -KILL 0
  ) </dev/null >/dev/null 2>&1 &
)
exec 3<&-
`;

/**
 * The mark of a server is a limit that means nothing since Linux 2.4, how many locks of files it may have: children inherit
 * it, nobody changes it, and it can be read of every process. A variable would be seen by the server. Shells call it x, and
 * dash w. A server of a server keeps the mark that it has been born with: it ends with that one.
 */
const markScript = (mark: string) => `
{
  if [ "$(ulimit -S -x)" = unlimited ]; then
    ulimit -S -x ${mark}
  elif [ "$(ulimit -S -w)" = unlimited ]; then
    ulimit -S -w ${mark}
  fi
} 2>/dev/null
`;

/** What shells add to the environment of their own accord. */
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
  const mark = newMark();
  const script = `${guardScript(mark)}${markScript(mark)}${unset}${run}exec "$@"\n`;
  return [...shell, "-c", script, "mcp-server", program, ...args];
}

/** Fifteen digits, as no limit has them. */
function newMark(): string {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return `1${[high, low].map((half) => String(half % 10_000_000).padStart(7, "0")).join("")}`;
}
