// Which page is visited, as the address says, and the state that belongs to the visit.

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { linkTo, parseRoute, type Route } from "../route.ts";

interface Visit {
  /** Two visits of one page are different visits. */
  number: number;
  route: Route;
  /** By names that the page chooses. */
  kept: Map<string, Signal<unknown>>;
}

export type Visits = ReturnType<typeof createVisits>;

/** @param changed - another page is visited */
export function createVisits(changed: () => void) {
  const current = signal<Visit>(begin(0));

  function begin(number: number): Visit {
    return { number, route: parseRoute(location.hash), kept: new Map() };
  }

  function visitAgain(): void {
    current.value = begin(current.peek().number + 1);
    changed();
  }
  window.addEventListener("hashchange", visitAgain);

  return {
    current: current as ReadonlySignal<Visit>,
    /** Forgets what the visited page keeps. */
    visitAgain,
    /** Changes parameters of the address within the visit; empty ones are left out. */
    setQuery(changes: Readonly<Record<string, string | undefined>>): void {
      const { page, id, query } = parseRoute(location.hash);
      history.replaceState(null, "", linkTo(page, id, { ...Object.fromEntries(query), ...changes }));
    },
    kept<Value>(name: string, make: () => Value): Signal<Value> {
      const { kept } = current.peek();
      const known = kept.get(name) ?? signal<unknown>(make());
      kept.set(name, known);
      return known as Signal<Value>;
    },
  };
}
