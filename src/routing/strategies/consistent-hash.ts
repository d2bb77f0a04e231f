// ConsistentHash: the same session meets the same backend, and a backend that leaves moves only its own sessions.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

/** Points on the ring per backend of average weight: enough for shares within about a tenth of the ideal. */
const POINTS_PER_BACKEND = 128;

interface Ring {
  points: Uint32Array;
  owners: Uint16Array | Uint32Array;
}

export function consistentHash(): SelectionStrategy {
  const rings = new WeakMap<readonly BackendEntry[], Ring>();
  return {
    select(candidates, allowed, query) {
      if (candidates.length === 0) return undefined;
      let ring = rings.get(candidates);
      if (ring === undefined) {
        ring = buildRing(candidates);
        rings.set(candidates, ring);
      }
      const { points, owners } = ring;
      const start = firstAtOrAfter(points, hash(query.sessionKey()));
      for (let step = 0; step < points.length; step++) {
        const entry = candidates[owners[(start + step) % points.length] as number] as BackendEntry;
        if (allowed(entry)) return entry;
      }
      return undefined;
    },
  };
}

function buildRing(candidates: readonly BackendEntry[]): Ring {
  const weights = candidates.map((entry) => Math.max(entry.backend.weight, 1));
  const average = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
  const placed: { point: number; owner: number }[] = [];
  candidates.forEach((entry, owner) => {
    const count = Math.max(1, Math.round((POINTS_PER_BACKEND * (weights[owner] as number)) / average));
    for (let index = 0; index < count; index++) placed.push({ point: hash(`${entry.backend.name}#${index}`), owner });
  });
  placed.sort((a, b) => a.point - b.point);
  return { points: Uint32Array.from(placed, (p) => p.point), owners: Uint32Array.from(placed, (p) => p.owner) };
}

function hash(text: string): number {
  return Bun.hash.xxHash32(text);
}

function firstAtOrAfter(points: Uint32Array, target: number): number {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((points[middle] as number) < target) low = middle + 1;
    else high = middle;
  }
  return low === points.length ? 0 : low;
}
