// A random seed for hash tables, so that clients cannot craft collisions.

/** An unsigned number of 32 bits. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number;
}
