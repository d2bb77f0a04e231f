import { expect, test } from "bun:test";
import { join } from "node:path";
import { RUNTIME_OPTIONS } from "./runtime-options.ts";

const ROOT = join(import.meta.dir, "..", "..");

test.each(["deploy/docker/Dockerfile", "deploy/systemd/signalbox.service"])(
  "%s starts the binary with the options that it would start itself again for",
  async (file) => {
    const text = await Bun.file(join(ROOT, file)).text();
    for (const [name, value] of Object.entries(RUNTIME_OPTIONS)) expect(text).toContain(`${name}=${value}`);
  },
);

test("bin/find-bun.sh exports the same options, and keeps those of the environment", () => {
  function exported(environment: Record<string, string>): Record<string, string> {
    const run = Bun.spawnSync(["sh", "-c", `. "${ROOT}/bin/find-bun.sh"; env`], {
      env: { PATH: process.env.PATH, ...environment },
    });
    const lines = run.stdout.toString().split("\n");
    return Object.fromEntries(
      lines.filter((line) => line.startsWith("BUN_")).map((line) => line.split("=") as [string, string]),
    );
  }
  expect(exported({})).toEqual(RUNTIME_OPTIONS);
  const [name] = Object.keys(RUNTIME_OPTIONS) as [string];
  expect(exported({ [name]: "7" })).toEqual({ ...RUNTIME_OPTIONS, [name]: "7" });
});
