// The owner of MCP servers is killed, at any moment and by any signal: no process of their groups stays. The long form is
// SIGNALBOX_CRASH_ROUNDS=100 before the command.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { groupMembers, isAlive, listProcesses } from "../support/process-groups.ts";
import { waitFor } from "../support/wait-for.ts";

const OWNER = join(import.meta.dir, "../support/mcp/owner.ts");
const SERVER = join(import.meta.dir, "../support/mcp/bad-server.ts");
const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 10);
/** Deaf to everything that can be ignored, with a child that is, in a way that ps shows. */
const deaf = (mark: string) =>
  `trap '' TERM INT HUP; (trap '' TERM; while :; do sleep ${mark}; done) & while :; do sleep ${mark}; done`;

function own(...command: string[]) {
  const owner = Bun.spawn([process.execPath, OWNER, ...command], { stdout: "pipe", stderr: "inherit" });
  let output = "";
  void (async () => {
    for await (const bytes of owner.stdout) output += new TextDecoder().decode(bytes);
  })().catch(() => undefined);
  const told = (pattern: RegExp) => waitFor(`${pattern} is told`, () => pattern.exec(output)?.[1]);
  return { owner, told };
}

function withMark(mark: string): string[] {
  return listProcesses("pid=,stat=,args=", "-A").filter(
    (line) => line.includes(mark) && !/^\s*\d+ Z/.test(line) && !line.includes("owner.ts"),
  );
}

test.each(["SIGKILL", "SIGTERM", "SIGHUP"] as const)("%s leaves no server, guard or grandchild", async (signal) => {
  const { owner, told } = own(process.execPath, SERVER, "ignore-term", "ignore-end", "fork");
  const group = Number(await told(/started (\d+)/));
  const grandchild = Number(await told(/grandchild (\d+)/));
  expect(groupMembers(group)).toEqual(expect.arrayContaining([group, grandchild]));
  // The server, the grandchild, which runs a command of its own, and the guard.
  expect(groupMembers(group).length).toBeGreaterThanOrEqual(3);
  owner.kill(signal);
  await owner.exited;
  await waitFor("the group is gone", () => groupMembers(group).length === 0, { intervalMs: 50 });
  expect(isAlive(grandchild)).toBe(false);
});

async function killedAtSomeMoment(round: number): Promise<void> {
  const mark = `1000${process.pid}${round}`;
  const { owner, told } = own("sh", "-c", deaf(mark));
  // From the moment before the server runs until it has forked.
  if (round % 2 === 0) await told(/started (\d+)/);
  await Bun.sleep(round % 2 === 0 ? Math.random() * 20 : Math.random() * 100);
  owner.kill("SIGKILL");
  await owner.exited;
  await waitFor("nothing is left", () => withMark(mark).length === 0, {
    intervalMs: 100,
    explain: () => withMark(mark).join("\n"),
  });
}

test("a kill at any moment of a start leaves nothing", async () => {
  for (let from = 0; from < ROUNDS; from += 10)
    await Promise.all(Array.from({ length: 10 }, (_, index) => killedAtSomeMoment(from + index)));
}, 600_000);

test("a server whose guard was killed still ends with the gateway's word", async () => {
  const { startServerProcess } = await import("../../src/mcp/child-process.ts");
  const parts = { receive: () => undefined, mask: (text: string) => text, log: () => undefined, killAfterMs: 100 };
  const mark = `1000${process.pid}999`;
  const server = startServerProcess(
    { name: "x", command: "sh", args: ["-c", deaf(mark)], env: {}, cwd: "/tmp" },
    parts,
  );
  const isGuard = (pid: number) =>
    pid !== server.pid && listProcesses("args=", "-p", String(pid)).join().includes("read -r word");
  await waitFor("both sleep", () => withMark(`sleep ${mark}`).filter((line) => !line.includes("trap")).length === 2);
  const guards = groupMembers(server.pid).filter(isGuard);
  expect(guards.length).toBe(1);
  process.kill(guards[0] as number, "SIGKILL");
  await server.close();
  expect(groupMembers(server.pid)).toEqual([]);
});
