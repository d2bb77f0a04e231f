// The groups of tests that npm test runs: which files, by how many runners, in which environment, and what they need.

import { providePackages } from "./debian-packages.ts";

/** A test may take this long, in milliseconds; the runner's default of 5 s is short for a loaded machine. */
export const TIME_LIMIT = ["--timeout", "60000"];

export interface TestGroup {
  name: string;
  paths: string[];
  /** So many take its files, each the next one. */
  runners?: number;
  environment?: Readonly<Record<string, string>>;
  /** Its gateways that are processes are the executable of npm run build, not bin/signalbox. Default: they are. */
  runsExecutable?: boolean;
  /** Names of the only tests that are run, without those of what is around them. */
  only?: string[];
  /** What its tests need besides node_modules; false: they cannot run, and count as failed. */
  prepare?: () => Promise<boolean>;
}

/** Each group is run by itself, so that a crash of one is counted and does not hide the others. The longest go first. */
export const TEST_GROUPS: TestGroup[] = [
  {
    name: "black-box tests",
    paths: ["./test/black-box"],
    runners: 3,
    prepare: () => providePackages("openssl", "procps"),
  },
  {
    name: "unit and architecture tests",
    paths: ["./src", "./scripts", "./test/architecture"],
    runners: 2,
    runsExecutable: false,
  },
  {
    name: "the dashboard in a real Chromium",
    paths: ["./test/dashboard"],
    runners: 2,
    prepare: () => providePackages("chromium"),
  },
  { name: "simulation", paths: ["./test/simulation"] },
  { name: "translation", paths: ["./test/translation"] },
  {
    name: "the same by fetch, where the client for backends matters most",
    paths: ["abort", "bad-backends", "mid-stream", "streams", "timeouts"].map(
      (name) => `./test/black-box/${name}.test.ts`,
    ),
    environment: { UPSTREAM_CLIENT: "fetch" },
  },
  {
    name: "the same with two workers, where they have something to share",
    paths: ["admin-backend-changes", "circuit-breaker", "deduplication", "rate-limiting", "retry", "streams"].map(
      (name) => `./test/black-box/${name}.test.ts`,
    ),
    // Which worker a request reaches makes no difference to the others; each has a gateway of three processes.
    only: [
      "a backend serves at once, and its record has every field",
      "while requests are in flight it needs force, and they finish",
      "it opens after the threshold, and the backend is left alone",
      "half open, single requests try the backend; enough successes close it",
      "no more than half_open_max_requests are at a backend, and the others wait for them",
      "a change of timeouts, or of the backend, has the circuit tried at once",
      "a trial whose client leaves gives its place back",
      "failures of one incident that arrive together count once",
      "health checks that see the backend come back end the wait",
      "20 identical streams are one upstream call, and everyone gets the same bytes from the first",
      "20 identical plain requests are one call, and each is answered whole",
      "an error is shared as well, and the next request asks again",
      "a stream that breaks ends with an error event for everyone",
      "the leader leaves, the followers go on (stream)",
      "the leader leaves, the followers go on (plain)",
      "the last who leaves ends the call (stream)",
      "the last who leaves ends the call (plain)",
      "after the ttl a call in flight is not joined any more",
      "a follower that reads slowly does not hold the others up",
      "headers count down, and the refusal has the specified body and headers",
      "200 requests at once: exactly the burst is admitted, and only these reach the backend",
      "rate_limit of a key is per minute, for each key by itself, also while rate_limiting is off",
      "a refused request takes nothing from any limit",
      "global holds for all clients together",
      "a full backend passes the request on to another; when all are full it is 429",
      "a thousand strangers at once each have their own limit",
      "a backend that dies under load costs no request that another backend can answer",
      "arrives byte for byte: comments, ids, odd spacing, unknown fields, large numbers",
      "the gateway's error event has the standard shape with the request id",
    ],
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
  {
    name: "a real Redis",
    paths: ["./test/redis"],
    prepare: () => providePackages("redis-server", "openssl"),
  },
  {
    name: "what is deployed",
    paths: ["./test/deploy"],
    prepare: () => providePackages("prometheus", "nginx", "openssl", "caddy", "systemd"),
  },
  { name: "installed packages", paths: ["./test/packages"] },
  { name: "official clients", paths: ["./test/clients"] },
  { name: "coding agents", paths: ["./test/agents"] },
  {
    name: "the agent of an editor, and its tool servers",
    paths: ["./test/acp", "./test/mcp"],
    prepare: () => providePackages("procps"),
  },
];

/** For the runner: tests that end in one of these names. */
export function namePattern(names: readonly string[]): string {
  return `(?:${names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})$`;
}
