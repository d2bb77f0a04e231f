// What the rules of decision 0053 make of a small configuration, said as plainly as possible: the file as a base, changes of the
// API above it, and secrets that stay revoked.

export interface Key {
  secret: string;
  /** Infinite for one without an end. */
  endMs: number;
  models: string | undefined;
  previous: { secret: string; endMs: number } | undefined;
}

export interface State {
  level: string | undefined;
  backends: Map<string, number>;
  chains: Map<string, string>;
  keys: Map<string, Key>;
}

export const SECTIONS = ["logging", "backends", "fallback", "api_keys"] as const;

const MEMBERS = { logging: "level", backends: "backends", fallback: "chains", api_keys: "keys" } as const;

/** What a key is that says nothing. */
const UNSAID: Key = { secret: "", endMs: Number.POSITIVE_INFINITY, models: undefined, previous: undefined };

const isSame = (one: unknown, other: unknown) => Bun.deepEquals(one, other);

/** What the file changed, and all else as it runs. */
export function merged(base: State, file: State, running: State): State {
  return {
    level: file.level === base.level ? running.level : file.level,
    backends: mergedEntries(base.backends, file.backends, running.backends, (_base, next) => next),
    chains: mergedEntries(base.chains, file.chains, running.chains, (_base, next) => next),
    keys: mergedEntries(base.keys, file.keys, running.keys, (before, next, own) => {
      const chosen = <Field extends keyof Key>(field: Field): Key[Field] =>
        isSame((before ?? UNSAID)[field], next[field]) ? own[field] : next[field];
      return {
        secret: chosen("secret"),
        endMs: chosen("endMs"),
        models: chosen("models"),
        previous: chosen("previous"),
      };
    }),
  };
}

function mergedEntries<Entry>(
  base: Map<string, Entry>,
  file: Map<string, Entry>,
  running: Map<string, Entry>,
  both: (base: Entry | undefined, file: Entry, running: Entry) => Entry,
): Map<string, Entry> {
  const result = new Map<string, Entry>();
  for (const name of new Set([...running.keys(), ...file.keys()])) {
    const [before, next, own] = [base.get(name), file.get(name), running.get(name)];
    let entry = next;
    if (isSame(before, next)) entry = own;
    else if (next !== undefined && own !== undefined && !isSame(before, own)) entry = both(before, next, own);
    if (entry !== undefined) result.set(name, entry);
  }
  return result;
}

/** Sections of an earlier state in place of those that run. */
export function restored(running: State, target: State, sections: readonly (keyof typeof MEMBERS)[]): State {
  const next = { ...running };
  for (const section of sections) Object.assign(next, { [MEMBERS[section]]: target[MEMBERS[section]] });
  return next;
}

interface Held {
  id: string;
  isPrevious: boolean;
  endMs: number;
}

/** Every secret that stands in a state, valid or not. */
export function secretsOf({ keys }: State): Map<string, Held> {
  const held = new Map<string, Held>();
  for (const [id, { secret, endMs, previous }] of keys) {
    held.set(secret, { id, isPrevious: false, endMs });
    if (previous) held.set(previous.secret, { id, isPrevious: true, endMs: Math.min(endMs, previous.endMs) });
  }
  return held;
}

/** Two keys with one secret cannot be. */
export function hasRepeatedSecret({ keys }: State): boolean {
  const secrets = [...keys.values()].flatMap(({ secret, previous }) => [
    secret,
    ...(previous ? [previous.secret] : []),
  ]);
  return new Set(secrets).size < secrets.length;
}

export interface Ended {
  revoked: ReadonlySet<string>;
  running: State;
  nowMs: number;
  /** The file says itself that they are valid until then. */
  renewed?: ReadonlySet<string>;
}

/** A state without what was revoked: the secrets that run stay in their place, or the key is gone. */
export function withoutEnded(state: State, { revoked, running, nowMs, renewed = new Set() }: Ended): State {
  const runs = secretsOf(running);
  const isEnded = (secret: string, endMs: number) => {
    const own = runs.get(secret);
    if (own === undefined) return revoked.has(secret);
    return own.endMs <= nowMs && endMs > nowMs && !renewed.has(`${secret} ${endMs}`);
  };
  const keys = new Map<string, Key>();
  for (const [id, key] of state.keys) {
    let next: Key | undefined = key;
    if (isEnded(key.secret, key.endMs)) {
      const own = running.keys.get(id);
      next = own && { ...own, models: key.models };
    }
    if (next === undefined) continue;
    const { previous } = next;
    const isOver =
      previous !== undefined &&
      (previous.secret === next.secret || isEnded(previous.secret, Math.min(previous.endMs, next.endMs)));
    keys.set(id, isOver ? { ...next, previous: undefined } : next);
  }
  return { ...state, keys };
}

/** Whether a change through the API gives a secret that has ended. */
export function givesEnded(next: State, { revoked, running, nowMs }: Ended): boolean {
  const runs = secretsOf(running);
  return [...secretsOf(next)].some(([secret, { id, isPrevious, endMs }]) => {
    const own = runs.get(secret);
    if (own === undefined) return revoked.has(secret);
    const isMoved = own.id !== id || own.isPrevious !== isPrevious;
    return isMoved && own.endMs <= nowMs && endMs > nowMs;
  });
}
