// fetch() takes 256 exchanges at a time unless BUN_CONFIG_MAX_HTTP_REQUESTS said otherwise when the process started.
// bin/signalbox sets it; a compiled binary has no such script and starts itself once more, in place, with the same pid.

const VARIABLE = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const LIMIT = "65336";

/** Where a compiled binary has its entry point; from source the first argument is the path of main.ts. */
const EMBEDDED_FILES = /^(\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/;

export function raiseFetchLimit(): void {
  if (process.env[VARIABLE] !== undefined || process.execve === undefined) return;
  process.execve(process.execPath, [...ownCommand(), ...process.argv.slice(2)], {
    ...process.env,
    [VARIABLE]: LIMIT,
  } as NodeJS.ProcessEnv);
}

/** The command that starts this program again; a compiled binary is the program itself. */
export function ownCommand(): string[] {
  const script = process.argv[1] ?? "";
  return EMBEDDED_FILES.test(script) ? [process.execPath] : [process.execPath, script];
}
