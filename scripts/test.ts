// npm test: the static checks, then every test; what failed, and the line "N passed, N failed", come last.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { providePackages } from "./debian-packages.ts";
import { runStep, STATIC_CHECKS, type Step } from "./run-steps.ts";
import { type FailedTest, readTestRun, type TestRun } from "./test-run.ts";

interface TestGroup {
  name: string;
  paths: string[];
  /** Its files are shared out to so many runners at once; most of their time is the start of gateways. */
  runners?: number;
  environment?: Readonly<Record<string, string>>;
  /** Its gateways are the executable of npm run build, not the source. */
  runsExecutable?: boolean;
  /** What its tests need besides node_modules; false: they cannot run, and count as failed. */
  prepare?: () => Promise<boolean>;
}

type Counts = Omit<TestRun, "failures">;

interface FailedFile {
  group: TestGroup;
  file: string;
  tests: FailedTest[];
}

/** Each group is a process of its own, so that a crash of one is counted and does not hide the others. The longest go first. */
const TEST_GROUPS: TestGroup[] = [
  {
    name: "black-box tests",
    paths: ["./test/black-box"],
    runners: 3,
    runsExecutable: true,
    prepare: () => providePackages("openssl", "procps"),
  },
  { name: "unit and architecture tests", paths: ["./src", "./scripts", "./test/architecture"] },
  { name: "simulation", paths: ["./test/simulation"] },
  { name: "translation", paths: ["./test/translation"] },
  {
    name: "the same by fetch, where the client for backends matters most",
    paths: ["abort", "bad-backends", "health-states", "mid-stream", "streams", "timeouts"].map(
      (name) => `./test/black-box/${name}.test.ts`,
    ),
    environment: { UPSTREAM_CLIENT: "fetch" },
  },
  {
    name: "the same with two workers, where they have most to share",
    paths: ["admin-backend-changes", "circuit-breaker", "deduplication", "rate-limiting", "retry", "streams"].map(
      (name) => `./test/black-box/${name}.test.ts`,
    ),
    environment: { GATEWAY_WORKERS: "2" },
    runsExecutable: true,
  },
  { name: "attacks", paths: ["./test/attacks"], runsExecutable: true },
  { name: "torture of the HTTP client", paths: ["./test/torture"], prepare: () => providePackages("openssl") },
  {
    name: "attacks through real proxies",
    paths: ["./test/proxies"],
    runsExecutable: true,
    prepare: () => providePackages("nginx", "haproxy"),
  },
  { name: "a real Prometheus", paths: ["./test/prometheus"], prepare: () => providePackages("prometheus") },
  {
    name: "a real Redis",
    paths: ["./test/redis"],
    runsExecutable: true,
    prepare: () => providePackages("redis-server", "openssl"),
  },
  {
    name: "what is deployed",
    paths: ["./test/deploy"],
    prepare: () => providePackages("prometheus", "nginx", "openssl", "caddy", "systemd"),
  },
  { name: "installed packages", paths: ["./test/packages"] },
  {
    name: "the dashboard in a real Chromium",
    paths: ["./test/dashboard"],
    prepare: () => providePackages("chromium"),
  },
  { name: "official clients", paths: ["./test/clients"], runsExecutable: true },
  { name: "coding agents", paths: ["./test/agents"], runsExecutable: true },
  {
    name: "the agent of an editor, and its tool servers",
    paths: ["./test/acp", "./test/mcp"],
    prepare: () => providePackages("procps"),
  },
];

/** A test may take this long; the runner's default of 5 s is short for a loaded machine. */
const TEST_TIMEOUT_MS = 60_000;

/** So many runners at once: most of their time they wait for gateways. */
const RUNNERS = 3;

const built = mkdtempSync(join(tmpdir(), "signalbox-executable-"));
const EXECUTABLE = join(built, "signalbox");
process.on("exit", () => rmSync(built, { recursive: true, force: true }));

const BUILD: Step = { name: "executable", command: [process.execPath, "scripts/build.ts", `--outfile=${EXECUTABLE}`] };

/** Debian's packages can be installed by one at a time. */
let preparing: Promise<unknown> = Promise.resolve();

function prepared({ prepare }: TestGroup): Promise<boolean> {
  if (prepare === undefined) return Promise.resolve(true);
  const mine = preparing.then(prepare);
  preparing = mine;
  return mine;
}

/** What a group has printed comes as one, when it is over. */
async function runGroup(group: TestGroup): Promise<void> {
  const { name, paths, runners = 1 } = group;
  const isReady = await prepared(group);
  const startedMs = performance.now();
  const shares = runners === 1 ? [paths] : await shareOut(paths, runners);
  const all = isReady ? await Promise.all(shares.map((share) => runTests(share, group))) : [];
  console.log(`\n== ${name} (${Math.round((performance.now() - startedMs) / 1000)} s)`);
  for (const { output } of all) process.stdout.write(output);
  if (!isReady) failedOtherwise.push(`${name}: what they need is not here`);
  for (const { run } of all) {
    total.passed += run.passed;
    total.skipped += run.skipped;
    // A runner that died, or in which something failed outside of any test, names no test.
    const unnamed = run.failed - run.failures.length;
    for (let index = 0; index < unnamed; index++) failedOtherwise.push(`${name}: outside of any test`);
    for (const failure of run.failures) {
      const known = failedFiles.find((one) => one.group === group && one.file === failure.file);
      if (known === undefined) failedFiles.push({ group, file: failure.file, tests: [failure] });
      else known.tests.push(failure);
    }
  }
}

/** Each group begins when there is room for its runners, in order as far as that goes. */
async function runGroups(groups: readonly TestGroup[]): Promise<void> {
  const waiting = [...groups];
  const running = new Set<Promise<void>>();
  let free = RUNNERS;
  while (waiting.length > 0 || running.size > 0) {
    const next = waiting.findIndex(({ runners = 1 }) => runners <= free);
    if (next < 0) {
      await Promise.race(running);
      continue;
    }
    const [group] = waiting.splice(next, 1) as [TestGroup];
    const { runners = 1 } = group;
    free -= runners;
    const run = runGroup(group).then(() => {
      free += runners;
      running.delete(run);
    });
    running.add(run);
  }
}

/** The test files below the paths, dealt in turn. */
async function shareOut(paths: readonly string[], runners: number): Promise<string[][]> {
  const files: string[] = [];
  for (const path of paths) {
    if (path.endsWith(".test.ts")) files.push(path);
    else for await (const file of new Bun.Glob("**/*.test.ts").scan(path)) files.push(`${path}/${file}`);
  }
  files.sort();
  return Array.from({ length: runners }, (_, runner) => files.filter((_file, index) => index % runners === runner));
}

async function runTests(
  paths: readonly string[],
  { environment, runsExecutable = false }: TestGroup,
): Promise<{ output: string; run: TestRun }> {
  const child = Bun.spawn([process.execPath, "test", "--timeout", String(TEST_TIMEOUT_MS), ...paths], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      ...(runsExecutable && { GATEWAY_EXECUTABLE: EXECUTABLE }),
      ...environment,
      NO_COLOR: "1",
    },
  });
  const [printed, reported] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { output: printed + reported, run: readTestRun(reported, await child.exited) };
}

/**
 * A file that failed beside others is run once more, alone. It passes then if all that it lacked was the machine: such a test
 * waits for a time where it should wait for a condition, and is named at the end, but it does not fail the run.
 */
async function tryAlone(failed: FailedFile): Promise<boolean> {
  console.log(`\n== once more, alone: ${failed.file}`);
  const { output, run } = await runTests([`./${failed.file}`], failed.group);
  process.stdout.write(output);
  return run.failed === 0 && run.passed >= failed.tests.length;
}

function list(heading: string, files: readonly FailedFile[], others: readonly string[] = []): void {
  if (files.length + others.length === 0) return;
  console.log(`\n== ${heading}`);
  for (const other of others) console.log(other);
  for (const { group, file, tests } of files) {
    console.log(`${file} (${group.name})`);
    for (const { name } of tests) console.log(`  ${name}`);
  }
}

/** When more files than these fail, it is not the machine. */
const TRIED_ALONE_AT_MOST = 8;

const total: Counts = { passed: 0, failed: 0, skipped: 0 };
const failedFiles: FailedFile[] = [];
const failedOtherwise: string[] = [];

for (const step of [...STATIC_CHECKS, BUILD]) {
  if ((await runStep(step)) === 0) total.passed++;
  else failedOtherwise.push(step.name);
}
await runGroups(TEST_GROUPS);

const passedAlone: FailedFile[] = [];
if (failedFiles.length <= TRIED_ALONE_AT_MOST) {
  for (const file of [...failedFiles]) {
    if (!(await tryAlone(file))) continue;
    passedAlone.push(file);
    failedFiles.splice(failedFiles.indexOf(file), 1);
    total.passed += file.tests.length;
  }
}
total.failed = failedOtherwise.length + failedFiles.reduce((sum, { tests }) => sum + tests.length, 0);

list("failed beside others, passed alone; to be mended", passedAlone);
list("failed", failedFiles, failedOtherwise);
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
process.exit(total.failed > 0 ? 1 : 0);
