// What signalbox --check-config says of a configuration that a page or a file of deploy shows.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ProgramRun, ROOT } from "./repository.ts";

/** With the variables that it names, unless they are left out, and a file of keys where the chart mounts one. */
export async function checkedConfig(text: string, hasVariables = true): Promise<ProgramRun> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-deploy-"));
  try {
    const keys = join(folder, "keys.yaml");
    writeFileSync(keys, "keys: []\n", { mode: 0o600 });
    const config = join(folder, "config.yaml");
    writeFileSync(config, text.replace("/etc/signalbox-keys/keys.yaml", keys));
    const variables = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [name, `sekret-${name}`]);
    const child = Bun.spawn(["sh", join(ROOT, "bin", "signalbox"), "--check-config", "--config", config], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? "", ...(hasVariables && Object.fromEntries(variables)) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { exitCode: await child.exited, output: out + err };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
