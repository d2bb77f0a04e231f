// The board with some backends alone, for requests that may be sent to no other.

import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { getOrMake } from "../lib/get-or-make.ts";

/** As many as the configuration names backends in routes, and types that a name can begin with. */
const MAX_NARROWED = 1_000;

/** Strategies keep turns by the array of candidates: for one board it must be the same object. What is kept ends with the board. */
export function createNarrowing(): (board: BackendBoard, names: readonly string[]) => BackendBoard {
  const ofBoards = new WeakMap<BackendBoard, Map<string, BackendBoard>>();
  return (board, names) => {
    const known = getOrMake(ofBoards, board, () => new Map<string, BackendBoard>());
    const key = names.join("\n");
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = narrow(board, new Set(names));
    if (known.size < MAX_NARROWED) known.set(key, made);
    return made;
  };
}

function narrow(board: BackendBoard, names: ReadonlySet<string>): BackendBoard {
  const isIn = ({ backend }: BackendEntry) => names.has(backend.name);
  const kept = new WeakMap<readonly BackendEntry[], readonly BackendEntry[]>();
  const within = (entries: readonly BackendEntry[]) => getOrMake(kept, entries, () => entries.filter(isIn));
  return {
    ...board,
    entries: board.entries.filter(isIn),
    candidates: (model) => within(board.candidates(model)),
    serving: (model) => within(board.serving(model)),
  };
}
