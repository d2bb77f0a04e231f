// A number that nobody outside knows: who shares a place with whom, in a table of the gateway, is nobody's business.

export function secretSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number;
}
