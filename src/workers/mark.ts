// What tells a process that it is a worker.

/** A variable of the environment; it means nothing in a process that has no channel to a parent. */
export const MARK = "SIGNALBOX_WORKER";

export function isWorker(): boolean {
  return process.env[MARK] !== undefined && process.send !== undefined;
}
