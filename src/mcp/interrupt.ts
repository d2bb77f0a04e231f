// Waiting that ends when something else has happened for good. Unlike Promise.race it leaves nothing behind at the promise
// of that, which may live as long as a server while thousands of waits come and go.

interface Interrupt {
  /** Settles with the work, or resolves with undefined at the interruption; the work goes on by itself. */
  wait<Result>(work: Promise<Result>): Promise<Result | undefined>;
  /** Ends all waits, those to come included. */
  interrupt(): void;
}

export function createInterrupt(): Interrupt {
  const waiting = new Set<() => void>();
  let isInterrupted = false;
  return {
    wait<Result>(work: Promise<Result>) {
      return new Promise<Result | undefined>((resolve, reject) => {
        const end = () => {
          waiting.delete(end);
          resolve(undefined);
        };
        work.then(
          (result) => {
            waiting.delete(end);
            resolve(result);
          },
          (error) => {
            waiting.delete(end);
            reject(error);
          },
        );
        if (isInterrupted) end();
        else waiting.add(end);
      });
    },
    interrupt() {
      isInterrupted = true;
      for (const end of [...waiting]) end();
    },
  };
}
