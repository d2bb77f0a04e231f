// The circuits in a worker: the primary owns them. A closed one admits at once; a trial of another one is confirmed first.

import { type CircuitBreakerSettings, circuitPolicyFor } from "../config/sections/circuit-breaker.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { type CircuitOutcome, type CircuitState, classifyOutcome } from "../routing/circuit-breaker.ts";
import type { Circuits, Permit } from "../routing/circuits.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { Channel } from "./channel.ts";
import type { CircuitView, PrimaryDesk } from "./messages.ts";

interface ReplicaCircuitsParts {
  settings: CircuitBreakerSettings;
  channel: Channel<PrimaryDesk>;
  now(): number;
  /** A time of this process's clock, in that of the primary. */
  toPrimary(atMs: number): number;
}

/** Successes that change no state are reported together. */
const SUCCESSES_MS = 100;
/** After a refusal the primary is asked again when it tells of the circuit, or after this time. */
const REFUSED_MS = 50;

const FREE_PERMIT: Permit = Object.freeze({ isProbe: false, settle() {} });

interface Replica {
  view: CircuitView;
  opensAtMs: number;
  /** Successes that were not told yet. */
  successes: number;
  /** Set while a request waits for news. */
  news: PromiseWithResolvers<void> | undefined;
}

export type ReplicaCircuits = Circuits & {
  /** What the primary tells replaces what was known. */
  follow(views: readonly CircuitView[]): void;
  /** What was held back is sent. */
  tell(): void;
  stop(): void;
};

export function createReplicaCircuits({
  settings: first,
  channel,
  now,
  toPrimary,
}: ReplicaCircuitsParts): ReplicaCircuits {
  let settings = first;
  const replicas = new Map<string, Replica>();
  let lastLease = 0;
  const timer = setInterval(tell, SUCCESSES_MS);

  function tell(): void {
    for (const [name, replica] of replicas) {
      if (replica.successes === 0) continue;
      channel.tell("successes", name, replica.successes);
      replica.successes = 0;
    }
  }

  function newReplica(name: string): Replica {
    const { enabled } = circuitPolicyFor(name, settings);
    const view: CircuitView = {
      name,
      isEnabled: enabled,
      state: "closed",
      opensInMs: 0,
      isCounting: false,
      hasRoom: true,
    };
    return { view, opensAtMs: 0, successes: 0, news: undefined };
  }

  function stateOf({ view, opensAtMs }: Replica): CircuitState {
    return view.state === "open" && now() >= opensAtMs ? "half_open" : view.state;
  }

  function isFree({ view }: Replica): boolean {
    return !view.isEnabled;
  }

  function tellNews(replica: Replica): void {
    const { news } = replica;
    replica.news = undefined;
    news?.resolve();
  }

  function refused(replica: Replica): void {
    replica.view = { ...replica.view, hasRoom: false };
    const { view } = replica;
    setTimeout(() => {
      if (replica.view !== view) return; // there were news
      replica.view = { ...view, hasRoom: true };
      tellNews(replica);
    }, REFUSED_MS);
  }

  function settled(replica: Replica, admittedMs: number, outcome: CircuitOutcome): void {
    if (outcome !== "success" && outcome !== "failure") return; // says nothing of a closed circuit
    const { name, isCounting } = replica.view;
    if (outcome === "success" && !isCounting) {
      replica.successes++;
      return;
    }
    // In the order in which they happened.
    tell();
    channel.tell("outcome", { name, outcome, admittedMs: toPrimary(admittedMs), endedMs: toPrimary(now()) });
    // The client may ask again as soon as it has its answer.
    channel.flush();
  }

  function trial(replica: Replica, inPanic: boolean): Permit {
    const lease = ++lastLease;
    let isSettled = false;
    function settle(outcome: CircuitOutcome): void {
      if (isSettled) return;
      isSettled = true;
      channel.tell("settle", lease, outcome);
    }
    const confirmed = channel.call("lease", [replica.view.name, lease, inPanic]).then((isGranted) => {
      if (isGranted) return true;
      // A primary that was too busy to say so in time may grant it yet.
      settle("neutral");
      refused(replica);
      return false;
    });
    return { isProbe: true, confirmed, settle };
  }

  const find = (name: string) => getOrMake(replicas, name, newReplica);

  /** Whether a circuit that is not closed may be tried. */
  function mayTry(replica: Replica, inPanic: boolean): boolean {
    const isOpen = stateOf(replica) === "open";
    return replica.view.hasRoom && (!isOpen || (inPanic && circuitPolicyFor(replica.view.name, settings).panic));
  }

  function allows(name: string, inPanic: boolean): boolean {
    const replica = replicas.get(name);
    return replica === undefined || isFree(replica) || replica.view.state === "closed" || mayTry(replica, inPanic);
  }

  return {
    allows(name) {
      return allows(name, false);
    },
    letsThrough(name) {
      const replica = replicas.get(name);
      if (replica === undefined || isFree(replica)) return true;
      return stateOf(replica) !== "open" || circuitPolicyFor(name, settings).panic;
    },
    allowsInPanic: (name) => allows(name, true),
    acquire(name, inPanic = false) {
      const replica = find(name);
      if (isFree(replica)) return FREE_PERMIT;
      if (replica.view.state !== "closed") {
        return mayTry(replica, inPanic) ? trial(replica, inPanic) : undefined;
      }
      const admittedMs = now();
      let isSettled = false;
      return {
        isProbe: false,
        settle(outcome) {
          if (isSettled) return;
          isSettled = true;
          settled(replica, admittedMs, outcome);
        },
      };
    },
    trialEnd(name) {
      const replica = replicas.get(name);
      if (replica === undefined || stateOf(replica) !== "half_open" || replica.view.hasRoom) return undefined;
      replica.news ??= Promise.withResolvers<void>();
      return replica.news.promise;
    },
    outcomeOf(name: string, failure: UpstreamFailure | undefined): CircuitOutcome {
      return failure === undefined ? "success" : classifyOutcome(failure, circuitPolicyFor(name, settings));
    },
    state(name) {
      const replica = replicas.get(name);
      return replica === undefined ? "closed" : stateOf(replica);
    },
    troubledForMs: () => undefined,
    retryAfterMs(name) {
      const replica = replicas.get(name);
      return replica?.view.state === "open" ? Math.max(0, replica.opensAtMs - now()) : 0;
    },
    recovered() {}, // the primary sees it itself
    retain() {},
    apply(next) {
      settings = next;
    },
    follow(views) {
      const told = new Set(views.map(({ name }) => name));
      for (const name of replicas.keys()) if (!told.has(name)) replicas.delete(name);
      for (const view of views) {
        const replica = find(view.name);
        // What happened before the failure that is counted now is sent before it.
        if (view.isCounting && !replica.view.isCounting) tell();
        replica.view = view;
        replica.opensAtMs = now() + view.opensInMs;
        tellNews(replica);
      }
    },
    tell,
    stop: () => clearInterval(timer),
  };
}
