// Whether an output of this process is a terminal.

import { fstatSync, statSync } from "node:fs";

/** Asks node:tty only where it can be one: that module brings Node's streams with it, and nothing else here needs them. */
export function isTerminal(fileDescriptor: number): boolean {
  try {
    const file = fstatSync(fileDescriptor);
    if (!file.isCharacterDevice() || file.rdev === statSync("/dev/null").rdev) return false;
  } catch {
    return false; // It is closed.
  }
  return process.getBuiltinModule("node:tty").isatty(fileDescriptor);
}
