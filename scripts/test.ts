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

/** Each group is a process of its own, so that a crash of one is counted and does not hide the others. The longest go first. */
const TEST_GROUPS: TestGroup[] = [
  {
    name: "black-box tests",
    paths: ["./test/black-box"],
    runners: 3,
    prepare: () => providePackages("openssl"),
  },
  { name: "unit and architecture tests", paths: ["./src", "./test/architecture"] },
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
  },
  { name: "attacks", paths: ["./test/attacks"] },
  { name: "torture of the HTTP client", paths: ["./test/torture"], prepare: () => providePackages("openssl") },
  {
    name: "attacks through real proxies",
    paths: ["./test/proxies"],
    prepare: () => providePackages("nginx", "haproxy"),
  },
  { name: "a real Prometheus", paths: ["./test/prometheus"], prepare: () => providePackages("prometheus") },
  { name: "a real Redis", paths: ["./test/redis"], prepare: () => providePackages("redis-server", "openssl") },
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
  { name: "official clients", paths: ["./test/clients"] },
  { name: "coding agents", paths: ["./test/agents"] },
  { name: "the agent of an editor, and its tool servers", paths: ["./test/acp", "./test/mcp"] },
];

/** A test may take this long; the runner's default of 5 s is short for a loaded machine. */
const TEST_TIMEOUT_MS = 60_000;

/** So many runners at once: most of their time they wait for gateways. */
const RUNNERS = 3;

/** Debian's packages can be installed by one at a time. */
let preparing: Promise<unknown> = Promise.resolve();

function prepared({ prepare }: TestGroup): Promise<boolean> {
  if (prepare === undefined) return Promise.resolve(true);
  const mine = preparing.then(prepare);
  preparing = mine;
  return mine;
}

/** What a group has printed comes as one, when it is over. */
async function runGroup(group: TestGroup): Promise<Counts> {
  const { name, paths, runners = 1, environment } = group;
  const isReady = await prepared(group);
  const startedMs = performance.now();
  const shares = runners === 1 ? [paths] : await shareOut(paths, runners);
  const all = isReady ? await Promise.all(shares.map((share) => runTests(share, environment))) : [];
  console.log(`\n== ${name} (${Math.round((performance.now() - startedMs) / 1000)} s)`);
  for (const { output } of all) process.stdout.write(output);
  if (!isReady) return { passed: 0, failed: 1, skipped: 0 };
  const sum = (of: keyof Counts) => all.reduce((total, counts) => total + counts[of], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

/** Each group begins when there is room for its runners, in order as far as that goes. */
async function runGroups(groups: readonly TestGroup[], over: (counts: Counts) => void): Promise<void> {
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
    const run = runGroup(group).then((counts) => {
      over(counts);
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
  environment: TestGroup["environment"],
): Promise<Counts & { output: string }> {
  const child = Bun.spawn([process.execPath, "test", "--timeout", String(TEST_TIMEOUT_MS), ...paths], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment, NO_COLOR: "1" },
  });
  const [printed, output] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const exitCode = await child.exited;
  const counts = {
    output: printed + output,
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
await runGroups(TEST_GROUPS, ({ passed, failed, skipped }) => {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
});
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
process.exit(total.failed > 0 ? 1 : 0);
