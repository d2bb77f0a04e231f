// Waiting for a condition instead of sleeping: polls until it holds, or fails with a message that says what was missing.

/** How long a failure takes to show: a wait ends when its condition holds, and a loaded machine may be slow. */
const PATIENCE_MS = 20_000;

export interface WaitOptions {
  timeoutMs?: number;
  intervalMs?: number;
  /** Further facts for the failure message, read when the deadline has passed. */
  explain?: () => string;
}

/** The first result of the condition that is neither false, null nor undefined. */
export async function waitFor<Result>(
  description: string,
  condition: () => Result | Promise<Result>,
  options: WaitOptions = {},
): Promise<Exclude<Result, false | null | undefined>> {
  const { timeoutMs = PATIENCE_MS, intervalMs = 5, explain } = options;
  const startedMs = performance.now();
  for (;;) {
    const result = await condition();
    if (result !== false && result !== null && result !== undefined) {
      return result as Exclude<Result, false | null | undefined>;
    }
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > timeoutMs) {
      const facts = explain ? `\n${explain()}` : "";
      throw new Error(`waited ${Math.round(waitedMs)} ms in vain: ${description}${facts}`);
    }
    await Bun.sleep(intervalMs);
  }
}

/** The promise's result, or a failure that names what did not happen in time. */
export async function within<Result>(
  description: string,
  promise: Promise<Result>,
  timeoutMs = PATIENCE_MS,
): Promise<Result> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${timeoutMs} ms in vain: ${description}`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
