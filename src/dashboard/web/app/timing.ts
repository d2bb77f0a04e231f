// Holds back calls that would come too often.

interface HeldBack {
  call(): void;
  /** Forgets a call that is still to come. */
  end(): void;
}

/** Calls at once, and then at most once in so many milliseconds, however often `call` is called. */
export function atMost(everyMs: number, callback: () => void): HeldBack {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastMs = Number.NEGATIVE_INFINITY;
  return {
    call() {
      if (timer !== undefined) return;
      timer = setTimeout(
        () => {
          timer = undefined;
          lastMs = performance.now();
          callback();
        },
        Math.max(0, lastMs + everyMs - performance.now()),
      );
    },
    end: () => clearTimeout(timer),
  };
}
