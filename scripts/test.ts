// npm test: the static checks, then every test. Ends with the line "N passed, N failed".

import { providePackages } from "./debian-packages.ts";
import { runStep, STATIC_CHECKS } from "./run-steps.ts";

interface TestGroup {
  name: string;
  paths: string[];
  /** Its files are shared out to so many runners at once; most of their time is the start of gateways. */
  runners?: number;
  environment?: Readonly<Record<string, string>>;
  /** What its tests need besides node_modules; false: they cannot run, and count as failed. */
  prepare?: () => Promise<boolean>;
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Each group is a process of its own, so that a crash of one is counted and does not hide the others. */
const TEST_GROUPS: TestGroup[] = [
  { name: "unit and architecture tests", paths: ["./src", "./test/architecture"] },
  { name: "simulation", paths: ["./test/simulation"] },
  { name: "translation", paths: ["./test/translation"] },
  {
    name: "black-box tests",
    paths: ["./test/black-box"],
    runners: 2,
    prepare: () => providePackages("openssl"),
  },
  {
    name: "the same by fetch, where the client for backends matters most",
    paths: ["abort", "bad-backends", "health-states", "mid-stream", "streams", "timeouts"].map(
      (name) => `./test/black-box/${name}.test.ts`,
    ),
    environment: { UPSTREAM_CLIENT: "fetch" },
  },
  { name: "attacks", paths: ["./test/attacks"] },
  { name: "torture of the HTTP client", paths: ["./test/torture"], prepare: () => providePackages("openssl") },
  {
    name: "attacks through real proxies",
    paths: ["./test/proxies"],
    prepare: () => providePackages("nginx", "haproxy"),
  },
  { name: "a real Prometheus", paths: ["./test/prometheus"], prepare: () => providePackages("prometheus") },
  { name: "official clients", paths: ["./test/clients"] },
  { name: "coding agents", paths: ["./test/agents"] },
];

/** A test may take this long; the runner's default of 5 s is short for a loaded machine. */
const TEST_TIMEOUT_MS = 60_000;

async function runGroup({ name, paths, runners = 1, environment, prepare }: TestGroup): Promise<Counts> {
  console.log(`\n== ${name}`);
  if (prepare !== undefined && !(await prepare())) return { passed: 0, failed: 1, skipped: 0 };
  const shares = runners === 1 ? [paths] : await shareOut(paths, runners);
  const all = await Promise.all(shares.map((share) => runTests(share, environment)));
  const sum = (of: keyof Counts) => all.reduce((total, counts) => total + counts[of], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

/** The test files below the paths, dealt in turn. */
async function shareOut(paths: readonly string[], runners: number): Promise<string[][]> {
  const files: string[] = [];
  for (const path of paths) {
    for await (const file of new Bun.Glob("**/*.test.ts").scan(path)) files.push(`${path}/${file}`);
  }
  files.sort();
  return Array.from({ length: runners }, (_, runner) => files.filter((_file, index) => index % runners === runner));
}

async function runTests(paths: readonly string[], environment: TestGroup["environment"]): Promise<Counts> {
  const child = Bun.spawn([process.execPath, "test", "--timeout", String(TEST_TIMEOUT_MS), ...paths], {
    stdio: ["ignore", "inherit", "pipe"],
    env: { ...process.env, ...environment, NO_COLOR: "1" },
  });
  let output = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stderr) {
    process.stderr.write(chunk);
    output += decoder.decode(chunk, { stream: true });
  }
  const exitCode = await child.exited;
  const counts = {
    passed: count(output, "pass"),
    failed: count(output, "fail"),
    skipped: count(output, "(?:skip|todo)"),
  };
  // A runner that died, or that failed outside of any test, has printed no failed test.
  if (exitCode !== 0 && counts.failed === 0) counts.failed = 1;
  if (counts.passed + counts.failed === 0) counts.failed = 1;
  return counts;
}

function count(output: string, word: string): number {
  const matches = [...output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, "gm"))];
  return Number(matches.at(-1)?.[1] ?? 0);
}

const total: Counts = { passed: 0, failed: 0, skipped: 0 };
for (const step of STATIC_CHECKS) {
  if ((await runStep(step)) === 0) total.passed++;
  else total.failed++;
}
for (const group of TEST_GROUPS) {
  const counts = await runGroup(group);
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
}
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
process.exit(total.failed > 0 ? 1 : 0);
