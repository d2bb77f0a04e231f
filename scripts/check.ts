// npm run check: format, lint, types, architecture and unit tests; what a developer runs before every commit.

import { runStep, STATIC_CHECKS } from "./run-steps.ts";
import { TIME_LIMIT } from "./test-groups.ts";

const steps = [
  ...STATIC_CHECKS,
  {
    name: "unit and architecture tests",
    command: [process.execPath, "test", ...TIME_LIMIT, "./src", "./test/architecture"],
  },
];
for (const step of steps) {
  const exitCode = await runStep(step);
  if (exitCode !== 0) process.exit(exitCode);
}
