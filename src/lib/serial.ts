// One task after the other: what two writers do at the same time happens in one order or the other.

export interface Serial {
  /** Undefined when too many are waiting. */
  run<Result>(task: () => Promise<Result>): Promise<Result> | undefined;
}

export function createSerial(maximumWaiting: number): Serial {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    run(task) {
      if (waiting >= maximumWaiting) return undefined;
      waiting++;
      const result = last.then(task).finally(() => {
        waiting--;
      });
      // The next task runs whether this one failed or not; its caller sees the failure.
      last = result.catch(() => undefined);
      return result;
    },
  };
}
