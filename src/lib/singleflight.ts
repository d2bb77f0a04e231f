// Concurrent calls for the same thing share one run.

export interface Singleflight<Result> {
  /** Joins the run in progress, or starts one. Both outcomes are shared; nothing is kept afterwards. */
  run(work: () => Promise<Result>): Promise<Result>;
}

export function singleflight<Result>(): Singleflight<Result> {
  let running: Promise<Result> | undefined;
  return {
    run(work) {
      running ??= work().finally(() => {
        running = undefined;
      });
      return running;
    },
  };
}
