// What a gateway is made of, as the configuration sees it: a part follows each version of it, from the start to the end.

import type { ConfigSnapshot } from "./snapshot.ts";

export interface Part {
  /** This version is in force: requests from now on are answered under it. */
  follow(next: ConfigSnapshot): void;
  /** The gateway ends; parts that follow later have ended before. What is to be sent is sent within so many milliseconds. */
  stop?(withinMs: number): unknown;
}

interface Recipe<Slice, Thing> {
  /** `before`: what the slice before has made. It may be changed and returned, or hand over what it holds. */
  make(slice: Slice, before: Thing | undefined): Thing;
  /** Called for a thing that another one has replaced, and at the end. */
  end?(thing: Thing): void;
}

/** A thing that is made of a slice of the configuration, and made again when the slice has another value. */
export function remade<Slice, Thing>({ make, end }: Recipe<Slice, Thing>) {
  let made: { slice: Slice; thing: Thing } | undefined;
  return {
    /** Undefined before the first slice, and behind the end. */
    get now(): Thing | undefined {
      return made?.thing;
    },
    of(slice: Slice): Thing {
      if (made !== undefined && Bun.deepEquals(made.slice, slice, true)) return made.thing;
      const before = made?.thing;
      const thing = make(slice, before);
      made = { slice, thing };
      if (before !== undefined && before !== thing) end?.(before);
      return thing;
    },
    stop(): void {
      if (made !== undefined) end?.(made.thing);
      made = undefined;
    },
  };
}
