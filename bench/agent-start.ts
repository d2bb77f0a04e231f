// What an editor waits for: from the start of an agent to its answer to initialize, beside a start that only prints the
// version, and the time of one more round trip.  sh bin/bun bench/agent-start.ts [rounds]

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROUNDS = Number(process.argv[2] ?? 20);
const GOAL = 1.3;
const COMMAND = ["sh", join(import.meta.dir, "..", "bin", "signalbox")];

const folder = mkdtempSync(join(tmpdir(), "signalbox-agent-start-"));
writeFileSync(join(folder, "config.yaml"), "backends:\n  - {name: demo, type: demo}\n");
const environment = { cwd: folder, env: { PATH: process.env.PATH ?? "", HOME: folder } };

async function versionMs(): Promise<number> {
  const beganMs = performance.now();
  await Bun.spawn([...COMMAND, "--version"], { ...environment, stdin: "ignore", stdout: "ignore" }).exited;
  return performance.now() - beganMs;
}

const request = (id: number) =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method: "initialize", params: { protocolVersion: 1 } })}\n`;

async function agentMs(): Promise<{ start: number; roundTrip: number }> {
  const beganMs = performance.now();
  const agent = Bun.spawn([...COMMAND, "--mode", "stdio"], {
    ...environment,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const reader = agent.stdout.getReader();
  const ask = async (id: number): Promise<void> => {
    agent.stdin.write(request(id));
    await agent.stdin.flush();
    if ((await reader.read()).done) throw new Error("the agent ended without an answer");
  };
  await ask(0);
  const start = performance.now() - beganMs;
  // What it does behind its first answer is over by then.
  await Bun.sleep(500);
  const askedMs = performance.now();
  await ask(1);
  const roundTrip = performance.now() - askedMs;
  await agent.stdin.end();
  await agent.exited;
  return { start, roundTrip };
}

const median = (values: number[]): number => values.toSorted((one, other) => one - other)[values.length >> 1] as number;

const versions: number[] = [];
const starts: number[] = [];
const roundTrips: number[] = [];
try {
  // In turn, so that whatever else the machine does concerns both.
  for (let round = 0; round < ROUNDS; round++) {
    versions.push(await versionMs());
    const { start, roundTrip } = await agentMs();
    starts.push(start);
    roundTrips.push(roundTrip);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const [version, start, roundTrip] = [median(versions), median(starts), median(roundTrips)];
const share = (start - roundTrip) / version;
console.log(`--version                      ${version.toFixed(1)} ms`);
console.log(`start to initialize answered   ${start.toFixed(1)} ms`);
console.log(`one round trip                 ${roundTrip.toFixed(2)} ms`);
console.log(`(start - round trip) / version ${share.toFixed(2)}  (goal: at most ${GOAL})`);
process.exit(share <= GOAL ? 0 : 1);
