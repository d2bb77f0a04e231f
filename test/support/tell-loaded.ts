// Loaded before a gateway by a test: on SIGUSR2 the process writes which modules it has loaded, to the file that
// TELL_LOADED_TO names.

import { renameSync, writeFileSync } from "node:fs";

process.on("SIGUSR2", () => {
  const file = process.env.TELL_LOADED_TO as string;
  writeFileSync(`${file}.part`, JSON.stringify(Object.keys(require.cache)));
  renameSync(`${file}.part`, file);
});
