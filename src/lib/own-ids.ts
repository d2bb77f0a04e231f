// Ids that the gateway gives itself: unique over processes and restarts, and made without asking for randomness each time.

const PREFIX_LENGTH = 8;

/** A random prefix for all, and a counter. */
export function createOwnIds(random: () => number): () => string {
  const prefix = Array.from({ length: PREFIX_LENGTH }, () => Math.floor(random() * 36).toString(36)).join("");
  let count = 0;
  return () => `${prefix}-${++count}`;
}
