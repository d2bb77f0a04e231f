// Long work in steps: between them everything else has its turn.

/** Lets everything run that is waiting. */
export function otherWork(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
