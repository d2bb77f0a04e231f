// npm run build: one self-contained executable, dist/signalbox, for the platform it is built on (or --target=bun-…).

import { chmodSync, mkdirSync } from "node:fs";

const target = process.argv.find((argument) => argument.startsWith("--target="));
mkdirSync("dist", { recursive: true });
const command = [
  process.execPath,
  "build",
  "src/main.ts",
  "--compile",
  "--minify-whitespace",
  "--minify-syntax",
  "--outfile=dist/signalbox",
];
if (target !== undefined) command.push(target);
const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] });
const exitCode = await child.exited;
if (exitCode !== 0) process.exit(exitCode);
chmodSync("dist/signalbox", 0o755);
console.log("built dist/signalbox");
