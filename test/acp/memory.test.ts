// A thousand prompts in one process, in sessions that come and go: memory stays where it was. In the suite it is a short
// form; SIGNALBOX_AGENT_PROMPTS=1000 before the command makes it the long one.

import { afterEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { FakeBackend } from "../support/fake-backend.ts";
import { scriptedAnswer } from "../support/scripted-turns.ts";
import { WatchedAgent } from "../support/watched-agent.ts";

const PROMPTS = Number(process.env.SIGNALBOX_AGENT_PROMPTS ?? 200);
const PROMPTS_OF_A_SESSION = 5;
const PROMPT_LENGTH = 300_000;
/** Sessions until memory has the size that this work needs. */
const WARM_UP = 10;
/** Sessions behind them, and at the end, whose least memory is compared. */
const COMPARED = 6;
/** Less than the prompts of the short form are together, so that it would show if each were kept. */
const LEAK_BYTES = 45_000_000;

/** Until a collection shows what is left. */
const MORE_SESSIONS = 160;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

test(`memory is flat over ${PROMPTS} prompts`, async () => {
  const backend = new FakeBackend({
    models: ["m"],
    answer: () => scriptedAnswer({ text: "word ".repeat(200) }, "x"),
  });
  cleanups.push(() => backend.stop());
  const agent = new WatchedAgent({ config: { backends: [{ name: "gpu", type: "vllm", url: backend.url }] } });
  cleanups.push(() => agent.close());
  await agent.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });

  async function session(): Promise<void> {
    const { result } = await agent.ask("session/new", { cwd: agent.folder, mcpServers: [] });
    const { sessionId } = result as { sessionId: string };
    for (let count = 0; count < PROMPTS_OF_A_SESSION; count++) {
      const prompt = [{ type: "text", text: "x".repeat(PROMPT_LENGTH) }];
      const answer = await agent.ask("session/prompt", { sessionId, prompt });
      expect(answer.result).toMatchObject({ stopReason: "end_turn" });
    }
    await agent.ask("session/close", { sessionId });
    // The test itself keeps what was said only until here.
    agent.forget();
  }
  const sizes: number[] = [];
  async function sessions(count: number): Promise<void> {
    for (let done = 0; done < count; done++) {
      await session();
      sizes.push(residentBytes(agent.pid));
    }
  }
  // Between two collections it goes up and down; what stays is what counts.
  const grown = () => Math.min(...sizes.slice(-COMPARED)) - Math.min(...sizes.slice(WARM_UP, WARM_UP + COMPARED));
  await sessions(WARM_UP + PROMPTS / PROMPTS_OF_A_SESSION);
  // A collection comes once in some forty sessions, and late on a busy machine. What is kept for good only grows.
  for (let more = 0; more < MORE_SESSIONS && grown() >= LEAK_BYTES; more++) await sessions(1);
  expect(grown()).toBeLessThan(LEAK_BYTES);
}, 600_000);
