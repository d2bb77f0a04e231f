// Weighted rendezvous hashing: every entry of a list draws a lot for a session, and the highest lot wins. A lot depends on
// nothing but the session and its own entry, so that another entry's coming, going or weight moves only its own sessions.

/** The number of a session or of an entry, for drawLot(). */
export function lotSeed(name: string): number {
  return Bun.hash.xxHash32(name);
}

/** Higher is better; over all sessions each entry wins in proportion to its weight. */
export function drawLot(session: number, seed: number, weight: number): number {
  const uniform = (mix(session ^ Math.imul(seed, 0x9e3779b1)) + 0.5) / 0x1_0000_0000;
  return weight / -Math.log(uniform);
}

/** Spreads the bits of a 32-bit number evenly. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
