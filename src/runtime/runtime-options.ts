// What the runtime reads of its environment at process start only. bin/find-bun.sh sets it; a compiled binary has no such
// script and starts itself once more, in place, with the same pid.

export const RUNTIME_OPTIONS: Readonly<Record<string, string>> = {
  /** fetch() takes 256 exchanges at a time without it. */
  BUN_CONFIG_MAX_HTTP_REQUESTS: "65336",
  /** Calls and loops after which a function is compiled to the end; 64,000 by default (docs/decisions/0066-functions-are-compiled-sooner.md). */
  BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "10000",
};

/** Where a compiled binary has its entry point; from source the first argument is the path of main.ts. */
const EMBEDDED_FILES = /^(\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/;

/** Returns if the process began with all of them, whatever their values, or cannot start itself again. */
export function ensureRuntimeOptions(): void {
  const { env } = process;
  if (process.execve === undefined || Object.keys(RUNTIME_OPTIONS).every((name) => env[name] !== undefined)) return;
  process.execve(process.execPath, [...ownCommand(), ...process.argv.slice(2)], {
    ...RUNTIME_OPTIONS,
    ...env,
  } as NodeJS.ProcessEnv);
}

/** The command that starts this program again; a compiled binary is the program itself. */
export function ownCommand(): string[] {
  const script = process.argv[1] ?? "";
  return EMBEDDED_FILES.test(script) ? [process.execPath] : [process.execPath, script];
}
