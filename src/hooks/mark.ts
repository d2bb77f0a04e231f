// What tells a process that it runs the module of a hook.

/** A variable of the environment: the most bytes that the process may take. */
export const HOOK_MARK = "SIGNALBOX_HOOK";

export function isHookProcess(): boolean {
  return process.env[HOOK_MARK] !== undefined && process.send !== undefined;
}
