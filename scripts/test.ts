// npm test: every test, and the static checks beside them; what failed, and the line "N passed, N failed", come last.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { STATIC_CHECKS, type Step } from "./run-steps.ts";
import { namePattern, TEST_GROUPS, type TestGroup, TIME_LIMIT } from "./test-groups.ts";
import { type FailedTest, readTestRun, type TestRun } from "./test-run.ts";

type Counts = Omit<TestRun, "failures">;

interface FailedFile {
  group: TestGroup;
  file: string;
  tests: FailedTest[];
}

/** So many runners at once: about half of their time they wait. */
const RUNNERS = 4;

/**
 * Most code of a test runs for seconds only, so that compiling for the last tier of the engine, beside the tests, costs more CPU time
 * than it saves. The long forms run with it.
 */
const ENGINE = { BUN_JSC_useFTLJIT: "0" };

/** Two runs of the same tree draw the same values; runs of single files draw others each time. */
const DRAWS = { PROPERTY_SEED: "1" };

/** How long each file took the last time, so that the longest begin first. */
const TIMINGS = "node_modules/.cache/test-timings";

const built = mkdtempSync(join(tmpdir(), "signalbox-executable-"));
const EXECUTABLE = join(built, "signalbox");
process.on("exit", () => rmSync(built, { recursive: true, force: true }));

const BUILD: Step = { name: "executable", command: [process.execPath, "scripts/build.ts", `--outfile=${EXECUTABLE}`] };

/** Takes some of the runners until it is over. */
interface Job {
  runners: number;
  run(): Promise<void>;
}

/** The steps come from a list of their own, and take one runner each. */
function jobOf(step: Step): Job {
  return { runners: 1, run: async () => void (await succeeds(step)) };
}

/** What a step or a group has printed comes as one, when it is over. */
async function succeeds({ name, command }: Step): Promise<boolean> {
  const startedMs = performance.now();
  const child = Bun.spawn(command, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1" } });
  const printed = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const isGood = (await child.exited) === 0;
  printHeading(`${name}: ${isGood ? "passed" : "failed"}`, startedMs);
  process.stdout.write(printed.join(""));
  if (isGood) total.passed++;
  else failedOtherwise.push(name);
  return isGood;
}

function printHeading(name: string, startedMs: number): void {
  console.log(`\n== ${name} (${Math.round((performance.now() - startedMs) / 1000)} s)`);
}

/** Debian's packages can be installed by one at a time. */
let preparing: Promise<unknown> = Promise.resolve();

async function isPrepared({ prepare, runsExecutable = true }: TestGroup): Promise<boolean> {
  if (prepare !== undefined) {
    const mine = preparing.then(prepare);
    preparing = mine;
    if (!(await mine)) return false;
  }
  return !runsExecutable || (await executable);
}

async function runGroup(group: TestGroup): Promise<void> {
  const { name, paths } = group;
  const isReady = await isPrepared(group);
  const startedMs = performance.now();
  if (!isReady) {
    failedOtherwise.push(`${name}: what they need is not here`);
    return;
  }
  const { output, run } = await runTests(paths, group);
  printHeading(name, startedMs);
  process.stdout.write(output);
  total.passed += run.passed;
  total.skipped += run.skipped;
  // What died without a word names no test.
  const unnamed = run.failed - run.failures.length;
  for (let index = 0; index < unnamed; index++) failedOtherwise.push(`${name}: outside of any test`);
  for (const failure of run.failures) {
    const known = failedFiles.find((one) => one.group === group && one.file === failure.file);
    if (known === undefined) failedFiles.push({ group, file: failure.file, tests: [failure] });
    else known.tests.push(failure);
  }
}

/** Each job begins when there is room for its runners, in order as far as that goes. */
async function runJobs(jobs: readonly Job[]): Promise<void> {
  const waiting = [...jobs];
  const running = new Set<Promise<void>>();
  let free = RUNNERS;
  while (waiting.length > 0 || running.size > 0) {
    const next = waiting.findIndex(({ runners }) => runners <= free);
    if (next < 0) {
      await Promise.race(running);
      continue;
    }
    const [job] = waiting.splice(next, 1) as [Job];
    free -= job.runners;
    const run = job.run().then(() => {
      free += job.runners;
      running.delete(run);
    });
    running.add(run);
  }
}

async function runTests(
  paths: readonly string[],
  { name, environment, runners = 1, runsExecutable = true, only }: TestGroup,
): Promise<{ output: string; run: TestRun }> {
  const timings = `${TIMINGS}/${name.replaceAll(/\W+/g, "-")}.json`;
  const shared = ["--no-isolate", `--parallel=${runners}`, `--timings=${timings}`, "--update-timings"];
  const named = only === undefined ? [] : ["--test-name-pattern", namePattern(only)];
  const options = [...TIME_LIMIT, ...(runners > 1 ? shared : []), ...named];
  const child = Bun.spawn([process.execPath, "test", ...options, ...paths], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      ...ENGINE,
      ...DRAWS,
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
 * waits for a time where it should wait for a condition, or meets a race. It has failed all the same; its name says where to look.
 */
async function passesAlone(failed: FailedFile): Promise<boolean> {
  console.log(`\n== once more, alone: ${failed.file}`);
  const { output, run } = await runTests([`./${failed.file}`], { ...failed.group, runners: 1 });
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

const executable = succeeds(BUILD);
mkdirSync(TIMINGS, { recursive: true });
const groups = TEST_GROUPS.map((group) => ({ runners: group.runners ?? 1, run: () => runGroup(group) }));
await runJobs([...groups.slice(0, 1), ...STATIC_CHECKS.map(jobOf), ...groups.slice(1)]);

const passedAlone: FailedFile[] = [];
if (failedFiles.length <= TRIED_ALONE_AT_MOST) {
  for (const file of [...failedFiles]) {
    if (!(await passesAlone(file))) continue;
    passedAlone.push(file);
    failedFiles.splice(failedFiles.indexOf(file), 1);
  }
}
const failedTests = [...failedFiles, ...passedAlone].reduce((sum, { tests }) => sum + tests.length, 0);
total.failed = failedOtherwise.length + failedTests;

list("passed only at the second try", passedAlone);
list("failed", failedFiles, failedOtherwise);
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
process.exit(total.failed > 0 ? 1 : 0);
