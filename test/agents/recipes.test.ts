// The recipes of docs/clients.md, pasted as they stand, with the demo model of a gateway without configuration.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  CLAUDE_CODE,
  CODEX,
  INSTALL_TIMEOUT_MS,
  installedProgram,
  type NpmProgram,
} from "../../scripts/npm-programs.ts";
import { AgentWorkplace } from "../support/agent-workplace.ts";
import { createTestBed } from "../support/test-bed.ts";

const GUIDE = readFileSync(join(import.meta.dir, "..", "..", "docs", "clients.md"), "utf8");
const GREETING = "I am the demo model built into Signalbox";

const bed = createTestBed();
const workplace = new AgentWorkplace();
const agents = new Map<NpmProgram, string>();
let url = "";

beforeAll(async () => {
  for (const agent of [CLAUDE_CODE, CODEX]) agents.set(agent, await installedProgram(agent));
  url = (await bed.gateway({ config: { backends: [{ name: "demo", type: "demo" }] } })).url;
}, 2 * INSTALL_TIMEOUT_MS);
afterAll(() => workplace.close());

/** The first code of a language below a heading, for the gateway of this test. */
function recipe(heading: string, language: string): string {
  const chapter = GUIDE.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const code = chapter.split(`\`\`\`${language}\n`)[1]?.split("```")[0];
  if (code === undefined) throw new Error(`docs/clients.md has no ${language} below ${heading}`);
  expect(code).toContain(language === "sh" && heading === "Codex" ? "codex" : "http://127.0.0.1:8080");
  return code.replaceAll("http://127.0.0.1:8080", url);
}

async function paste(script: string, agent: NpmProgram) {
  const path = `${dirname(agents.get(agent) as string)}:${process.env.PATH}`;
  return await workplace.run(["sh", "-e", "-c", script], { PATH: path, DISABLE_AUTOUPDATER: "1" });
}

test("Claude Code answers with the demo model", async () => {
  const { exitCode, stdout, stderr } = await paste(recipe("Claude Code", "sh"), CLAUDE_CODE);
  expect(`${stdout}${stderr}`).toContain(GREETING);
  expect(exitCode).toBe(0);
});

test("Claude Code runs a tool that it is told, offline", async () => {
  const script = recipe("Claude Code", "sh").replace('claude -p "Say hello."', 'claude -p "Use Bash to look around."');
  const { exitCode, stdout, stderr } = await paste(script, CLAUDE_CODE);
  expect(`${stdout}${stderr}`).toContain("Your tool answered");
  expect(exitCode).toBe(0);
});

test("Codex answers with the demo model", async () => {
  mkdirSync(join(workplace.home, ".codex"), { recursive: true });
  writeFileSync(join(workplace.home, ".codex", "config.toml"), recipe("Codex", "toml"));
  const { exitCode, stdout, stderr } = await paste(recipe("Codex", "sh"), CODEX);
  expect(`${stdout}${stderr}`).toContain(GREETING);
  expect(exitCode).toBe(0);
});
