// So many pieces of work at once, the others in the order in which they came.

export function createWorkLimit(most: number) {
  let taken = 0;
  const waiting: (() => void)[] = [];
  return {
    /** Begins behind its caller. */
    async run<Result>(work: () => Promise<Result>): Promise<Result> {
      const turn = Promise.withResolvers<void>();
      if (taken < most) {
        taken++;
        turn.resolve();
      } else waiting.push(turn.resolve);
      await turn.promise;
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) taken--;
        else next();
      }
    },
  };
}
