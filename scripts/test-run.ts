// What the test runner has printed, read.

export interface FailedTest {
  /** As the runner names it, relative to the folder in which it was started. */
  file: string;
  name: string;
}

export interface TestRun {
  passed: number;
  /** Tests, and what failed outside of any: at least one whenever the runner was not content. */
  failed: number;
  skipped: number;
  failures: FailedTest[];
}

export function readTestRun(printed: string, exitCode: number): TestRun {
  const run: TestRun = {
    passed: count(printed, "pass"),
    failed: count(printed, "fail"),
    skipped: count(printed, "(?:skip|todo)"),
    failures: failures(printed),
  };
  // A runner that died has printed no counts; one that found no tests has nothing to count.
  if ((exitCode !== 0 && run.failed === 0) || run.passed + run.failed === 0) run.failed = 1;
  return run;
}

/** At the end of a long run the runner lists what failed once more, without the files. */
const AGAIN = /^\d+ tests failed:$/;

function failures(printed: string): FailedTest[] {
  const found: FailedTest[] = [];
  let file: string | undefined;
  for (const line of printed.split("\n")) {
    if (AGAIN.test(line)) break;
    file = /^(\S+\.test\.ts):$/.exec(line)?.[1] ?? file;
    const name = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/.exec(line)?.[1] ?? failureOfFile(line);
    if (name !== undefined && file !== undefined) found.push({ file, name });
  }
  return found;
}

/** What fails outside of any test is counted as a test of its file. */
function failureOfFile(line: string): string | undefined {
  if (line === "# Unhandled error between tests") return "(outside of any test)";
  if (/^✗ \S+ \(worker crashed/.test(line)) return "(the runner died)";
  return undefined;
}

function count(printed: string, word: string): number {
  const matches = [...printed.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm"))];
  return Number(matches.at(-1)?.[1] ?? 0);
}
